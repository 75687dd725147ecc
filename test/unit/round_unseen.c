/* SPDX-License-Identifier: MIT */
/*
 * A timed round ends, whatever way its lock is released: hand over hand, the outer lock first, the
 * inner one is released the fast way, where nothing is noted.  Otherwise each further lock of the
 * thread would come the slow way for good.  And the round of a lock that is released beside
 * another one is seen to its end.
 */
#include "../tools/check.h"

#include "lock/lock.h"
#include "lock/rounds.h"

static struct fg_lock outer, inner, lone;

/* As if it had waited for it. */
static void lock_as_head(struct fg_lock *l, struct fg_self *t)
{
	_fg_lock(l);
	t->times_head = 0;
	_fg_round_begins(l, t);
	CHECK(t->round_is_timed);
}

static void lock_slowly(struct fg_lock *l)
{
	CHECK_EQ(_fg_lock_slow(l, NULL), 0);
	_fg_unlock(l);
}

/* The next two locks may come the slow way; from then on none does. */
static void is_over(const struct fg_self *t)
{
	lock_slowly(&lone);
	lock_slowly(&lone);
	CHECK_EQ(t->round_is_timed, 0);
	CHECK_EQ(t->only, FG_ONLY_NONE);
}

int main(int argc, char **argv)
{
	struct fg_self *t = fg_self();

	(void)argc;
	check_begin(argv[0], 20);

	_fg_lock(&outer);
	lock_as_head(&inner, t);
	_fg_unlock(&outer);
	_fg_unlock(&inner);
	is_over(t);

	/* The same, but for a lock taken beside it that is released last. */
	_fg_lock(&outer);
	lock_as_head(&inner, t);
	_fg_unlock(&outer);
	_fg_unlock(&inner);
	_fg_lock(&outer);
	_fg_lock(&lone);
	_fg_unlock(&lone);
	_fg_unlock(&outer);
	is_over(t);

	/* In reverse order, as most programs do: the round goes on to the next lock of it. */
	for (int i = 0; i < 3; i++) {
		_fg_lock(&outer);
		lock_as_head(&inner, t);
		_fg_unlock(&inner);
		CHECK(fg_thread_mine(t)->round_is_released || !t->round_is_timed);
		_fg_unlock(&outer);
		_fg_lock(&outer);
		_fg_lock(&inner);
		CHECK_EQ(t->round_is_timed, 0);
		_fg_unlock(&inner);
		_fg_unlock(&outer);
	}
	CHECK_EQ(t->only, FG_ONLY_NONE);
	return 0;
}
