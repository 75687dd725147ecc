/* SPDX-License-Identifier: MIT */
/*
 * `flexguard doctor`: what works on this machine (doctor_machine.c), and for a program
 * (doctor_program.c). Exit status 0: fully; 1: with limits (the fallback); 2: not at all.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/doctor.h"
#include "cli/common/arguments.h"
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
}

void fg_findings_print(const struct fg_findings *t, const char *program, int system_rows,
		       const char *verdict)
{
	static const char *const mark[] = {"ok", "-", "limit", "NO"};
	int width = 0, columns = fg_prose_columns(STDOUT_FILENO);
	char folded[1200];

	for (int i = 0; i < t->nr; i++)
		if ((int)strlen(t->row[i].name) > width)
			width = (int)strlen(t->row[i].name);
	puts("this machine");
	for (int i = 0; i < t->nr; i++) {
		if (i == system_rows)
			printf("\n%s\n", program);
		fg_fold(folded, sizeof(folded), t->row[i].text, width + 11, width + 11, columns);
		printf("  %-*s  %-5s  %s\n", width, t->row[i].name, mark[t->row[i].grade], folded);
	}
	fg_fold(folded, sizeof(folded), verdict, 0, 0, columns);
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

int fg_cmd_doctor(int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	struct fg_findings t = {.nr = 0};
	const char *program = NULL;
	char verdict[600];
	struct fg_machine machine;
	bool json = false;
	int status, system_rows, option;

	while ((option = fg_arguments_next(&a)) == FG_DOCTOR_JSON)
		json = true;
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	if (a.next < argc)
		program = argv[a.next++];
	if (a.next < argc)
		return fg_arguments_bad(&a, "one program at a time; '%s' is too much",
					argv[a.next]);

	machine = fg_doctor_machine(&t);
	system_rows = t.nr;
	if (program) {
		status = fg_doctor_program(&t, program, verdict, sizeof(verdict));
		if (!machine.library && status < 2) {
			status = 2;
			snprintf(verdict, sizeof(verdict),
				 "cannot be helped: FlexGuard's own library is missing here");
		}
	} else if (!machine.library) {
		status = 2;
		snprintf(verdict, sizeof(verdict),
			 "FlexGuard cannot work here: its library is missing");
	} else if (machine.monitor) {
		status = 0;
		snprintf(verdict, sizeof(verdict),
			 "FlexGuard works here, with the preemption monitor");
	} else {
		status = 1;
		snprintf(verdict, sizeof(verdict),
			 "FlexGuard works here with limits: without the monitor, on the fallback");
	}
	if (json)
		fg_findings_json(&t, program, system_rows, verdict, status);
	else
		fg_findings_print(&t, program, system_rows, verdict);
	return status;
}
