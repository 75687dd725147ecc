/* SPDX-License-Identifier: MIT */
#include "lock/sem.h"

#include <errno.h>

#include "runtime/count.h"

#define ONE_SLEEPER (1ull << 32)

/*
 * Those that are awake take the semaphore past those that sleep for it ("barging"), which are woken
 * by each post and find nothing: on a socket of 16 CPUs one of 16 threads had nothing for 20 ms
 * (simulated, 1 us inside and outside).  When no sleeper has come through for TURN_NS, more or
 * less, those that are awake leave the next value to one, for as long as a wake-up takes, GRACE_NS.
 * Nothing depends on that.  What others do: docs/design/lock.md, "Fairness".  Not varied.
 */
#define TURN_NS	 1000000u
#define GRACE_NS FG_EVENT_NS

/*
 * One that sees values come and others take them, and has its CPU to itself, need not sleep after
 * FG_EVENT_NS: what it waits for does happen.  For so long in all.  Not varied; where threads share
 * CPUs it costs 10 to 25 % (8 and 32 threads, 2-CPU VM).
 */
#define RACES_NS 4000000u

/* Not in the semaphore, which other processes map. */
static struct fg_spin_histories histories;

/*
 * Since when: low bits of the clock, in us, of which the last two say whose turn it is; 0: nobody
 * has gone past a sleeper since one came through.  As with the histories, two semaphores may meet
 * in one.
 */
static uint32_t turns[256];
#define SLEEPERS_TURN 1u /* with the next value */
#define TURN_BEGUN    2u /* there is one, and somebody has left it */
#define TURN_BITS     3u

static uint32_t *turn_at(const uint64_t *sem)
{
	return &turns[(uint32_t)((uintptr_t)sem >> 4) * 0x9e3779b1u >> 24];
}

