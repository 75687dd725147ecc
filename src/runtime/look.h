/* SPDX-License-Identifier: MIT */
/*
 * How much a process spins for words of other libraries, of which nobody knows who will
 * change them, or when (lock/futex_look.h).  fg_decide() asks here about such a wait:
 *
 *   budget   spinning in vain may cost a part of the time that passes, beside what spinning in
 *            time has saved.  One for each word, one for each group of CPUs
 *   room     some CPU of a group is left to those who are waited for
 *
 * A group is 16 CPUs at most, with lines of its own: nothing here is written by all CPUs of a large
 * machine.  All of it is hints, without order; nothing has to be undone by a thread that leaves in
 * the middle (a signal handler's longjmp, an asynchronous cancellation, fork).
 */
#ifndef FG_LOOK_H
#define FG_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread.h"

/* The competitive argument of FG_EVENT_NS (decide.h), with what was seen to pay. */
#define FG_LOOK_NS 30000u

/*
 * Time fills it, FG_BUDGET_PART of time; so does spinning in time, with what that has saved.
 * Races lose a little of either.
 */
struct fg_budget {
	int64_t left_ns;
	uint64_t at_ns; /* when time was last put in */
};

/* What there is, `cap` at most. */
int64_t fg_budget_left(struct fg_budget *b, int64_t cap, uint64_t now);
void fg_budget_add(struct fg_budget *b, int64_t ns);

/* One look: spinning for a word from its first question to its end. */
struct fg_look {
	uint64_t most_ns;
	bool yields;	   /* whom it waits for may be queued on this CPU */
	uint64_t clock_ns; /* last reading; 0: none yet */
	uint64_t began_ns, yielded_ns;
};

enum fg_look_room { FG_LOOK, FG_LOOK_NO_ROOM, FG_LOOK_NO_BUDGET };

/* Before the first look: what the process's cgroup may use. */
void fg_look_setup(void);

/* May this thread look for so long? */
enum fg_look_room fg_look_may_begin(const struct fg_self *self, uint64_t most_ns, uint64_t now);
/* Asked by fg_decide(), which has read the clock. */
bool fg_look_goes_on(struct fg_look *l, const struct fg_self *self, uint64_t now);
/* What a look has saved, or, below 0, cost. */
void fg_look_earned(const struct fg_self *self, int64_t ns);

#endif
