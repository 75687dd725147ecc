/* SPDX-License-Identifier: MIT */
/* exit, _exit and return from main while other threads hold and wait for locks. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int how;

static void *contend(void *arg)
{
	for (;;) {
		lock(&m);
		if (arg)
			pthread_cond_wait(&c, &m);
		unlock(&m);
	}
	return NULL;
}

static void *end_it(void *arg)
{
	lock(&m);
	if (how & 1)
		exit(0);
	_exit(0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	for (how = 0; how < 24; how++) {
		pid_t pid = check_fork();

		if (!pid) {
			for (intptr_t i = 0; i < 4; i++)
				start(contend, (void *)(i & 1));
			sleep_us(500);
			if (how & 2)
				start(end_it, NULL);
			else if (how & 4)
				end_it(NULL);
			else
				return 0;
			pause();
		}
		check_child(pid);
	}
	return 0;
}
