/* SPDX-License-Identifier: MIT */
/* A table of findings that `flexguard doctor` fills and then prints, as text or JSON. */
#ifndef FG_CLI_DOCTOR_H
#define FG_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum fg_grade { FG_GOOD, FG_INFO, FG_WARN, FG_BAD };

struct fg_finding {
	const char *name;
	enum fg_grade grade;
	char text[400];
};

struct fg_findings {
	struct fg_finding row[64]; /* more than there are to find */
	int nr;
};

void fg_found(struct fg_findings *t, const char *name, enum fg_grade grade, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * All of them, the first `system_rows` as this machine's, the rest as the program's (NULL: none).
 */
void fg_findings_print(const struct fg_findings *t, const char *program, int system_rows,
		       const char *verdict);
void fg_findings_json(const struct fg_findings *t, const char *program, int system_rows,
		      const char *verdict, int status);

/* Look at this machine. */
struct fg_machine {
	bool monitor; /* there is one, or can be */
	bool library;
};
struct fg_machine fg_doctor_machine(struct fg_findings *t);

/* Look at a program; returns the exit status (0, 1, 2) and the verdict in one sentence. */
int fg_doctor_program(struct fg_findings *t, const char *name, char *verdict, size_t size);

#endif
