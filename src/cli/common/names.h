/* SPDX-License-Identifier: MIT */
/*
 * Locks, policies and other choices by name: the tables of abi/options.h and zoo/table.h, so that
 * no command has a list of its own.
 */
#ifndef FG_CLI_NAMES_H
#define FG_CLI_NAMES_H

/* Index of `name` in the table, or -1. */
/* a pair of the zoo's: FG_LOCK_COUNT, as others of the zoo */
int fg_lock_by_name(const char *name);
int fg_policy_by_name(const char *name);
int fg_futex_by_name(const char *name);
const char *fg_lock_names(void); /* "a, b, c" */
const char *fg_policy_names(void);
const char *fg_futex_names(void);
extern const char *const fg_policy_name[];

#endif
