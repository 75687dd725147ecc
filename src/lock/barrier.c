/* SPDX-License-Identifier: MIT */
/*
 * Barriers.  A participant that is runnable but off its CPU is on the critical
 * path of all others, of those that wait for locks too: whoever spins may have
 * taken its CPU.  That is what the FlexGuard paper's lock loses by on
 * Streamcluster (SOSP 2025, section 5).  So each participant says in its slot
 * that it is one, and fg_decide() looks for those that want a CPU.
 */
#include "lock/barrier.h"

#include "arch/arch.h"
#include "runtime/count.h"

#define SOMEBODY_SLEEPS 1u
#define DESTROYER	1u /* in `left` */

void _fg_barrier_init(struct fg_barrier *b, uint32_t count)
{
	*b = (struct fg_barrier){.count = count};
}

/* Release: pairs with the acquire in _fg_barrier_destroy().  The barrier may be gone afterwards. */
static void leave(struct fg_barrier *b)
{
	uint32_t left = __atomic_add_fetch(&b->left, FG_BARRIER_LEAVER, __ATOMIC_RELEASE);

	if (fg_unlikely(left & DESTROYER))
		fg_futex_wake(&b->left, 1, FG_FUTEX_ANY);
}

static void sleep_through(struct fg_barrier *b, struct fg_self *t, uint32_t round)
{
	uint32_t word;

	fg_participants_are_late();
	/* Acquire: pairs with the release of the last arrival. */
	while (((word = fg_load_acquire(&b->word)) & ~SOMEBODY_SLEEPS) == round) {
		if (!(word & SOMEBODY_SLEEPS) &&
		    !fg_cas_relaxed(&b->word, &word, round | SOMEBODY_SLEEPS))
			continue;
		fg_count(t, FG_STAT_PARKS, 1);
		fg_futex_wait(&b->word, round | SOMEBODY_SLEEPS, FG_FUTEX_ANY, NULL);
	}
}

bool _fg_barrier_wait(struct fg_barrier *b)
{
	struct fg_self *t = fg_self();
	uint32_t round = fg_load_relaxed(&b->word) & ~SOMEBODY_SLEEPS; /* cannot end without us */
	bool last;

	fg_participant_arrives(t);
	/* Acquire and release: what each has done before is seen by all after the round. */
	last = fg_add_acq_rel(&b->arrived, 1) + 1 == b->count;
	if (last) {
		fg_store_relaxed(&b->arrived, 0);
#ifdef FG_BROKEN_BARRIER /* a test proves that the tests notice */
		fg_store_release(&b->word, round + 2);
#else
		if (fg_xchg_acq_rel(&b->word, round + 2) & SOMEBODY_SLEEPS)
			fg_futex_wake(&b->word, INT32_MAX, FG_FUTEX_ANY);
#endif
	} else {
		struct fg_wait w = fg_wait_for_event(t, &b->history);
		bool in_time = fg_spin_while(&w, &b->word, ~SOMEBODY_SLEEPS, round, NULL);

		if (!in_time)
			sleep_through(b, t, round);
		fg_event_over(&w, in_time);
	}
	fg_participant_leaves(t);
	leave(b);
	return last;
}

void _fg_barrier_destroy(struct fg_barrier *b)
{
	/* Rounds and leavers are both counted modulo 2^31, and so is their product. */
	uint32_t all = (b->word >> 1) * b->count * FG_BARRIER_LEAVER, left;

	while (((left = fg_load_acquire(&b->left)) & ~DESTROYER) != all) {
		if (!(left & DESTROYER) && !fg_cas_relaxed(&b->left, &left, left | DESTROYER))
			continue;
		fg_futex_wait(&b->left, left | DESTROYER, FG_FUTEX_ANY, NULL);
	}
}
