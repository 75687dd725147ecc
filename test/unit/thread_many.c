/* SPDX-License-Identifier: MIT */
/* Two thousand threads at once fight for a few locks and wait on one condition variable. */
#include "../tools/check.h"

enum { THREADS = 2000 };
static pthread_mutex_t m[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
			       PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static long count[4];
static int here, go;

static void *work(void *arg)
{
	lock(&m[0]);
	here++;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, &m[0]), 0);
	unlock(&m[0]);
	for (int i = 0; i < 20; i++) {
		lock(&m[i % 4]);
		*(volatile long *)&count[i % 4] += 1;
		unlock(&m[i % 4]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t t[THREADS];
	pthread_attr_t a;
	int n = 0;

	check_begin(argv[0], 60);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, check_small_stack()), 0);
	while (n < THREADS && !pthread_create(&t[n], &a, work, NULL))
		n++;
	if (n < 1000)
		check_skip("only %d threads allowed here", n);
	all_at_once(&m[0], &c, &here, n, &go);
	for (int i = 0; i < n; i++)
		join(t[i]);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(count[i], 5l * n);
	return 0;
}
