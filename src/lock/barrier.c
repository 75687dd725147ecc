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

/*
 * The state: below, arrivals in rounds that are not over; above, which is what waiters poll and
 * sleep on, rounds that are over, behind a bit that says that somebody sleeps.  One word, since
 * more threads may come than a round has participants: whoever arrives learns by one add which
 * round it is in, also while the last participant of one before is about to end that.
 */
#define SOMEBODY_SLEEPS 1u
#define ONE_ROUND	2u
#define ABOVE		32

#define DESTROYER 1u /* in `left` */

static uint32_t above(uint64_t state)
{
	return (uint32_t)(state >> ABOVE);
}

/* The upper half. */
static uint32_t *rounds_of(struct fg_barrier *b)
{
	return (uint32_t *)_fg_barrier_state(b) + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

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

/* Rounds end in any order: a later one that ends first ends one of those before it, too. */
static bool is_over(uint32_t rounds, uint32_t end)
{
	return (int32_t)((rounds & ~SOMEBODY_SLEEPS) - end) >= 0;
}

/*
 * Everybody's arrivals change the word, so a compare-and-swap seldom works, and an OR always.  It
 * may come when the round is over: then the next one ends with a wake-up too many.
 */
static void sleep_through(struct fg_barrier *b, struct fg_self *t, uint32_t end)
{
	const uint64_t sleeps = (uint64_t)SOMEBODY_SLEEPS << ABOVE;

	fg_participants_are_late();
	for (;;) {
		/* Acquire, both: pair with the release of the last arrival. */
		uint64_t have = fg_load_acquire(_fg_barrier_state(b));

		if (!(have & sleeps) && !is_over(above(have), end))
			have = fg_or_acquire(_fg_barrier_state(b), sleeps) | sleeps;
		if (is_over(above(have), end))
			return;
		fg_count(t, FG_STAT_PARKS, 1);
		fg_futex_wait(rounds_of(b), above(have), FG_FUTEX_ANY, NULL);
	}
}

static void end_round(struct fg_barrier *b)
{
	uint64_t have = fg_load_relaxed(_fg_barrier_state(b)), next;

	do {
		next = have & ~((uint64_t)SOMEBODY_SLEEPS << ABOVE);
		next += ((uint64_t)ONE_ROUND << ABOVE) - b->count;
	} while (!fg_cas64_seq_cst(_fg_barrier_state(b), &have, next));
#ifndef FG_BROKEN_BARRIER /* a test proves that the tests notice */
	if (above(have) & SOMEBODY_SLEEPS)
		fg_futex_wake(rounds_of(b), INT32_MAX, FG_FUTEX_ANY);
#endif
}

static void wait_for_end(struct fg_barrier *b, struct fg_self *t, uint32_t rounds, uint32_t end)
{
	struct fg_wait w = fg_wait_for_event(t, &b->history);
	/* First: whether to look at all.  The line is everybody's, and it has just been ours. */
	bool in_time = fg_decide(&w) == FG_SPIN;

	while (in_time && !is_over(rounds, end)) {
		in_time = fg_spin_while(&w, rounds_of(b), ~SOMEBODY_SLEEPS,
					rounds & ~SOMEBODY_SLEEPS, NULL);
		/* Acquire: as in sleep_through(). */
		if (in_time)
			rounds = above(fg_load_acquire(_fg_barrier_state(b)));
	}
	if (!in_time)
		sleep_through(b, t, end);
	fg_event_over(&w, in_time);
}

bool _fg_barrier_wait(struct fg_barrier *b)
{
	struct fg_self *t = fg_self();
	uint32_t count = b->count, rounds, before;
	uint64_t have;
	bool last;

	fg_participant_arrives(t);
	/* Acquire and release: what each has done before is seen by all after the round. */
	have = fg_add_acq_rel(_fg_barrier_state(b), 1);
	rounds = above(have);
	before = (uint32_t)have; /* arrivals, of more than one round where the last is held up */
	last = before % count == count - 1;
	if (last)
		end_round(b);
	else
		wait_for_end(b, t, rounds,
			     (rounds & ~SOMEBODY_SLEEPS) + (before / count + 1) * ONE_ROUND);
	fg_participant_leaves(t);
	leave(b);
	return last;
}

void _fg_barrier_destroy(struct fg_barrier *b)
{
	/* Rounds and leavers are both counted modulo 2^31, and so is their product. */
	uint64_t state = fg_load_acquire(_fg_barrier_state(b));
	uint32_t count = b->count ? b->count : 1; /* of zeroes: nobody has come */
	/* Of all rounds, also of those that their last participant has not ended yet. */
	uint32_t rounds = (above(state) >> 1) + (uint32_t)state / count;
	uint32_t all = rounds * count * FG_BARRIER_LEAVER, left;

	while (((left = fg_load_acquire(&b->left)) & ~DESTROYER) != all) {
		if (!(left & DESTROYER) && !fg_cas_relaxed(&b->left, &left, left | DESTROYER))
			continue;
		fg_futex_wait(&b->left, left | DESTROYER, FG_FUTEX_ANY, NULL);
	}
}
