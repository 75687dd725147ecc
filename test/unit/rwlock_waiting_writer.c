/* SPDX-License-Identifier: MIT */
/*
 * A writer waits for a reader.  A second read lock of that reader must not wait
 * for the writer, and with the default kind another thread's must not for ever,
 * since the reader may wait for that thread.
 */
#include "../tools/check.h"

static pthread_rwlock_t lock_;
static int writing;

static void *writer(void *arg)
{
	(void)arg;
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	STORE(writing, 1);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return NULL;
}

static void *reader(void *arg)
{
	(void)arg;
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	CHECK_EQ(LOAD(writing), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return NULL;
}

static void with_reads_before(int reads)
{
	pthread_t w;

	CHECK_EQ(pthread_rwlock_init(&lock_, NULL), 0);
	/* A lock that has long been read may keep its readers elsewhere. */
	for (int i = 0; i < reads; i++) {
		CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	}
	STORE(writing, 0);
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	w = start(writer, NULL);
	sleep_us(20000);
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
		CHECK_EQ(LOAD(writing), 0);
	}
	join(start(reader, NULL));
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	CHECK_EQ(LOAD(writing), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	join(w);
	CHECK_EQ(LOAD(writing), 1);
	CHECK_EQ(pthread_rwlock_destroy(&lock_), 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 20);
	with_reads_before(0);
	with_reads_before(3000);
	return 0;
}
