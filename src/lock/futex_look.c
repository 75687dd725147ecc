/* SPDX-License-Identifier: MIT */
/*
 * What is known of words that other libraries wait at: one table for the process, hashed by
 * address.  Two words that meet in an entry cost each other looks, never a wake-up: whatever is in
 * here, what follows a look is the kernel's own wait, or the news that the word has changed, which
 * the looker has seen (test/verify/late.pml).
 *
 * The rule was found with a prototype (docs/design/experiments.md): how long the
 * sleeps of a word take says little about when it changes, as with eight threads on one lock sleeps
 * are long though the word changes every 10 us.  What tells is what looking has cost, and what it
 * has saved.
 */
#include "lock/futex_look.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/count.h"
#include "runtime/decide.h"
#include "runtime/look.h"
#include "sys/clock.h"
#include "sys/filter.h"

/*
 * A word's sleeps let looks in vain cost as much as they have.  One in so many is timed, by the
 * thread's CPU clock; what these stand for is WORD_CAP_NS at the most.  The two calls of one in 8
 * were 3 % of the CPU time of a pool that does little work.
 */
#define TIMED_EVERY 32u

#define WORD_CAP_NS   (4 * (int64_t)FG_LOOK_NS)
#define FIRST_LOOK_NS (FG_LOOK_NS / 8) /* what is typical of a word before its first look */

/*
 * An entry goes to another word after so many waits for others in a row.  Not varied.
 */
#define UNUSED_WAITS 16u

/* So many threads in a row that wait for the same value to go away: it is a lock's. */
#define LOCKS_WAITERS 2u
#define WAITERS_MAX   8u

/* Every so many looks of a thread that looks again: is it a real-time thread?  Not varied. */
#define REAL_TIME_EVERY 16u

#define WORDS 2048u
static struct word {
	const uint32_t *address; /* set by a wait that the kernel has accepted */
	struct fg_budget budget;
	uint32_t typical_ns; /* looks that came in time, smoothed */
	uint32_t value;	     /* that the last waiter saw */
	uint32_t waiter;     /* the last one */
	uint32_t waiters;    /* in a row that saw this value: WAITERS_MAX at most */
	uint32_t asked;	     /* the last one that was asked for its scheduling policy */
	uint32_t looks;
	uint32_t sleeps;       /* to time some */
	uint32_t others;       /* waits for other words since the last one for this */
	uint32_t looked_until; /* of a lock: in units of 2^10 ns */
} __attribute__((aligned(FG_CACHE_LINE))) words[WORDS];
_Static_assert(sizeof(struct word) == FG_CACHE_LINE, "words of two CPUs share no line");

static struct word *word_of(const uint32_t *address)
{
	return &words[((uintptr_t)address >> 2) * 0x9e3779b97f4a7c15u >> 53];
}
_Static_assert(WORDS == 1u << (64 - 53), "the top bits of the product");

/* Also of a thread that is not set up, and never 0. */
static uint32_t me(void)
{
	return (uint32_t)((uintptr_t)&fg_self_tls >> 3) | 1u;
}

bool _fg_futex_is_known(const uint32_t *address)
{
	return fg_load_relaxed(&word_of(address)->address) == address;
}

void _fg_futex_accepted(const uint32_t *address)
{
	struct word *w = word_of(address);
	const uint32_t *had = fg_load_relaxed(&w->address);
	uint32_t others = fg_load_relaxed(&w->others);

	if (had == address)
		return;
	if (had && others < UNUSED_WAITS) {
		fg_store_relaxed(&w->others, others + 1);
		return;
	}
	fg_store_relaxed(&w->others, 0);
	fg_store_relaxed(&w->budget.left_ns, FG_LOOK_NS);
	fg_store_relaxed(&w->typical_ns, FIRST_LOOK_NS);
	fg_store_relaxed(&w->waiters, 0);
	fg_store_relaxed(&w->address, address);
}

static void note_waiter(struct word *w, uint32_t value)
{
	uint32_t waiters = fg_load_relaxed(&w->waiters), who = me();

	if (fg_load_relaxed(&w->others))
		fg_store_relaxed(&w->others, 0);

	if (fg_load_relaxed(&w->value) != value) {
		fg_store_relaxed(&w->value, value);
		fg_store_relaxed(&w->waiters, 0);
	} else if (waiters < WAITERS_MAX && fg_load_relaxed(&w->waiter) != who) {
		fg_store_relaxed(&w->waiters, waiters + 1);
	}
	if (fg_load_relaxed(&w->waiter) != who)
		fg_store_relaxed(&w->waiter, who);
}

static bool is_lock(const struct word *w)
{
	return fg_load_relaxed(&w->waiters) >= LOCKS_WAITERS;
}

/*
 * A lock that becomes free goes to one waiter.  Others that had looked as well would have looked in
 * vain and would not know; so one looks, whatever has become of it after its time.
 */
static bool is_looked_at(const struct word *w, uint64_t now)
{
	uint32_t left = fg_load_relaxed(&w->looked_until) - (uint32_t)(now >> 10);

	return is_lock(w) && left - 1 <= FG_LOOK_NS >> 10; /* 0: nobody */
}

