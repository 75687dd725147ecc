/* SPDX-License-Identifier: MIT */
/*
 * Tries of a reader-writer lock that are in vain do not make others fail: while somebody reads all
 * the time, one thread tries to write, and another one to read, which nothing stands in the way of.
 */
#include "../tools/check.h"

static pthread_rwlock_t rw;
static pthread_barrier_t there;
static int end_of_tries;

static void *try_to_write(void *arg)
{
	while (!__atomic_load_n(&end_of_tries, __ATOMIC_RELAXED))
		CHECK_EQ(pthread_rwlock_trywrlock(&rw), EBUSY);
	return arg;
}

static void *read_once(void *arg)
{
	CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return arg;
}

static void *read_until_end(void *arg)
{
	CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
	pthread_barrier_wait(&there);
	pthread_barrier_wait(&there); /* the end */
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return arg;
}

static void tries(int kind)
{
	const struct timespec long_ago = {0, 0};
	pthread_rwlockattr_t attr;
	pthread_t reader, writer;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, kind);
	CHECK_EQ(pthread_rwlock_init(&rw, &attr), 0);
	/* By several threads, so that readers are found in the table (the bias). */
	for (int i = 0; i < 40; i++) {
		join(start(read_once, NULL));
		read_once(NULL);
	}
	end_of_tries = 0;
	reader = start(read_until_end, NULL);
	pthread_barrier_wait(&there);
	writer = start(try_to_write, NULL);
	for (int i = 0; i < 200000; i++) {
		CHECK_EQ(pthread_rwlock_tryrdlock(&rw), 0);
		CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
		CHECK_EQ(pthread_rwlock_timedrdlock(&rw, &long_ago), 0);
		CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	}
	__atomic_store_n(&end_of_tries, 1, __ATOMIC_RELAXED);
	join(writer);
	pthread_barrier_wait(&there);
	join(reader);
	CHECK_EQ(pthread_rwlock_destroy(&rw), 0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	pthread_barrier_init(&there, NULL, 2);
	tries(PTHREAD_RWLOCK_PREFER_READER_NP);
	tries(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	return 0;
}
