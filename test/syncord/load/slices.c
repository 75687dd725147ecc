/* SPDX-License-Identifier: MIT */
/*
 * slices KIND SECONDS THREADS: threads that take one pthread mutex in turn, for kernels that extend
 * time slices.  A section computes for some us (short), for longer than any extension lasts
 * (long), or makes a system call half-way (call).  Prints how many there were, and fails if two
 * were ever in one.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHORT_NS 3000
#define LONG_NS	 300000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sections, inside, both;
static long length = SHORT_NS;
static int calls;
static volatile int stop;

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void compute(long ns)
{
	for (long end = now() + ns; now() < end;)
		;
}

static void *loop(void *arg)
{
	while (!stop) {
		pthread_mutex_lock(&mutex);
		both += __atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED) != 0;
		compute(length / 2);
		if (calls)
			syscall(SYS_getppid);
		compute(length / 2);
		sections++;
		__atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&mutex);
		compute(SHORT_NS);
	}
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc == 4 ? atoi(argv[3]) : 0;
	pthread_t t[64];

	if (threads < 1 || threads > 64)
		return 2;
	calls = !strcmp(argv[1], "call");
	if (!strcmp(argv[1], "long"))
		length = LONG_NS;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, loop, NULL))
			return 2;
	sleep((unsigned)atoi(argv[2]));
	stop = 1;
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	printf("{\"pid\":%d,\"acquisitions\":%lu,\"together\":%lu}\n", getpid(), sections, both);
	return both != 0;
}
