/* SPDX-License-Identifier: MIT */
/*
 * The usual fork handlers: lock all in prepare, unlock all in parent and child, while others fight
 * for the locks.
 */
#include "../tools/check.h"

enum { LOCKS = 3 };
static pthread_mutex_t m[LOCKS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				   PTHREAD_MUTEX_INITIALIZER};
static long a[LOCKS], b[LOCKS];
static int stop;

static void prepare(void)
{
	for (int i = 0; i < LOCKS; i++)
		lock(&m[i]);
}

static void release(void)
{
	for (int i = LOCKS; i-- > 0;)
		unlock(&m[i]);
}

static void change(int i)
{
	lock(&m[i]);
	*(volatile long *)&a[i] += 1;
	*(volatile long *)&b[i] += 1;
	unlock(&m[i]);
}

static void *work(void *arg)
{
	for (int i = 0; !LOAD(stop); i++)
		change(i % LOCKS);
	return NULL;
}

static void *work_a_little(void *arg)
{
	for (int i = 0; i < 300; i++)
		change(i % LOCKS);
	return NULL;
}

static void *fork_much(void *arg)
{
	for (int i = 0; i < 30; i++) {
		pid_t pid = check_fork();

		if (!pid) {
			long before = 0, after = 0;
			pthread_t t[2];

			for (int j = 0; j < LOCKS; j++) {
				CHECK_EQ(a[j], b[j]); /* nobody was inside */
				before += a[j];
			}
			for (int j = 0; j < 2; j++)
				t[j] = start(work_a_little, NULL);
			for (int j = 0; j < 2; j++)
				join(t[j]);
			for (int j = 0; j < LOCKS; j++)
				after += a[j];
			CHECK_EQ(after, before + 600);
			_exit(0);
		}
		check_child(pid);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[3], f[2];

	check_begin(argv[0], 30);
	CHECK_EQ(pthread_atfork(prepare, release, release), 0);
	for (int i = 0; i < 3; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < 2; i++)
		f[i] = start(fork_much, NULL);
	for (int i = 0; i < 2; i++)
		join(f[i]);
	STORE(stop, 1);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	for (int i = 0; i < LOCKS; i++)
		CHECK_EQ(a[i], b[i]);
	return 0;
}
