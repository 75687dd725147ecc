/* SPDX-License-Identifier: MIT */
/*
 * A child of fork can use a process-shared condition variable that the parent's other threads were
 * signalling.
 */
#include "../tools/check.h"
#include <sys/mman.h>

enum { CHILDREN = 100, BUSY = 2 };
static pthread_cond_t *c;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int stop;

static void *signal_often(void *arg)
{
	while (!LOAD(stop))
		CHECK_EQ(pthread_cond_signal(c), 0);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_condattr_t a;
	pthread_t t[BUSY];

	check_begin(argv[0], 30);
	c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(c != MAP_FAILED);
	CHECK_EQ(pthread_condattr_init(&a), 0);
	CHECK_EQ(pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(c, &a), 0);
	for (int i = 0; i < BUSY; i++)
		t[i] = start(signal_often, NULL);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = check_fork();

		if (!pid) {
			struct timespec ts = in_us(CLOCK_REALTIME, 100);
			int r;

			CHECK_EQ(pthread_cond_signal(c), 0);
			CHECK_EQ(pthread_mutex_lock(&m), 0);
			r = pthread_cond_timedwait(c, &m, &ts);
			CHECK(r == 0 || r == ETIMEDOUT); /* the parent's threads may signal it */
			CHECK_EQ(pthread_mutex_unlock(&m), 0);
			_exit(0);
		}
		check_child(pid);
	}
	STORE(stop, 1);
	for (int i = 0; i < BUSY; i++)
		join(t[i]);
	return 0;
}
