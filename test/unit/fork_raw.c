/* SPDX-License-Identifier: MIT */
/*
 * A child made by clone(), which runs no fork handler, and one made by vfork: their locks work, the
 * parent goes on.
 */
#include "../tools/check.h"

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, busy_one = PTHREAD_MUTEX_INITIALIZER;
static long count;
static int stop;

static void *work(void *arg)
{
	while (!LOAD(stop)) {
		lock(&busy_one);
		*(volatile long *)&count += 1;
		unlock(&busy_one);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	pthread_t t[2];

	check_begin(argv[0], 20);
	for (int i = 0; i < 2; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < 30; i++) {
		pid_t pid;

		lock(&held);
		if (i % 3 == 2) {
			pid = vfork();
			if (!pid) { /* shares our memory */
				execl("/bin/true", "true", (char *)NULL);
				_exit(1);
			}
		} else {
			pid = check_clone();
			if (!pid) {
				alarm(60);
				for (int j = 0; j < 1000; j++) {
					lock(&fresh);
					CHECK_EQ(pthread_mutex_trylock(&held), EBUSY);
					unlock(&fresh);
				}
				unlock(&held);
				CHECK_EQ(pthread_mutex_trylock(&held), 0);
				unlock(&held);
				_exit(0);
			}
		}
		CHECK(pid > 0);
		check_child(pid);
		unlock(&held);
	}
	STORE(stop, 1);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	lock(&busy_one);
	unlock(&busy_one);
	return 0;
}
