/* SPDX-License-Identifier: MIT */
/*
 * A lock of ours that another process holds.  That cannot work: POSIX wants
 * what processes share initialised PTHREAD_PROCESS_SHARED (and then it is
 * glibc's), and a release wakes only sleepers of its own process.  Nothing can
 * be done about it here; but a program that hangs should say why.
 */
#ifndef FG_FOREIGN_PROCESS_H
#define FG_FOREIGN_PROCESS_H

#include <stdbool.h>

#include "lock/lock.h"

/* True if the owner is no thread of this process, and never was one.  Errs on the side of false. */
static inline bool _fg_held_by_foreign_process(uint32_t word)
{
	return fg_id_is_foreign(word & FG_WORD_ID);
}

/* After a long sleep: one line on stderr, once, if the lock lies in shared memory. */
void _fg_report_foreign_process(const struct fg_lock *l);

#endif
