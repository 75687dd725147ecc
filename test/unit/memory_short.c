/* SPDX-License-Identifier: MIT */
/*
 * Twelve hundred threads take their first locks when no memory is to be had any more: those that
 * get none of the library's either exclude one another, wait, are signalled and joined all the
 * same.
 */
#include "../tools/check.h"
#include <sys/resource.h>

enum { THREADS = 1200, ROUNDS = 20 };
static pthread_mutex_t m[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
			       PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static long count[3], written, spun;
static int here, go, gate[2];

static void *work(void *arg)
{
	char byte;

	/* No lock before this returns. */
	CHECK_EQ(read(gate[0], &byte, 1), 0);
	lock(&m[0]);
	here++;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, &m[0]), 0);
	unlock(&m[0]);
	for (int i = 0; i < ROUNDS * 3; i++) {
		if (i % 3)
			lock(&m[0]);
		lock(&m[i % 3]);
		*(volatile long *)&count[i % 3] += 1;
		unlock(&m[i % 3]);
		if (i % 3)
			unlock(&m[0]);
	}
	return NULL;
}

static void *others(void *arg)
{
	char byte;

	CHECK_EQ(read(gate[0], &byte, 1), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
		CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
		CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
		*(volatile long *)&written += 1;
		CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
		CHECK_EQ(pthread_spin_lock(&spin), 0);
		*(volatile long *)&spun += 1;
		CHECK_EQ(pthread_spin_unlock(&spin), 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t t[THREADS];
	struct rlimit none = {0, RLIM_INFINITY};
	pthread_attr_t a;
	int n = 0, some = 0;

	check_begin(argv[0], 60);
	CHECK_EQ(pthread_spin_init(&spin, 0), 0);
	CHECK_EQ(pipe(gate), 0);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, check_small_stack()), 0);
	while (n < THREADS && !pthread_create(&t[n], &a, n % 10 ? work : others, NULL))
		some += n++ % 10 == 0;
	if (n < THREADS)
		check_skip("only %d threads allowed here", n);
	CHECK_EQ(setrlimit(RLIMIT_AS, &none), 0);
	close(gate[1]);
	all_at_once(&m[0], &c, &here, n - some, &go);
	for (int i = 0; i < n; i++)
		join(t[i]);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(count[i], (long)ROUNDS * (n - some));
	CHECK_EQ(written, (long)ROUNDS * some);
	CHECK_EQ(spun, (long)ROUNDS * some);
	return 0;
}
