/* SPDX-License-Identifier: MIT */
/*
 * What a thread publishes when a signal handler has taken and released locks after a single
 * instruction of lock and unlock, each of them in turn, or after three in a row: while it has a
 * lock it is critical after each further instruction, and in the end it has none.
 */
#include "../tools/step.h"

/* A clock of few instructions (linked with --wrap=fg_now_ns, on each CPU). */
uint64_t __wrap_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void)
{
	static uint64_t now = 1000000000;

	return now += 500;
}

#ifdef STEP_SUPPORTED
#include "lock/lock.h"
#include "lock/rounds.h"

static struct fg_lock a, b, c, d, h, h2;
static uint32_t elsewhere; /* the helper has `b` */
static int go_on;
static long handler_at; /* the step after which it runs */
static int handler;

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

static bool taken_elsewhere;

static void gives_back(void)
{
	if (taken_elsewhere)
		a.word &= ~FG_WORD_ID;
	taken_elsewhere = false;
}

#define STEPS_ELSEWHERE 30

/* Another thread takes it first, if it is free; and this one handles signals meanwhile. */
static void comes_late(void)
{
	if (step_count == handler_at && elsewhere && !(a.word & FG_WORD_ID)) {
		a.word |= FG_ID_NO_SLOT | 1;
		taken_elsewhere = true;
	} else if (step_count == handler_at + STEPS_ELSEWHERE - 1) {
		gives_back();
	} else {
		one_lock();
	}
}

static const struct {
	void (*run)(void);
	int times;
} handlers[] = {
    {one_lock, 1}, {two_locks, 3}, {two_crossed, 1}, {the_same, 1}, {comes_late, STEPS_ELSEWHERE}};
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

static void end(void)
{
	step_end();
	gives_back();
}

static void plain(void)
{
	begin();
	_fg_lock(&a);
	_fg_unlock(&a);
	end();
}

static void slow_lock(void)
{
	begin();
	force_slow_path(&fg_self_tls);
	_fg_lock(&a);
	end();
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
	end();
	_fg_lock(&a);
	_fg_unlock(&a);
}

static void nested_lock(void)
{
	_fg_lock(&a);
	begin();
	_fg_lock(&c);
	end();
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
	end();
}

/* The release that has but to publish the first.  Nor does it forget what a handler asked for. */
static void nested_unlock(void)
{
	_fg_lock(&a);
	_fg_lock(&c);
	begin();
	_fg_unlock(&c);
	end();
	CHECK_EQ(fg_self_tls.unordered, 0);
	_fg_unlock(&a);
}

/*
 * Hand over hand: the same, and what is left is the only lock, as the fast path leaves it.  Unless
 * a handler has released locks out of order before: then it is unknown which one is left.
 */
static void first_of_two(void)
{
	const struct fg_self *t = &fg_self_tls;

	_fg_lock(&a);
	_fg_lock(&c);
	begin();
	_fg_unlock(&a);
	end();
	CHECK(!has_several(t) || step_count >= handler_at);
	if (!has_several(t)) {
		CHECK_EQ(t->unordered, 0);
		CHECK_EQ(t->only, (uint64_t)(uintptr_t)&c);
		CHECK_EQ(t->slot->cs, 0);
	}
	_fg_unlock(&c);
}

static void out_of_order(void)
{
	_fg_lock(&a);
	_fg_lock(&c);
	begin();
	_fg_unlock(&a);
	_fg_lock(&a);
	end();
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
		end();
		_fg_unlock(&b);
	} else {
		end();
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
	end();
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
	end();
	CHECK(is_critical(&fg_self_tls));
	if (late)
		CHECK_EQ(fg_self_tls.only, (uint64_t)(uintptr_t)&a);
	else
		_fg_unlock(&b);
	CHECK(is_critical(&fg_self_tls));
	_fg_unlock(&a);
}

/* A thread that is back at once finds a word with flags. */
static void is_back(uint32_t flags)
{
	a.word = flags;
	fg_self_tls.short_rounds = 3;
	force_slow_path(&fg_self_tls);
}

static void is_away(void)
{
	CHECK_EQ(a.word & FG_WORD_ID, 0);
	a.word = 0;
	fg_self_tls.short_rounds = fg_self_tls.keeps_busy = 0;
}

/* Where no handler runs.  The short ways leave the next lock to the slow path, which knows them. */
static void check_that_it_was_the_short_way(void)
{
	if (step_count >= handler_at)
		return;
	CHECK_EQ(fg_self_tls.only, FG_ONLY_SLOWLY);
	CHECK_EQ(fg_self_tls.slot->pending, 0);
}

/* One that has slept is on its way. */
static void lock_again(void)
{
	is_back(FG_WORD_DESIGNATED);
	begin();
	_fg_lock(&a);
	end();
	_fg_unlock(&a);
	check_that_it_was_the_short_way();
	is_away();
}

static void release_shortly(void)
{
	_fg_lock(&a);
	begin();
	_fg_unlock(&a);
	end();
	check_that_it_was_the_short_way();
	is_away();
}

static void unlock_again(void)
{
	is_back(FG_WORD_DESIGNATED);
	release_shortly();
}

/* They sleep on. */
static void unlock_busy(void)
{
	is_back(FG_WORD_LEAVES_ASLEEP);
	fg_self_tls.keeps_busy = fg_self_tls.busy_releases = 1;
	fg_thread_mine(&fg_self_tls)->kept_busy = (uint32_t)(uintptr_t)&a;
	release_shortly();
}

static void (*const pieces[])(void) = {
    plain,	  slow_lock, slow_release, nested_lock, nested_release, nested_unlock, first_of_two,
    out_of_order, three,     four,	   timed,	lock_again,	unlock_again,  unlock_busy};
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
	CHECK_EQ(t->slot->pending, 0);
	_fg_lock(&c);
	CHECK_EQ(t->slot->cs, 0);
	CHECK_EQ(t->slot->pending, (uint64_t)(uintptr_t)&c);
	_fg_unlock(&c);
	CHECK(!is_critical(t));
}

#define NEVER (1L << 30)

static long steps_of_a_lock(bool is_short)
{
	long steps;

	handler_at = NEVER;
	is_back(FG_WORD_DESIGNATED);
	fg_self_tls.short_rounds = is_short ? 3 : 0;
	begin();
	_fg_lock(&a);
	end();
	steps = step_count;
	_fg_unlock(&a);
	is_away();
	return steps;
}

/* The longest is one that waits, of which the questions are alike. */
#define STEPS_MOST 300

static void each_step(int piece)
{
	long steps = STEPS_MOST;

	/* Once more than there are steps: without. */
	for (handler_at = 1; handler_at <= steps + 1 && handler_at < STEPS_MOST; handler_at++) {
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
	check_begin(argv[0], 110);
	one_lock();		    /* sets the thread up */
	fg_slices = FG_SLICES_NONE; /* who may ask for them does not come the short ways */
	CHECK(steps_of_a_lock(true) < steps_of_a_lock(false));
	every_piece();
	t = start(has_the_lock, NULL);
	UNTIL(LOAD(elsewhere));
	every_piece();
	STORE(go_on, 1);
	join(t);
	return 0;
}
#endif
