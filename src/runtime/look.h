/* SPDX-License-Identifier: MIT */
/*
 * How much a process spins for words of other libraries, of which nobody knows who will
 * change them, or when (lock/futex_look.h).  fg_decide() asks here about such a wait:
 *
 *   budget   spinning in vain may cost a part of the CPU time that the process uses, beside what
 *            spinning in time has saved; and at each word what its sleeps have cost.  One for each
 *            word, one for each group of CPUs
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

/* CPU time that may be spent.  Races lose a little of it. */
struct fg_budget {
	int64_t left_ns;
};

/*
 * What a look costs at most, however long the thread was kept off its CPU in it: a time slice, in
 * which others did not get what they waited for.
 */
#define FG_LOOK_COST_NS 4000000

/* What there is, `cap` at most, and no more than one such look in debt. */
int64_t fg_budget_left(struct fg_budget *b, int64_t cap);
void fg_budget_add(struct fg_budget *b, int64_t ns);

/* One look: spinning for a word from its first question to its end. */
struct fg_look {
	uint64_t most_ns;
	bool yields;	   /* whom it waits for may be queued on this CPU */
	uint64_t clock_ns; /* last reading; 0: none yet */
	uint64_t began_ns, yielded_ns;
	bool has_yielded;
	bool late;	/* it began while enough others looked, and has not been counted yet */
	uint32_t *mark; /* the looker's, of its CPU */
};

/*
 * A thread that was off its CPU for longer was stopped, or its machine was: that tells nothing of
 * others who need the CPU.
 */
#define FG_AWAY_MOST_NS 100000000u

enum fg_look_room { FG_LOOK, FG_LOOK_NO_ROOM, FG_LOOK_NO_BUDGET };

/* Before the first look. */
void fg_look_setup(void);

/* May this thread look for so long? */
enum fg_look_room fg_look_may_begin(struct fg_look *l, const struct fg_self *self, uint64_t now);
/* Asked by fg_decide(), which has read the clock. */
bool fg_look_goes_on(struct fg_look *l, const struct fg_self *self, uint64_t now);
/* It is over; whoever begins now finds the CPU free. */
void fg_look_ends(struct fg_look *l);
/* What a look has saved, or, below 0, cost. */
void fg_look_earned(const struct fg_self *self, int64_t ns);

/*
 * The CPU time of a wait that a thread of this process has timed; `woken`: by another thread.
 * Gives what the wait cost all in all: of a wake-up, what it cost the waker, too.
 */
uint32_t fg_look_slept(uint64_t cpu_ns, bool woken);
/* What a wait that is over before it sleeps saves, by those that were timed. */
uint32_t fg_look_saves(void);

#endif
