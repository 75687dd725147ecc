/* SPDX-License-Identifier: MIT */
/*
 * Read locks that another thread, or the child of a fork, releases: POSIX leaves the first open,
 * glibc allows it.
 */
#include "../tools/readers.h"

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;

static void *take(void *arg)
{
	(void)arg;
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	return NULL;
}

static void *release(void *arg)
{
	(void)arg;
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return NULL;
}

static void *none(void *arg)
{
	CHECK_EQ(pthread_rwlock_trywrlock(&lock_), *(int *)arg);
	if (!*(int *)arg)
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return NULL;
}

static void expect_writable(int answer)
{
	join(start(none, &answer));
}

int main(int argc, char **argv)
{
	pid_t child;

	(void)argc;
	check_begin(argv[0], 20);
	readers_begin(&lock_);
	for (int warm = 0; warm < 2; warm++) {
		if (warm)
			read_in_turn();
		join(start(take, NULL));
		take(NULL);
		expect_writable(EBUSY);
		join(start(release, NULL));
		expect_writable(EBUSY);
		join(start(release, NULL));
		expect_writable(0);

		if (warm)
			read_in_turn();
		take(NULL);
		child = check_fork();
		if (!child) {
			int answer = EBUSY;

			none(&answer);
			release(NULL);
			answer = 0;
			none(&answer);
			_exit(0);
		}
		check_child(child);
		expect_writable(EBUSY);
		release(NULL);
		expect_writable(0);
	}
	readers_end();
	return 0;
}
