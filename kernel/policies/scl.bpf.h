/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long each thread has held a lock, of late: what scl and scl-reorder go by (scheduler-
 * cooperative locks: Patel et al., EuroSys 2020; SynCord, Figure 8).  Both numbers of a share are
 * halved from one window to the next, so that nobody pays for ever.  Who has a part is counted by
 * windows, too: so a window is SECTIONS times as long as the longest section of late, if that is
 * more than window_ns, and all who hold the lock for long come to their end in it; but at most
 * STRETCH times window_ns, for one long section alone would be paid for too long.  Threads whose
 * numbers are equal modulo SLOTS are one.
 *
 * Who holds the lock writes, and who waits reads beside that: a number that is a section old makes
 * one wait a little longer or shorter.  Readers of an rwsem are not accounted: they hold it
 * together.  Nor are interrupts, which have no debt either: a thread does not pay for what it was
 * interrupted by.  But a softirq's holds are its thread's, for only waiters in the queue say that
 * they are none (pid 0, as of a CPU's idle task).
 */
#ifndef SCL_BPF_H
#define SCL_BPF_H

#include "syncord.bpf.h"

#define SLOTS	 256 /* a power of 2 */
#define SECTIONS 16  /* in the test `kernel shares` 1 is too few, and 4 nearly enough */
#define STRETCH	 64  /* 16 is too few there, and more are paid for for longer */

const volatile u64 window_ns = 1000000000;

struct share {
	u64 held, window;
};
struct total {
	u64 held, window, begun; /* the number of the window, and when it began */
	u64 since, longest, users, users_before;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SYNCORD_TARGETS *SLOTS);
	__type(key, u32);
	__type(value, struct share);
} shares SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SYNCORD_TARGETS);
	__type(key, u32);
	__type(value, struct total);
} totals SEC(".maps");

/* Whose account it is; 0: nobody's. */
static __always_inline u32 thread_of(u32 how)
{
	return how & (SYNCORD_READ | SYNCORD_IRQ) ? 0 : (u32)bpf_get_current_pid_tgid();
}

static __always_inline struct share *share_of(const struct syncord_lock *lock, u32 thread)
{
	u32 key = (lock->id & (SYNCORD_TARGETS - 1)) * SLOTS + (thread & (SLOTS - 1));

	return bpf_map_lookup_elem(&shares, &key);
}

static __always_inline struct total *total_of(const struct syncord_lock *lock)
{
	u32 key = lock->id;

	return bpf_map_lookup_elem(&totals, &key);
}

/* What is left of it in window `now`. */
static __always_inline u64 aged(u64 held, u64 window, u64 now)
{
	return now <= window ? held : now - window < 64 ? held >> (now - window) : 0;
}

/* Which window it is, as far as is known: not how long the section that goes on will be. */
static __always_inline u64 window_at(const struct total *t, u64 now)
{
	u64 length = SECTIONS * t->longest, most = STRETCH * window_ns;

	length = length < window_ns ? window_ns : length < most ? length : most;
	return t->window + (now > t->begun ? (now - t->begun) / length : 0);
}

/* By how much it has had more than its part of all: the time in which others may catch up. */
static __always_inline u64 beyond(const struct syncord_lock *lock, u32 thread)
{
	struct share *s = share_of(lock, thread);
	struct total *t = total_of(lock);
	u64 now, users, all, mine;

	if (!thread || !s || !t)
		return 0;
	now = window_at(t, bpf_ktime_get_ns());
	users = t->users > t->users_before ? t->users : t->users_before;
	mine = aged(s->held, s->window, now) * users;
	all = aged(t->held, t->window, now);
	return users > 1 && mine > all ? mine - all : 0;
}

/* By the owner. */
static __always_inline void go_on(struct total *t, u64 now)
{
	u64 window = window_at(t, now);

	if (window <= t->window)
		return;
	t->held = aged(t->held, t->window, window);
	t->longest = aged(t->longest, t->window, window);
	t->users_before = window == t->window + 1 ? t->users : 0;
	t->users = 0;
	t->window = window;
	t->begun = now;
}

/* By the new owner. */
static __always_inline void account_begin(const struct syncord_lock *lock, u32 thread)
{
	struct total *t = total_of(lock);

	if (!thread || !t)
		return;
	t->since = bpf_ktime_get_ns();
	go_on(t, t->since);
}

/* By the owner, before it leaves; for how long it has been inside. */
static __always_inline u64 account_end(const struct syncord_lock *lock, u32 thread)
{
	struct share *s = share_of(lock, thread);
	struct total *t = total_of(lock);
	u64 now = bpf_ktime_get_ns(), held;

	if (!thread || !s || !t || !t->since)
		return 0; /* it came before the policy */
	held = now - t->since;
	at_most(&t->longest, held); /* first: it stretches the window that it may have begun in */
	go_on(t, now);
	if (s->window < t->window || !s->held) {
		s->held = aged(s->held, s->window, t->window);
		s->window = t->window;
		t->users++;
	}
	s->held += held;
	t->held += held;
	t->since = 0;
	return held;
}
#endif
