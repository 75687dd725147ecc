/* SPDX-License-Identifier: MIT */
/*
 * The child of a fork owns what the forking thread held, and finds what others held taken; locks of
 * its own work.
 */
#include "../tools/check.h"

static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER, theirs = PTHREAD_MUTEX_INITIALIZER,
		       fresh = PTHREAD_MUTEX_INITIALIZER;
static int held, let_go;
static long count;

static void *hold(void *arg)
{
	lock(&theirs);
	STORE(held, 1);
	UNTIL(LOAD(let_go));
	unlock(&theirs);
	return NULL;
}

static void *contend(void *arg)
{
	while (!LOAD(let_go)) {
		lock(&mine);
		lock(&fresh);
		unlock(&fresh);
		unlock(&mine);
	}
	return NULL;
}

static void *work(void *arg)
{
	for (int i = 0; i < 500; i++) {
		lock(&mine);
		*(volatile long *)&count += 1;
		unlock(&mine);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[4];

	check_begin(argv[0], 20);
	t[0] = start(hold, NULL);
	for (int i = 1; i < 4; i++)
		t[i] = start(contend, NULL);
	UNTIL(LOAD(held));
	for (int i = 0; i < 40; i++) {
		pid_t pid;

		lock(&mine); /* the others queue up behind it */
		sleep_us(i % 4 * 200);
		pid = check_fork();
		if (!pid) {
			pthread_t u[3];

			CHECK_EQ(pthread_mutex_trylock(&mine), EBUSY);
			CHECK_EQ(pthread_mutex_trylock(&theirs), EBUSY);
			unlock(&mine);
			for (int j = 0; j < 3; j++)
				u[j] = start(work, NULL);
			for (int j = 0; j < 3; j++)
				join(u[j]);
			CHECK_EQ(count, 1500);
			CHECK_EQ(pthread_mutex_trylock(&theirs), EBUSY);
			exit(0);
		}
		unlock(&mine);
		check_child(pid);
	}
	STORE(let_go, 1);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	return 0;
}