static bool is_real_time(struct word *w, const struct fg_self *t)
{
	uint32_t who = me(), n = fg_load_relaxed(&w->looks);

	fg_store_relaxed(&w->looks, n + 1);
	if (fg_load_relaxed(&w->asked) == who && n % REAL_TIME_EVERY)
		return false;
	if (fg_is_real_time(t)) {
		fg_store_relaxed(&w->asked, 0);
		return true;
	}
	fg_store_relaxed(&w->asked, who);
	return false;
}

/*
 * Whether the word is there, before it is read here: it may have been unmapped since its last wait,
 * and the kernel says EFAULT where a load faults.  FUTEX_CMP_REQUEUE of nobody compares it, and
 * does nothing (futex(2)): 0, or -EAGAIN.
 */
static long ask_kernel(const struct fg_self *t, const uint32_t *word, uint32_t value)
{
	long r = -EPERM;

	if (!fg_call_begins(t->id))
		return r;
	r = fg_syscall6(SYS_futex, (long)word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)word, value);
	fg_call_ends(t->id);
	return r;
}

static int64_t cost(uint64_t took)
{
	return took < FG_LOOK_COST_NS ? (int64_t)took : FG_LOOK_COST_NS;
}

/* The look itself, and what it teaches. */
static bool spin(struct word *w, struct fg_self *t, struct fg_look *look, const uint32_t *word,
		 uint32_t value, uint64_t began)
{
	struct fg_wait wait = {.self = t, .look = look};
	int64_t earned;
	uint64_t took;
	bool in_time, paid;

	fg_store_relaxed(&w->looked_until, (uint32_t)((began + look->most_ns) >> 10));
	in_time = fg_spin_while(&wait, word, ~0u, value, NULL);
	fg_store_relaxed(&w->looked_until, 0);
	took = fg_now_ns() - began;
	/*
	 * After a yield a thread of this CPU has changed it: to switch to that one and back costs
	 * about what a sleep does.
	 */
	paid = in_time && !look->has_yielded;
	if (in_time) {
		uint64_t typical = fg_load_relaxed(&w->typical_ns);

		typical = (3 * typical + (took < FG_LOOK_NS ? took : FG_LOOK_NS)) / 4;
		fg_store_relaxed(&w->typical_ns, (uint32_t)typical);
	}
	earned = (paid ? (int64_t)fg_look_saves() : 0) - cost(took);
	fg_budget_add(&w->budget, earned);
	fg_look_earned(t, earned);
	fg_count(t, in_time ? FG_STAT_LOOKS_IN_TIME : FG_STAT_LOOKS_IN_VAIN, 1);
	return in_time;
}

static bool ask_and_spin(struct word *w, struct fg_self *t, struct fg_look *look,
			 const uint32_t *word, uint32_t value, uint64_t began)
{
	long r = ask_kernel(t, word, value);

	if (r)
		return r == -EAGAIN;
	fg_count(t, FG_STAT_LOOKS, 1);
	return spin(w, t, look, word, value, began);
}

bool _fg_futex_look(const uint32_t *word, uint32_t value)
{
	struct word *w = word_of(word);
	struct fg_look look = {.most_ns = 4 * (uint64_t)fg_load_relaxed(&w->typical_ns) + 2000};
	enum fg_look_room room = FG_LOOK_NO_BUDGET;
	struct fg_self *t;
	uint64_t now;
	bool changed;

	note_waiter(w, value);
	if (look.most_ns > FG_LOOK_NS)
		look.most_ns = FG_LOOK_NS;
	if (fg_budget_left(&w->budget, WORD_CAP_NS) >= (int64_t)look.most_ns) {
		t = fg_self();
		now = fg_now_ns();
		room = is_looked_at(w, now) ? FG_LOOK_NO_ROOM : fg_look_may_begin(&look, t, now);
	}
	if (room != FG_LOOK) {
		if (room == FG_LOOK_NO_BUDGET)
			fg_count(&fg_self_tls, FG_STAT_LOOKS_NO_BUDGET, 1);
		return false;
	}
	look.yields = !is_lock(w);
	changed = !is_real_time(w, t) && ask_and_spin(w, t, &look, word, value, now);
	fg_look_ends(&look);
	return changed;
}

/* ---- sleeps -------------------------------------------------------------------------- */

/* Where calls are filtered, there are no looks either. */
static uint64_t thread_cpu_ns(void)
{
	uint32_t id = fg_self_tls.id;
	struct timespec t;
	int err;

	if (!fg_call_begins(id))
		return 0;
	err = fg_clock_read(CLOCK_THREAD_CPUTIME_ID, &t);
	fg_call_ends(id);
	return err ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t _fg_futex_sleeps(const uint32_t *word)
{
	struct word *w = word_of(word);
	uint32_t n = fg_load_relaxed(&w->sleeps);

	fg_store_relaxed(&w->sleeps, n + 1);
	return n % TIMED_EVERY ? 0 : thread_cpu_ns();
}

void _fg_futex_slept(const uint32_t *word, uint64_t since, bool woken)
{
	uint64_t now = thread_cpu_ns();

	if (now > since)
		fg_budget_add(&word_of(word)->budget,
			      (int64_t)fg_look_slept(now - since, woken) * TIMED_EVERY);
}
