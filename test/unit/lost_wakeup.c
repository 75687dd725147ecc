/* SPDX-License-Identifier: MIT */
/*
 * A thread that is kept off its CPU between its release and the wake-up, or before the lock that it
 * was woken for is its own: a sleeper finds the free lock by itself, with a deadline or
 * without.
 */
#include "../tools/check.h"

#include "lock/lock.h"
#include "runtime/decide.h"

static struct fg_lock l;
static int waits, got;

static void *take(void *deadline)
{
	STORE(waits, 1);
	CHECK_EQ(_fg_lock_slow(&l, deadline), 0);
	STORE(got, 1);
	_fg_unlock(&l);
	return NULL;
}

/* The release of a thread that goes no further. */
static void stopped_after_release(struct fg_deadline *deadline)
{
	pthread_t t;

	waits = got = 0;
	_fg_lock(&l);
	t = start(take, deadline);
	UNTIL(LOAD(waits));
	UNTIL(__atomic_load_n(&l.word, __ATOMIC_RELAXED) & FG_WORD_WAITERS);
	sleep_us(20000);
	CHECK_EQ(LOAD(got), 0);
	fg_store_relaxed(&l.wakes, l.wakes + 1);
	__atomic_store_n(&l.word, 0, __ATOMIC_RELEASE);
	join(t);
	CHECK_EQ(LOAD(got), 1);
	CHECK_EQ(l.word, 0);
	fg_self()->only = FG_ONLY_NONE; /* the lock is not ours any more */
}

int main(int argc, char **argv)
{
	struct fg_deadline d;

	check_begin(argv[0], 30);
	for (int i = 0; i < 2; i++) {
		fg_policy_set(i ? FG_POLICY_BLOCK : FG_POLICY_DEFAULT);
		stopped_after_release(NULL);
		fg_deadline_in(&d, 5000000000u);
		stopped_after_release(&d);
	}
	return 0;
}
