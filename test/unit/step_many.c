/* SPDX-License-Identifier: MIT */
/*
 * Releases in the order of the locks, and of one that another thread holds, are as many
 * instructions in a process of hundreds of threads as in one of two.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
#include "lock/lock.h"

#define THREADS 300
#define LOCKS	5
#define MOST	2000 /* a thousand; a look at each thread takes some more */

static struct fg_lock locks[LOCKS];
static pthread_barrier_t all;

/* Each has an index for as long as it lives. */
static void *lives(void *arg)
{
	struct fg_lock own = {0};

	_fg_lock(&own);
	_fg_unlock(&own);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	return arg;
}

static void *locks_first(void *arg)
{
	_fg_lock(&locks[0]);
	return arg;
}

static void nothing(void)
{
}

static void in_order(void)
{
	for (int i = 0; i < LOCKS; i++)
		_fg_lock(&locks[i]);
	step_begin(nothing);
	for (int i = 0; i < LOCKS; i++)
		_fg_unlock(&locks[i]);
	step_end();
	if (step_count > MOST)
		check_say("%ld instructions for %d locks", step_count, LOCKS);
	CHECK(step_count <= MOST);
}

static void for_another(void)
{
	join(start(locks_first, NULL));
	step_begin(nothing);
	_fg_unlock(&locks[0]);
	step_end();
	CHECK(step_count <= MOST);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	(void)argc;
	check_begin(argv[0], 60);
	pthread_barrier_init(&all, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(lives, NULL);
	pthread_barrier_wait(&all);
	in_order();
	for_another();
	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	return 0;
}
#endif
