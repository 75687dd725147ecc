/* SPDX-License-Identifier: MIT */
/* What a doctor has found (doctor.h), as text or JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/doctor.h"
#include "cli/common/json.h"
#include "cli/common/text.h"

void fg_found(struct fg_findings *t, const char *name, enum fg_grade grade, const char *fmt, ...)
{
	struct fg_finding *r = &t->row[t->nr];
	va_list ap;

	if (t->nr == (int)(sizeof(t->row) / sizeof(t->row[0])))
		return;
	t->nr++;
	r->name = name;
	r->grade = grade;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	fg_make_printable(
	    r->text); /* a program names its loader, and libraries are named by others */
}

void fg_findings_print(const struct fg_findings *t, const char *program, int system_rows,
		       const char *verdict)
{
	static const char *const mark[] = {"ok", "-", "limit", "NO"};
	int width = 0, columns = fg_prose_columns(STDOUT_FILENO);
	char folded[1200], plain[1200];

	snprintf(plain, sizeof(plain), "%s", program ? program : "");
	fg_make_printable(plain);
	for (int i = 0; i < t->nr; i++)
		if ((int)strlen(t->row[i].name) > width)
			width = (int)strlen(t->row[i].name);
	puts("this machine");
	for (int i = 0; i < t->nr; i++) {
		if (i == system_rows)
			printf("\n%s\n", plain);
		fg_fold(folded, sizeof(folded), t->row[i].text, width + 11, width + 11, columns);
		printf("  %-*s  %-5s  %s\n", width, t->row[i].name, mark[t->row[i].grade], folded);
	}
	snprintf(plain, sizeof(plain), "%s", verdict); /* it may name the loader */
	fg_make_printable(plain);
	fg_fold(folded, sizeof(folded), plain, 0, 0, columns);
	printf("\n%s\n", folded);
}

static void print_rows_json(struct fg_json *j, const char *key, const struct fg_findings *t,
			    int from, int to)
{
	static const char *const grade[] = {"good", "info", "limit", "bad"};

	fg_json_open(j, key, '[');
	for (int i = from; i < to; i++) {
		fg_json_open(j, NULL, '{');
		fg_json_text(j, "check", t->row[i].name);
		fg_json_text(j, "grade", grade[t->row[i].grade]);
		fg_json_text(j, "text", t->row[i].text);
		fg_json_close(j, '}');
	}
	fg_json_close(j, ']');
}

void fg_findings_json(const struct fg_findings *t, const char *program, int system_rows,
		      const char *verdict, int status)
{
	struct fg_json j = {.f = stdout};

	fg_json_open(&j, NULL, '{');
	fg_json_text(&j, "version", FG_VERSION);
	print_rows_json(&j, "machine", t, 0, system_rows);
	if (program) {
		fg_json_text(&j, "program", program);
		print_rows_json(&j, "findings", t, system_rows, t->nr);
	}
	fg_json_text(&j, "verdict", verdict);
	fg_json_int(&j, "status", status);
	fg_json_close(&j, '}');
	fg_json_end(&j);
}
