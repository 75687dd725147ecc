/* SPDX-License-Identifier: MIT */
#include "lock/sem.h"

#include <errno.h>

#include "lock/gate.h"
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
 * One that has just come looks so often by itself before it passes the gate, if that takes no
 * longer, and while it has lost no more than so many values to others.  So some look beside the
 * owner of the gate, whose way out is in nobody's way then: 5 % (8 threads on one socket, 1 us,
 * simulated).  Four times the looks, twice the time, 4 or 8 losses are no better.
 */
#define LOOKS_ALONE 64u
#define ALONE_NS    5000u
#define LOST_ALONE  2u

/*
 * How long one leaves the semaphore to the owner of the gate, which is on a CPU, before it goes
 * around it.  Not varied.
 */
#define PATIENCE_NS 2000000u

/*
 * The owner of the gate asks for a value when others have taken those that came for so long, as a
 * mutex's head does (HANDOFF_NS); if it has seen none come, after the second time.  Not varied.
 */
#define OVERTAKEN_NS 5000u
#define UNSEEN_NS    25000u

/* One wait that spins. */
struct spin {
	struct fg_wait wait;
	const struct fg_deadline *deadline;
	uint64_t first_ns;  /* of the first clock reading */
	uint64_t passed_ns; /* the gate */
	uint32_t lost;	    /* races, and values seen that others took; LOST_ALONE: to the gate */
	bool around;	    /* the gate */
	bool at_gate;
	bool overtaken;		    /* there, and has seen it */
	bool was_in_vain;	    /* what the one before has done there */
	uint32_t turn, turn_before; /* while it asks */
	bool asks;		    /* and is counted as a sleeper for it */
};

/* Values do come: the limit of a spin begins anew. */
static void renew(struct spin *s)
{
	if (!s->first_ns)
		s->first_ns = s->wait.since_ns;
	if (!s->wait.crowded && s->wait.since_ns - s->first_ns < RACES_NS)
		s->wait.since_ns = 0;
}

/*
 * Leaves a value to those that sleep, also where spinning has not paid.  False: it is time to
 * sleep.
 */
static bool leave_it(uint64_t *sem, const struct spin *s, uint32_t ns)
{
	fg_spin_history none = 0;
	struct fg_wait w = fg_wait_for_event(s->wait.self, &none);
	uint32_t value = fg_load_relaxed(value_of(sem));
	struct fg_deadline soon;

	w.keeps_cpu = s->wait.keeps_cpu;
	fg_deadline_in(&soon, ns);
	return !value || fg_spin_while(&w, value_of(sem), ~0u, value, &soon) ||
	       fg_deadline_passed(&soon);
}

/* Before the gate.  False: it is time to sleep. */
static bool look_alone(uint64_t *sem, struct spin *s)
{
	uint64_t until = fg_now_ns() + ALONE_NS;

	for (uint32_t n = 0; _fg_sem_is_empty(sem); n++) {
		if (fg_decide(&s->wait) == FG_BLOCK)
			return false;
		if (n >= LOOKS_ALONE || (n % 2 && fg_now_ns() > until)) {
			s->lost = LOST_ALONE;
			return true;
		}
		fg_pause();
	}
	if (_fg_sem_is_empty(sem))
		s->lost = LOST_ALONE;
	renew(s);
	return true;
}

static uint64_t time_left(const struct spin *s)
{
	uint64_t spent = fg_now_ns() - s->first_ns, left = spent < RACES_NS ? RACES_NS - spent : 0,
		 theirs = fg_deadline_left(s->deadline);

	return theirs < left ? theirs : left;
}

static void pass_gate(uint64_t *sem, struct spin *s)
{
	struct fg_gate_wait w = {.self = s->wait.self, .is_event = true};
	enum fg_gate gate = FG_GATE_AROUND;
	uint64_t left;

	if (!s->first_ns)
		s->first_ns = s->wait.since_ns ? s->wait.since_ns : fg_now_ns();
	left = time_left(s);
	w.patience_ns = left < PATIENCE_NS ? left : PATIENCE_NS;
	if (left)
		gate = _fg_gate_pass(sem, &w);
	s->at_gate = s->wait.keeps_cpu = gate == FG_GATE_PASSED;
	s->around = !s->at_gate;
	if (!s->at_gate)
		return;
	s->passed_ns = fg_now_ns();
	s->was_in_vain = fg_load_relaxed(_fg_gate_note(sem)) == _fg_gate_noted(sem);
	if (!s->was_in_vain)
		renew(s);
}

/* If no value has come, the next one, which has seen none either, need not wait as long again. */
static void leave_gate(const uint64_t *sem, const struct spin *s, bool got)
{
	bool in_vain = !got && !s->overtaken && fg_deadline_left(s->deadline);

	/* Not read again, with the semaphore in hand: the next one looks at that line. */
	if (in_vain != s->was_in_vain)
		fg_store_relaxed(_fg_gate_note(sem), in_vain ? _fg_gate_noted(sem) : 0);
	_fg_gate_leave(sem);
}

/* That of sleepers, and back what it was: two semaphores may meet there. */
static void begin_turn(const uint64_t *sem, struct spin *s)
{
	s->turn_before = fg_load_relaxed(turn_at(sem));
	s->turn = turn_clock(fg_now_ns()) | SLEEPERS_TURN | TURN_BEGUN;
	fg_store_relaxed(turn_at(sem), s->turn);
}

