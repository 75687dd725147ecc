/* SPDX-License-Identifier: MIT */
/*
 * "I wait for this; spin or block?"  The one question of the runtime, asked by
 * every waiting loop.  The policies are those of abi/options.h.
 *
 * A wait is for a lock, which somebody holds and will release, or for an event
 * (a signal, a post, the last one at a barrier), of which nobody knows when it
 * comes.  Whoever spins for an event does so while that has paid at this object
 * (fg_spin_history), for FG_EVENT_NS at most, and only as long as nobody critical wants
 * a CPU and the threads of the process have room.  It yields its CPU now and then,
 * also at the start: the event may have to come from there.  A wait for a word of
 * another library is an event with another memory, and a budget (look.h).
 */
#ifndef FG_DECIDE_H
#define FG_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/cpus.h"
#include "runtime/policy.h"
#include "runtime/thread.h"
#include "sys/futex.h"

enum fg_verdict { FG_SPIN, FG_BLOCK };

/*
 * Clock readings cost as much as two pauses (2-CPU VM): one for every so many questions, also for
 * deadlines.  Not varied.
 */
#define FG_CLOCK_EVERY 64u

/*
 * The history of an adaptive spin: how often spinning for an object's events has been in
 * vain lately; 0, which static initialisers give, is "never".  A byte of the object, written
 * without order by whoever waits: a hint.  From FG_SPIN_HISTORY_STOP on nobody spins, and each
 * wait without a spin forgives one, so that there is a new one after a while.  Half of the range,
 * not varied.
 */
typedef uint8_t fg_spin_history;
#define FG_SPIN_HISTORY_STOP 128u

/*
 * Of objects that have no room for one.  Two that meet here share it, which spoils each other's
 * hint, no more.  Not varied.
 */
struct fg_spin_histories {
	fg_spin_history of[256];
};

static inline fg_spin_history *fg_spin_history_at(struct fg_spin_histories *h, uintptr_t number)
{
	return &h->of[(uint32_t)number * 0x9e3779b1u >> 24]; /* the top 8 bits of the product */
}

/* One wait, from its first question to its end or its first sleep. */
struct fg_wait {
	struct fg_self *self;
	/* id of the owner of the lock when it was last looked at, 0 = free or not known */
	uint32_t owner;
	uint32_t asked;	   /* questions so far */
	uint64_t since_ns; /* of the first clock reading; 0 before */
	/* since when the critical path has been seen off its CPU; 0 = it runs */
	uint64_t off_ns;
	uint32_t grace_ns; /* with off_ns: how long it may be before this waiter sleeps */
	uint64_t cpu_ns;   /* fallback: owner's CPU clock at `cpu_at_ns` */
	uint64_t cpu_at_ns;
	bool grace_ends;	  /* with off_ns: half of grace_ns has passed */
	bool crowded;		  /* others had its CPU while it yielded */
	bool follows;		  /* others spin for this lock, and come before it */
	bool keeps_cpu;		  /* others wait for this thread: it does not yield */
	bool yields;		  /* at a gate for an event: as if the gate were one */
	fg_spin_history *history; /* of an event's object; NULL: for a lock */
	struct fg_look *look;	  /* of a word of another library (look.h), or NULL */
};

/*
 * The longest time that a waiter spins for an event: about what the way
 * through the scheduler costs, so that a spin in vain costs no more than twice the
 * price of not spinning (Karlin, Li, Manasse, Owicki, "Empirical Studies of
 * Competitive Spinning for a Shared-Memory Multiprocessor", SOSP 1991).  A
 * wake-up takes 76 us on a 2-CPU VM, Linux 6.18.
 */
#define FG_EVENT_NS 50000u

enum fg_verdict fg_decide(struct fg_wait *w);

/* Begins a wait for an event that happens at the object with this history. */
struct fg_wait fg_wait_for_event(struct fg_self *self, fg_spin_history *history);
/* Ends it: `in_time` if the event came before the waiter slept. */
void fg_event_over(struct fg_wait *w, bool in_time);
/*
 * What that writes, for objects that a waiter may not touch any more then.  `spun`: it has spun at
 * all.
 */
fg_spin_history fg_spin_history_after(fg_spin_history had, bool spun, bool in_time);

/*
 * Spins, as long as fg_decide() says so, until *word & mask is no longer
 * `value`: true.  False: sleep now, or the deadline has passed.
 */
bool fg_spin_while(struct fg_wait *w, const uint32_t *word, uint32_t mask, uint32_t value,
		   const struct fg_deadline *deadline);

/*
 * A thread goes to sleep at a barrier, for threads that say so in their slots
 * (fg_slot.participant).
 */
void fg_participants_are_late(void);

/*
 * Of the thread `tid` (0: the calling one), as the kernel orders them: 1 to 99 of SCHED_FIFO and
 * SCHED_RR, and FG_PRIORITY_DEADLINE; 0: another policy, or a seccomp filter lets nobody ask.
 */
#define FG_PRIORITY_DEADLINE 100u
uint8_t fg_real_time_priority(const struct fg_self *t, uint32_t tid);

/* One of SCHED_DEADLINE loses the rest of its period by a yield. */
static inline bool fg_is_real_time(const struct fg_self *t)
{
	return fg_real_time_priority(t, 0) != 0;
}

/* Leaves the CPU to others of its priority that wait for it; nothing if SCHED_DEADLINE. */
void fg_yield_to_equals(const struct fg_self *t);

/* Does the monitor say where the owner with this id is?  0, nobody: yes. */
bool fg_is_watched(uint32_t owner);

/* Is the owner with this id known to be off its CPU, or gone?  0, nobody: no. */
bool fg_is_owner_off(uint32_t owner);

/* True if the thread with this index is known to be off its CPU: do not hand it anything. */
bool fg_is_off_cpu(uint32_t index);

/*
 * May this thread, which has just woken up by itself, have its CPU?  Not if it took it from another
 * thread of its process, nor if a critical one waits for it there.
 */
bool fg_has_room(const struct fg_self *t);

/*
 * Do others wait for this thread at a barrier, or will they soon?  Not if the last of them has gone
 * to sleep at one 100 ms ago.
 */
bool fg_barriers_are_used(const struct fg_self *t, uint64_t now);

/*
 * For a thread that shares its CPU with another process (fg_shares_cpu), and waits for the thread
 * with the id `owner`: if the owner shares its own as well, and has come to it at about the same
 * time, sleeps until the owner's turn is nearly over, once a turn.  From then on each of the two
 * mostly runs while the other does not.  How long, in ns; 0: it has not.
 */
uint64_t fg_give_way(struct fg_self *t, uint32_t owner);

/*
 * For loops that ask fg_counters by themselves, now and then: asks for a monitor if there is none,
 * and notices that the one there was has died.
 */
void fg_monitor_look(const struct fg_self *t);

#endif
