/* SPDX-License-Identifier: MIT */
/* Reader-writer locks: readers together, a writer alone, who may lock what when, time limits. */
#include "api.h"

enum { READERS = 6, WRITERS = 3, ROUNDS = 2000 };
static fg_rwlock_t rw;
static int inside, writing;
static volatile long value[2];

static void *try_read(void *arg)
{
	long r = fg_rwlock_tryrdlock(arg);

	if (!r)
		CHECK_EQ(fg_rwlock_unlock(arg), 0);
	return (void *)r;
}

static void *try_write(void *arg)
{
	long r = fg_rwlock_trywrlock(arg);

	if (!r)
		CHECK_EQ(fg_rwlock_unlock(arg), 0);
	return (void *)r;
}

static void rules(fg_rwlock_t *l, int again)
{
	CHECK_EQ(fg_rwlock_rdlock(l), 0);
	CHECK_EQ(in_thread(try_read, l), 0);
	CHECK_EQ(in_thread(try_write, l), EBUSY);
	CHECK_EQ(fg_rwlock_trywrlock(l), EBUSY);
	if (again) {
		CHECK_EQ(fg_rwlock_rdlock(l), 0);
		CHECK_EQ(fg_rwlock_unlock(l), 0);
	}
	CHECK_EQ(in_thread(try_write, l), EBUSY);
	CHECK_EQ(fg_rwlock_unlock(l), 0);
	CHECK_EQ(in_thread(try_write, l), 0);

	CHECK_EQ(fg_rwlock_wrlock(l), 0);
	CHECK_EQ(in_thread(try_read, l), EBUSY);
	CHECK_EQ(in_thread(try_write, l), EBUSY);
	CHECK_EQ(fg_rwlock_rdlock(l), EDEADLK);
	CHECK_EQ(fg_rwlock_wrlock(l), EDEADLK);
	CHECK_EQ(fg_rwlock_trywrlock(l), EBUSY);
	CHECK_EQ(fg_rwlock_unlock(l), 0);
	CHECK_EQ(in_thread(try_read, l), 0);
	CHECK_EQ(fg_rwlock_destroy(l), 0);
}

static void *times_out(void *arg)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
	struct timespec bad = {0, -1};

	for (int i = 0; i < 2; i++)
		for (long us = -1000; us <= 3000; us += 2000) {
			struct timespec at = in_us(clocks[i], us);

			CHECK_EQ(fg_rwlock_timedwrlock(&rw, clocks[i], &at), ETIMEDOUT);
			CHECK(is_past(clocks[i], at));
			at = in_us(clocks[i], us);
			CHECK_EQ(fg_rwlock_timedrdlock(&rw, clocks[i], &at),
				 writing ? ETIMEDOUT : 0);
			if (writing)
				CHECK(is_past(clocks[i], at));
			else
				CHECK_EQ(fg_rwlock_unlock(&rw), 0);
		}
	CHECK_EQ(fg_rwlock_timedrdlock(&rw, CLOCK_MONOTONIC, &bad), EINVAL);
	CHECK_EQ(fg_rwlock_timedwrlock(&rw, CLOCK_MONOTONIC, &bad), EINVAL);
	bad.tv_nsec = 0;
	CHECK_EQ(fg_rwlock_timedrdlock(&rw, CLOCK_THREAD_CPUTIME_ID, &bad), EINVAL);
	CHECK_EQ(fg_rwlock_timedwrlock(&rw, -1, &bad), EINVAL);
	return NULL;
}

static void *read_it(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct timespec at = in_us(CLOCK_MONOTONIC, 60000000);

		CHECK_EQ(i & 1 ? fg_rwlock_timedrdlock(&rw, CLOCK_MONOTONIC, &at) :
				 fg_rwlock_rdlock(&rw),
			 0);
		ADD(inside, 1);
		CHECK(!LOAD(writing));
		CHECK_EQ(value[0], value[1]);
		ADD(inside, -1);
		CHECK_EQ(fg_rwlock_unlock(&rw), 0);
	}
	return NULL;
}

static void *write_it(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct timespec at = in_us(CLOCK_REALTIME, 60000000);

		CHECK_EQ(i & 1 ? fg_rwlock_timedwrlock(&rw, CLOCK_REALTIME, &at) :
				 fg_rwlock_wrlock(&rw),
			 0);
		CHECK_EQ(ADD(writing, 1), 1);
		CHECK_EQ(LOAD(inside), 0);
		value[0] = value[0] + 1;
		value[1] = value[1] + 1;
		ADD(writing, -1);
		CHECK_EQ(fg_rwlock_unlock(&rw), 0);
	}
	return NULL;
}

static void *destroy(void *l)
{
	return (void *)(long)fg_rwlock_destroy(l);
}

/*
 * Rust forgets a guard.  Its thread would say for ever that it is in a section, and take all locks
 * the long way.
 */
static void destroyed_while_written(void)
{
	static const fg_rwlock_t free_again = FG_RWLOCK_INIT;

	for (int by_another = 0; by_another < 2; by_another++) {
		fg_rwlock_t l = FG_RWLOCK_INIT;

		CHECK_EQ(fg_rwlock_wrlock(&l), 0);
		CHECK_EQ(by_another ? in_thread(destroy, &l) : (long)destroy(&l), 0);
		CHECK_EQ(l.fg_state[0], free_again.fg_state[0]);
	}
}

int main(int argc, char **argv)
{
	fg_rwlock_t d = FG_RWLOCK_INIT, w = FG_WRITERS_FIRST_RWLOCK_INIT;
	pthread_t t[READERS + WRITERS];

	api_begin(argv[0], 120);
	rules(&rw, 1);
	rules(&d, 1);
	rules(&w, 0);
	destroyed_while_written();
	CHECK_EQ(fg_rwlock_init(&d, 1), EINVAL);
	CHECK_EQ(fg_rwlock_init(&d, 3), EINVAL);
	CHECK_EQ(fg_rwlock_init(&d, FG_RWLOCK_WRITERS_FIRST), 0);
	rules(&d, 0);

	CHECK_EQ(fg_rwlock_wrlock(&rw), 0);
	writing = 1;
	in_thread(times_out, NULL);
	CHECK_EQ(fg_rwlock_unlock(&rw), 0);
	writing = 0;
	CHECK_EQ(fg_rwlock_rdlock(&rw), 0);
	in_thread(times_out, NULL);
	CHECK_EQ(fg_rwlock_unlock(&rw), 0);

	for (int kind = FG_RWLOCK_DEFAULT; kind <= FG_RWLOCK_WRITERS_FIRST; kind += 2) {
		CHECK_EQ(fg_rwlock_init(&rw, kind), 0);
		value[0] = value[1] = 0;
		for (int i = 0; i < READERS + WRITERS; i++)
			t[i] = start(i < READERS ? read_it : write_it, NULL);
		for (int i = 0; i < READERS + WRITERS; i++)
			join(t[i]);
		CHECK_EQ(value[0], WRITERS * ROUNDS);
		CHECK_EQ(value[1], WRITERS * ROUNDS);
	}
	return 0;
}