static void end_turn(const uint64_t *sem, const struct spin *s)
{
	if (fg_load_relaxed(turn_at(sem)) == s->turn)
		fg_store_relaxed(turn_at(sem), s->turn_before);
}

/*
 * Whoever is back at once after a post wins each race with the owner of the gate.  So this one
 * counts itself as a sleeper, whose turn it is: the others leave it the next value.  A post makes a
 * call then.  Not beside those that do sleep, to whom that would be no turn.
 */
static void ask_in_time(uint64_t *sem, struct spin *s)
{
	if (fg_now_ns() - s->passed_ns < (s->overtaken ? OVERTAKEN_NS : UNSEEN_NS) ||
	    fg_load_relaxed(sem) >= ONE_SLEEPER)
		return;
	begin_turn(sem, s);
	__atomic_fetch_add(sem, ONE_SLEEPER, __ATOMIC_RELAXED);
	s->asks = true;
}

/* Of one that is counted as a sleeper. */
static bool take_counted(uint64_t *sem, const struct spin *s)
{
	uint64_t have = fg_load_relaxed(sem);

	while ((uint32_t)have)
		/* Acquire: pairs with the release of a post. */
		if (__atomic_compare_exchange_n(sem, &have, have - 1 - ONE_SLEEPER, true,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			end_turn(sem, s);
			return true;
		}
	return false;
}

/* At the gate.  False: it is time to sleep. */
static bool look_first(uint64_t *sem, struct spin *s)
{
	uint64_t left = fg_deadline_left(s->deadline);
	struct fg_deadline soon;

	if (!left)
		return false;
	ask_in_time(sem, s);
	if (s->asks)
		return true;
	_fg_gate_back_off(s->lost, s->passed_ns + OVERTAKEN_NS);
	fg_deadline_in(&soon, left < UNSEEN_NS ? left : UNSEEN_NS);
	if (fg_spin_while(&s->wait, value_of(sem), ~0u, 0, &soon)) {
		s->lost++; /* or it gets it now */
		s->overtaken = true;
		renew(s);
		return true;
	}
	return left > UNSEEN_NS && fg_deadline_passed(&soon);
}

/* False: it is time to sleep. */
static bool wait_for_value(uint64_t *sem, struct spin *s)
{
	/* Others have ended its turn: it was off its CPU. */
	if (s->asks && !(fg_load_relaxed(turn_at(sem)) & SLEEPERS_TURN))
		begin_turn(sem, s);
	if (s->wait.crowded || s->around || s->asks) {
		if (!fg_spin_while(&s->wait, value_of(sem), ~0u, 0, s->deadline))
			return false;
		renew(s);
		return true;
	}
	if (s->at_gate)
		return look_first(sem, s);
	if (s->lost < LOST_ALONE)
		return look_alone(sem, s);
	/* Whether its CPU is its own is not known before. */
	if (!s->wait.asked)
		return fg_decide(&s->wait) == FG_SPIN;
	pass_gate(sem, s);
	return true;
}

/* There was a value that it did not get.  How long to leave it alone. */
static uint32_t lost_value(const uint64_t *sem, struct spin *s)
{
	s->lost++;
	s->overtaken = s->at_gate;
	renew(s);
	return s->asks ? 0 : sleepers_turn_ns(sem);
}

bool _fg_sem_spin(uint64_t *sem, const struct fg_deadline *deadline)
{
	struct spin s = {
	    .wait = fg_wait_for_event(fg_self(),
				      fg_spin_history_at(&histories, (uintptr_t)sem >> 4)),
	    .deadline = deadline};
	bool got = false, goes_on = true;
	struct fg_deadline soon;
	uint32_t leave_ns;

	/* What never sleeps can neither be cancelled nor be interrupted: glibc's wait can. */
	if (fg_load_relaxed(&fg_policy_now) == FG_POLICY_SPIN &&
	    fg_deadline_left(deadline) > RACES_NS) {
		fg_deadline_in(&soon, RACES_NS);
		s.deadline = &soon;
	}
	while (goes_on && !got) {
		if (_fg_sem_is_empty(sem)) {
			goes_on = wait_for_value(sem, &s);
			continue;
		}
		got = s.asks ? take_counted(sem, &s) : _fg_sem_fast(sem);
		if (got || (s.wait.asked && fg_decide(&s.wait) == FG_BLOCK))
			break;
		leave_ns = lost_value(sem, &s);
		if (!leave_ns)
			goes_on = wait_for_value(sem, &s);
		else if (fg_deadline_left(s.deadline) <= leave_ns)
			got = _fg_sem_trywait(sem);
		else
			goes_on = leave_it(sem, &s, leave_ns);
	}
#ifdef FG_BROKEN_CANCEL /* a test proves that the tests notice */
	fg_testcancel();
#endif
#ifndef FG_BROKEN_ASKS /* a test proves that the tests notice */
	if (s.asks && !got) {
		end_turn(sem, &s);
		__atomic_fetch_sub(sem, ONE_SLEEPER, __ATOMIC_RELAXED);
	}
#endif
	if (s.at_gate)
		leave_gate(sem, &s, got);
	if (s.wait.asked)
		fg_event_over(&s.wait, got);
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
