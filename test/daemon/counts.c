/* SPDX-License-Identifier: MIT */
/*
 * Programs whose locks count: threads that come and go, children that do, exec.
 * Usage: counts rounds N | many N | forks N | exec | at-once | stay N
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, full_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static unsigned long count, here;

static void fight(int times)
{
	while (times--) {
		pthread_mutex_lock(&mutex);
		for (int i = 0; i < 50; i++)
			__atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
		if (times % 32 == 0)
			sched_yield(); /* the next thread finds the mutex held */
		pthread_mutex_unlock(&mutex);
	}
}

static void *work(void *arg)
{
	/* All are there before one begins. */
	pthread_mutex_lock(&full_mutex);
	if (--here == 0)
		pthread_cond_broadcast(&turn);
	while (here)
		pthread_cond_wait(&turn, &full_mutex);
	pthread_mutex_unlock(&full_mutex);
	fight((int)(long)arg);
	return NULL;
}

static void threads(int n, long times)
{
	pthread_attr_t small;
	pthread_t t[3000];

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	here += (unsigned long)n;
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], &small, work, (void *)times))
			abort();
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void *wake_now_and_then(void *arg)
{
	for (;; fight(20)) {
		pthread_mutex_lock(&full_mutex);
		pthread_cond_broadcast(&turn);
		pthread_mutex_unlock(&full_mutex);
		usleep(50000);
	}
	return arg;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 1;

	if (!strcmp(what, "rounds"))
		while (n--)
			threads(8, 500);
	if (!strcmp(what, "many"))
		threads(n, 100);
	if (!strcmp(what, "stay")) { /* n that sleep and wake, and two that see to it */
		pthread_t t;

		if (pthread_create(&t, NULL, wake_now_and_then, NULL) ||
		    pthread_create(&t, NULL, wake_now_and_then, NULL))
			abort();
		here = 1; /* one that never comes */
		threads(n, 1);
	}
	if (!strcmp(what, "at-once"))
		threads(4, 200);
	if (!strcmp(what, "exec")) {
		threads(8, 2000);
		execl("/proc/self/exe", argv[0], "rounds", "3", (char *)NULL);
		return 1;
	}
	if (!strcmp(what, "forks")) {
		threads(8, 200);
		for (int i = 0; i < n; i++)
			if (fork() == 0) {
				int status = 0;

				/* For longer than it takes until it is registered. */
				for (int k = 0; k < 40; k++)
					threads(8, 500);
				if (i == 0 && fork() == 0) {
					for (int k = 0; k < 40; k++)
						threads(8, 500);
					_exit(0);
				}
				if (i == 0)
					wait(&status);
				_exit(status != 0);
			}
		for (int i = 0, status; i < n; i++)
			if (wait(&status) < 0 || status)
				return 1;
	}
	return 0;
}
