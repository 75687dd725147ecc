/* SPDX-License-Identifier: MIT */
/*
 * Reads the options of a command by its row in the table (table.h), and says what is wrong with
 * them.  A value that is one of "a|b" there is one of them when the command gets it.
 */
#ifndef FG_CLI_ARGUMENTS_H
#define FG_CLI_ARGUMENTS_H

#include "cli/common/table.h"

struct fg_arguments {
	int argc;
	char **argv; /* operands stand behind the options when all are read, from `next` on */
	const struct fg_command *command;
	/* of the option that was read: "" where it is missing, NULL where it may be */
	const char *value;
	int next;
	int status; /* of FG_ARGUMENTS_EXIT */
};

#define FG_ARGUMENTS_END  (-1)
#define FG_ARGUMENTS_EXIT (-2) /* help has been printed, or an error */

struct fg_arguments fg_arguments(int argc, char **argv); /* argv[0] is the command's name */
/* The next option: its index in the table, or one of these. */
int fg_arguments_next(struct fg_arguments *a);
/* An error of the command's; returns FG_EXIT_OWN. */
int fg_arguments_bad(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "unknown WHAT 'WORD'", and what it may be instead of `list` ("a, b"); returns FG_EXIT_OWN. */
int fg_arguments_unknown(const char *what, const char *word, const char *list);
/* Operands where there are none: false, and the error is said. */
bool fg_arguments_no_more(struct fg_arguments *a);

const struct fg_command *fg_command_by_name(const char *name);
void fg_command_help(const struct fg_command *c);
/* "--lock NAME", "--stats[=FILE]" */
const char *fg_option_text(const struct fg_option *o, char *text, size_t size);

#endif
