/* SPDX-License-Identifier: MIT */
/* Options of a command line. */
#ifndef FG_CLI_ARGUMENTS_H
#define FG_CLI_ARGUMENTS_H

#include <stdbool.h>

/* Whether `arg` is --NAME or --NAME=VALUE; *value is VALUE or NULL. */
bool fg_option(const char *arg, const char *name, const char **value);
/*
 * The value of -L VALUE, -LVALUE, --name VALUE or --name=VALUE at argv[*i], which moves on
 * if it takes two; "" if it has none, NULL if it is another option.  letter 0: no short one.
 */
const char *fg_argument(int argc, char **argv, int *i, char letter, const char *name);

#endif
