/* SPDX-License-Identifier: MIT */
/*
 * Readers behind a writer that is in, and stays.  They cannot pass it, whatever else they hold, so
 * they sleep: they do not come to look every 50 us, as one that reads the lock already has to, nor
 * every 10 ms.
 */
#include "../tools/check.h"

#include <sys/resource.h>

enum { READERS = 4, INSIDE_US = 600000, SWITCHES_MOST = 100 };

static pthread_rwlock_t another = PTHREAD_RWLOCK_INITIALIZER, rw = PTHREAD_RWLOCK_INITIALIZER;
static int waiting;
static long switches;

/* `arg`: with a read lock in hand. */
static void *reader(void *arg)
{
	struct rusage before, after;

	if (arg)
		CHECK_EQ(pthread_rwlock_rdlock(&another), 0);
	ADD(waiting, 1);
	CHECK_EQ(getrusage(RUSAGE_THREAD, &before), 0);
	CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
	CHECK_EQ(getrusage(RUSAGE_THREAD, &after), 0);
	ADD(switches, after.ru_nvcsw - before.ru_nvcsw);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	if (arg)
		CHECK_EQ(pthread_rwlock_unlock(&another), 0);
	return NULL;
}

static void wait_for_one_that_is_in(const char *with_another)
{
	pthread_t t[READERS];

	STORE(waiting, 0);
	STORE(switches, 0);
	CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
	for (int i = 0; i < READERS; i++)
		t[i] = start(reader, (void *)with_another);
	UNTIL(LOAD(waiting) == READERS);
	sleep_us(INSIDE_US);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	for (int i = 0; i < READERS; i++)
		join(t[i]);
	if (LOAD(switches) > SWITCHES_MOST)
		check_say("%d readers%s went to sleep %ld times", READERS,
			  with_another ? with_another : "", switches);
	CHECK(LOAD(switches) <= SWITCHES_MOST);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 30);
	wait_for_one_that_is_in(NULL);
	wait_for_one_that_is_in(" that have another read lock");
	return 0;
}
