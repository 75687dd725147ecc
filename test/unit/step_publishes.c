/* SPDX-License-Identifier: MIT */
/*
 * What a thread publishes when a signal handler has taken and released locks after a single
 * instruction of lock and unlock, each of them in turn, or after three in a row: while it has a
 * lock it is critical after each further instruction, and in the end it has none.
 */
#include "../tools/step.h"

#include <limits.h>

#ifdef STEP_SUPPORTED
#include "lock/lock.h"
#include "lock/rounds.h"

static struct fg_lock a, b, c, d, h, h2;
static uint32_t elsewhere; /* the helper has `b` */
static int go_on;
static long handler_at; /* the step after which it runs */
static int handler;

/* A clock of few instructions (linked with --wrap=fg_now_ns). */
uint64_t __wrap_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void)
{
	static uint64_t now = 1000000000;

	return now += 500;
}

/* By the test of the monitor (bpf/critical.h), but for the queue's nodes. */
static bool is_critical(const struct fg_self *t)
{
	const struct fg_slot *s = t->slot;
	const struct fg_lock *pending = (const struct fg_lock *)(uintptr_t)s->pending;
	uint32_t role = s->role & FG_ROLE_MASK;

	if (s->cs || role == FG_ROLE_LINKING || role == FG_ROLE_HEAD)
		return true;
	return role != FG_ROLE_WAITING && pending && (pending->word & FG_WORD_ID) == t->id;
}

static bool is_mine(const struct fg_lock *l)
{
	return (l->word & FG_WORD_ID) == fg_self_tls.id;
}

static void one_lock(void)
{
	_fg_lock(&h);
	_fg_unlock(&h);
}

static void two_locks(void)
{
	_fg_lock(&h2);
	_fg_lock(&h);
	_fg_unlock(&h);
	_fg_unlock(&h2);
}

/* A step costs microseconds: so many are looked at after the handler. */
#define STEPS_AFTER 40

static void two_crossed(void)
{
	_fg_lock(&h2);
	_fg_lock(&h);
	_fg_unlock(&h2);
	_fg_unlock(&h);
}

/* Which its thread may be taking or releasing. */
static void the_same(void)
{
	if (_fg_trylock(&a))
		_fg_unlock(&a);
}

static const struct {
	void (*run)(void);
	int times;
} handlers[] = {{one_lock, 1}, {two_locks, 3}, {two_crossed, 1}, {the_same, 1}};
#define HANDLERS ((int)(sizeof handlers / sizeof handlers[0]))

static void after_each(void)
{
	if (step_count >= handler_at && step_count < handler_at + handlers[handler].times)
		handlers[handler].run();
	else if (step_count > handler_at + STEPS_AFTER)
		step_end();
	if (is_mine(&a) || is_mine(&b) || is_mine(&c) || is_mine(&d))
		CHECK(is_critical(&fg_self_tls));
}

/* Only what is between these two is done in steps. */
static void begin(void)
{
	step_begin(after_each);
}

static void plain(void)
{
	begin();
	_fg_lock(&a);
	_fg_unlock(&a);
	step_end();
}

static void slow_lock(void)
{
	begin();
	force_slow_path(&fg_self_tls);
	_fg_lock(&a);
	step_end();
	_fg_unlock(&a);
}

/* A round is timed: the release forces the next lock to come the slow way. */
static void slow_release(void)
{
	force_slow_path(&fg_self_tls);
	_fg_lock(&a);
	fg_self_tls.times_head = 0;
	_fg_round_begins(&a, &fg_self_tls);
	begin();
	_fg_unlock(&a);
	step_end();
	_fg_lock(&a);
	_fg_unlock(&a);
}

static void nested_lock(void)
{
	_fg_lock(&a);
	begin();
	_fg_lock(&c);
	step_end();
	_fg_unlock(&c);
	_fg_unlock(&a);
}

static void nested_release(void)
{
	force_slow_path(&fg_self_tls);
	_fg_lock(&a);
	_fg_lock(&c);
	begin();
	_fg_unlock(&c);
	_fg_unlock(&a);
	step_end();
}

static void out_of_order(void)
{
	_fg_lock(&a);
	_fg_lock(&c);
	begin();
	_fg_unlock(&a);
	_fg_lock(&a);
	step_end();
	_fg_unlock(&c);
	_fg_unlock(&a);
}

static void three(void)
{
	_fg_lock(&a);
	_fg_lock(&c);
	begin();
	if (_fg_trylock(&b)) {
		_fg_unlock(&a);
		_fg_unlock(&c);
		step_end();
		_fg_unlock(&b);
	} else {
		step_end();
		_fg_unlock(&c);
		_fg_unlock(&a);
	}
}

/* The third one first, then the latest, then the second. */
static void four(void)
{
	bool has_b;

	_fg_lock(&a);
	has_b = _fg_trylock(&b);
	_fg_lock(&c);
	_fg_lock(&d);
	begin();
	_fg_unlock(&c);
	_fg_unlock(&d);
	step_end();
	if (has_b)
		_fg_unlock(&b);
	CHECK(is_critical(&fg_self_tls));
	_fg_unlock(&a);
}

/* In vain, where the helper has it. */
static void timed(void)
{
	struct fg_deadline soon;
	bool late;

	_fg_lock(&a);
	fg_deadline_in(&soon, 20000);
	begin();
	late = _fg_lock_slow(&b, &soon);
	step_end();
	CHECK(is_critical(&fg_self_tls));
	if (late)
		CHECK_EQ(fg_self_tls.only, (uint64_t)(uintptr_t)&a);
	else
		_fg_unlock(&b);
	CHECK(is_critical(&fg_self_tls));
	_fg_unlock(&a);
}

static void (*const pieces[])(void) = {
    plain, slow_lock, slow_release, nested_lock, nested_release, out_of_order, three, four, timed};
#define PIECES ((int)(sizeof pieces / sizeof pieces[0]))

/* Also of the next lock. */
static void check_that_none_is_left(int piece)
{
	const struct fg_self *t = &fg_self_tls;

	if (is_critical(t) || locks_announced(t))
		check_say("piece %d, handler %d after step %ld: only %#lx, cs %u", piece, handler,
			  handler_at, (unsigned long)t->only, t->slot->cs);
	CHECK(!is_critical(t));
	CHECK_EQ(locks_announced(t), 0);
	_fg_lock(&c);
	CHECK_EQ(t->slot->cs, 0);
	CHECK_EQ(t->slot->pending, (uint64_t)(uintptr_t)&c);
	_fg_unlock(&c);
	CHECK(!is_critical(t));
}

/* The longest is one that waits, of which the questions are alike. */
#define STEPS_MOST 300

static void each_step(int piece)
{
	long steps = LONG_MAX;

	for (handler_at = 1; handler_at <= steps && handler_at < STEPS_MOST; handler_at++) {
		pieces[piece]();
		steps = step_count;
		check_that_none_is_left(piece);
	}
	CHECK(handler_at > 3);
}

static void every_piece(void)
{
	for (handler = 0; handler < HANDLERS; handler++)
		for (int piece = 0; piece < PIECES; piece++)
			each_step(piece);
}

static void *has_the_lock(void *arg)
{
	_fg_lock(&b);
	__atomic_store_n(&elsewhere, fg_self()->id, __ATOMIC_RELEASE);
	UNTIL(LOAD(go_on));
	_fg_unlock(&b);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 60);
	one_lock(); /* sets the thread up */
	every_piece();
	t = start(has_the_lock, NULL);
	UNTIL(LOAD(elsewhere));
	every_piece();
	STORE(go_on, 1);
	join(t);
	return 0;
}
#endif
