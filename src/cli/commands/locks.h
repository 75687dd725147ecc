/* SPDX-License-Identifier: MIT */
/* What is known of a lock beside its row in the table (zoo/table.h). */
#ifndef FG_CLI_LOCKS_H
#define FG_CLI_LOCKS_H

/* A sentence if this lock cannot be had on this machine, or NULL. */
const char *fg_lock_unavailable(const char *name);
/* What programs on this lock must not do, or NULL. */
const char *fg_lock_caveat(const char *name);

#endif
