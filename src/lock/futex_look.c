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
#include "sys/filter.h"

/* What a sleep and a wake cost, all in all: 12 us on a 2-CPU VM with Linux 6.18. */
#define SAVED_NS 12000

#define WORD_CAP_NS   (4 * (int64_t)FG_LOOK_NS)
#define FIRST_LOOK_NS (FG_LOOK_NS / 8) /* what is typical of a word before its first look */
/* A look that was longer, since the thread was kept off its CPU in it, cost no more CPU time. */
#define COST_MAX_NS 4000000

/* An entry that has not been used for so long goes to the next word that wants it.  Not varied. */
#define UNUSED_NS 10000000u

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
	uint64_t now;

	if (had == address)
		return;
	now = fg_now_ns();
	if (had && now - fg_load_relaxed(&w->budget.at_ns) < UNUSED_NS)
		return;
	fg_store_relaxed(&w->budget.at_ns, now);
	fg_store_relaxed(&w->budget.left_ns, FG_LOOK_NS);
	fg_store_relaxed(&w->typical_ns, FIRST_LOOK_NS);
	fg_store_relaxed(&w->waiters, 0);
	fg_store_relaxed(&w->address, address);
}

static void note_waiter(struct word *w, uint32_t value)
{
	uint32_t waiters = fg_load_relaxed(&w->waiters), who = me();

	if (fg_load_relaxed(&w->value) != value) {
		fg_store_relaxed(&w->value, value);
		fg_store_relaxed(&w->waiters, 0);
	} else if (waiters < WAITERS_MAX && fg_load_relaxed(&w->waiter) != who) {
		fg_store_relaxed(&w->waiters, waiters + 1);
	}
	if (fg_load_relaxed(&w->waiter) != who)
		fg_store_relaxed(&w->waiter, who);
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
	return took < COST_MAX_NS ? (int64_t)took : COST_MAX_NS;
}

/* The look itself, and what it teaches. */
static bool spin(struct word *w, struct fg_self *t, const uint32_t *word, uint32_t value,
		 uint64_t most_ns)
{
	struct fg_look look = {.most_ns = most_ns,
			       .yields = fg_load_relaxed(&w->waiters) < LOCKS_WAITERS};
	struct fg_wait wait = {.self = t, .look = &look};
	uint64_t began = fg_now_ns(), took;
	bool in_time = fg_spin_while(&wait, word, ~0u, value, NULL);

	took = fg_now_ns() - began;
	if (in_time) {
		uint64_t typical = fg_load_relaxed(&w->typical_ns);

		typical = (3 * typical + (took < FG_LOOK_NS ? took : FG_LOOK_NS)) / 4;
		fg_store_relaxed(&w->typical_ns, (uint32_t)typical);
	}
	fg_budget_add(&w->budget, (in_time ? SAVED_NS : 0) - cost(took));
	fg_look_earned(t, (in_time ? SAVED_NS : 0) - cost(took));
	fg_count(t, in_time ? FG_STAT_LOOKS_IN_TIME : FG_STAT_LOOKS_IN_VAIN, 1);
	return in_time;
}

bool _fg_futex_look(const uint32_t *word, uint32_t value)
{
	struct word *w = word_of(word);
	uint64_t now = fg_now_ns(), most = 4 * (uint64_t)fg_load_relaxed(&w->typical_ns) + 2000;
	enum fg_look_room room = FG_LOOK_NO_BUDGET;
	struct fg_self *t;
	long r;

	note_waiter(w, value);
	if (most > FG_LOOK_NS)
		most = FG_LOOK_NS;
	if (fg_budget_left(&w->budget, WORD_CAP_NS, now) >= (int64_t)most) {
		t = fg_self();
		room = fg_look_may_begin(t, most, now);
	}
	if (room != FG_LOOK) {
		if (room == FG_LOOK_NO_BUDGET)
			fg_count(&fg_self_tls, FG_STAT_LOOKS_NO_BUDGET, 1);
		return false;
	}
	if (is_real_time(w, t))
		return false;
	r = ask_kernel(t, word, value);
	if (r)
		return r == -EAGAIN;
	fg_count(t, FG_STAT_LOOKS, 1);
	return spin(w, t, word, value, most);
}