static uint32_t *value_of(uint64_t *sem)
{
	return (uint32_t *)sem + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

bool _fg_sem_is_empty(uint64_t *sem)
{
	return !fg_load_relaxed(value_of(sem));
}

bool _fg_sem_trywait(uint64_t *sem)
{
	uint64_t have = fg_load_relaxed(sem);

	while ((uint32_t)have)
		/* Acquire: pairs with the release of glibc's sem_post(). */
		if (__atomic_compare_exchange_n(sem, &have, have - 1, true, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

static uint32_t turn_clock(uint64_t ns)
{
	return (uint32_t)(ns / 1000) & ~TURN_BITS;
}

/*
 * This thread has gone past a sleeper.  Posts wake sleepers in turn, who go to the end of the queue
 * if they find nothing.  Turns that are as long as so many posts would come to the same few each
 * time: 10 of 16 threads had none (simulated, 60 us inside).
 */
static void note_barging(const uint64_t *sem)
{
	uint64_t ns = fg_now_ns();
	uint32_t *turn = turn_at(sem), began = fg_load_relaxed(turn), now = turn_clock(ns);

	if (!began)
		fg_store_relaxed(turn, now ? now : TURN_BITS + 1);
	else if (!(began & SLEEPERS_TURN) &&
		 now - began >= (TURN_NS / 2 + TURN_NS / 64 * (ns % 64)) / 1000)
		fg_store_relaxed(turn, now | SLEEPERS_TURN);
}

/* There are sleepers. */
static __attribute__((noinline)) bool take_past(uint64_t *sem)
{
	struct fg_self *t = fg_self();

	if ((fg_load_relaxed(turn_at(sem)) & SLEEPERS_TURN) || !_fg_sem_trywait(sem))
		return false;
	/* One barging in 16 looks at the clock. */
	if (!fg_has_slot(t) || !++fg_thread_mine(t)->barges)
		note_barging(sem);
	return true;
}

bool _fg_sem_fast(uint64_t *sem)
{
	uint64_t have = fg_load_relaxed(sem);

	while (have - 1 < FG_SEM_MAX) /* a value, and no sleepers */
		/* Acquire: likewise. */
		if (fg_likely(__atomic_compare_exchange_n(sem, &have, have - 1, true,
							  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
			return true;
	return (uint32_t)have && take_past(sem);
}

/* There was a value that was not to be had.  How long to leave it alone; 0: try again. */
static uint32_t sleepers_turn_ns(const uint64_t *sem)
{
	uint32_t *turn = turn_at(sem), began = fg_load_relaxed(turn), passed;

	if (!(began & SLEEPERS_TURN))
		return 0;
	if (!(began & TURN_BEGUN)) {
		fg_store_relaxed(turn, turn_clock(fg_now_ns()) | SLEEPERS_TURN | TURN_BEGUN);
		return GRACE_NS;
	}
	passed = turn_clock(fg_now_ns()) - (began & ~TURN_BITS);
	if (passed < GRACE_NS / 1000)
		return GRACE_NS - 1000 * passed;
	fg_store_relaxed(turn, 0);
	return 0;
}

void _fg_sem_slept(const uint64_t *sem)
{
	uint32_t *turn = turn_at(sem);

	if (fg_load_relaxed(turn))
		fg_store_relaxed(turn, 0);
}

/*
 * Leaves a value to those that sleep, also where spinning has not paid.  False: it is time to
 * sleep.
 */
static bool leave_it(uint64_t *sem, struct fg_self *self, uint32_t ns)
{
	fg_spin_history none = 0;
	struct fg_wait w = fg_wait_for_event(self, &none);
	uint32_t value = fg_load_relaxed(value_of(sem));
	struct fg_deadline soon;

	fg_deadline_in(&soon, ns);
	return !value || fg_spin_while(&w, value_of(sem), ~0u, value, &soon) ||
	       fg_deadline_passed(&soon);
}

/* Values do come: the limit of a spin begins anew. */
static void renew(struct fg_wait *w, uint64_t *first_ns)
{
	if (!*first_ns)
		*first_ns = w->since_ns;
	if (!w->crowded && w->since_ns - *first_ns < RACES_NS)
		w->since_ns = 0;
}

/*
 * Four questions without a look for each value that others took, BACKOFF_MAX at most: the more that
 * wait, the fewer of them look at the word, which its owner has to get back (backoff: Anderson,
 * TPDS 1990).  One for each, and 64 at most: with 104 CPUs 9 % less (simulated, 1 us).
 */
#define BACKOFF_MAX 256u

static bool back_off(struct fg_wait *w, uint32_t lost)
{
	uint32_t n;

	for (n = lost < BACKOFF_MAX / 4 ? 4 * lost : BACKOFF_MAX; n; n--) {
		if (fg_decide(w) == FG_BLOCK)
			return false;
		fg_pause();
	}
	return true;
}

bool _fg_sem_spin(uint64_t *sem, const struct fg_deadline *deadline)
{
	struct fg_wait w = fg_wait_for_event(fg_self(),
					     fg_spin_history_at(&histories, (uintptr_t)sem >> 4));
	uint64_t first_ns = 0;
	uint32_t lost = 0;
	bool got = false, goes_on = true;
	struct fg_deadline soon;

	/* What never sleeps can neither be cancelled nor be interrupted: glibc's wait can. */
	if (fg_load_relaxed(&fg_policy_now) == FG_POLICY_SPIN &&
	    (!deadline || fg_deadline_left(deadline) > RACES_NS)) {
		fg_deadline_in(&soon, RACES_NS);
		deadline = &soon;
	}
	while (goes_on) {
		uint32_t leave_ns;

		renew(&w, &first_ns);
		if (_fg_sem_is_empty(sem)) {
			goes_on = (w.crowded || back_off(&w, lost++)) &&
				  fg_spin_while(&w, value_of(sem), ~0u, 0, deadline);
			continue;
		}
		if ((got = _fg_sem_fast(sem)))
			break;
		leave_ns = sleepers_turn_ns(sem);
		if (leave_ns && deadline && fg_deadline_left(deadline) <= leave_ns) {
			if ((got = _fg_sem_trywait(sem)))
				break;
		} else if (leave_ns) {
			goes_on = leave_it(sem, w.self, leave_ns);
		}
	}
	if (w.asked)
		fg_event_over(&w, got);
	return got;
}

/*
 * Value and sleepers are one word: a post that does not see the sleeper comes
 * before it, and the sleeper sees its value.
 */
static int sleep_for(uint64_t *sem, const struct fg_deadline *deadline)
{
	uint64_t have = __atomic_add_fetch(sem, ONE_SLEEPER, __ATOMIC_RELAXED);
	bool slept = false;

	for (;;) {
		if ((uint32_t)have) {
			/* Acquire: pairs with the release in _fg_sem_post(). */
			if (!__atomic_compare_exchange_n(sem, &have, have - 1 - ONE_SLEEPER, true,
							 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				continue;
			if (slept)
				_fg_sem_slept(sem);
			return 0;
		}
		if (fg_futex_wait(value_of(sem), 0, FG_FUTEX_ANY, deadline) == -ETIMEDOUT) {
			/* Not woken, so it takes nobody's wake-up with it. */
			__atomic_fetch_sub(sem, ONE_SLEEPER, __ATOMIC_RELAXED);
			return ETIMEDOUT;
		}
		slept = true;
		have = fg_load_relaxed(sem);
	}
}

int _fg_sem_wait(uint64_t *sem, const struct fg_deadline *deadline)
{
	if (_fg_sem_fast(sem) || _fg_sem_spin(sem, deadline))
		return 0;
	fg_count(fg_self(), FG_STAT_PARKS, 1);
	return sleep_for(sem, deadline);
}

int _fg_sem_post(uint64_t *sem)
{
	uint64_t have = fg_load_relaxed(sem);

	do {
		if ((uint32_t)have >= FG_SEM_MAX)
			return EOVERFLOW;
		/* Release: pairs with the acquire of whoever takes it. */
	} while (!__atomic_compare_exchange_n(sem, &have, have + 1, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
#ifdef FG_BROKEN_SEM /* a test proves that the tests notice */
	if (have == ONE_SLEEPER)
#else
	if (have >= ONE_SLEEPER)
#endif
		fg_futex_wake(value_of(sem), 1, FG_FUTEX_ANY);
	return 0;
}
