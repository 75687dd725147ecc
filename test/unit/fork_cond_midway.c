/* SPDX-License-Identifier: MIT */
/*
 * A child of fork (as any daemon is) makes the condition variables of its parent its own when it
 * first uses them. A thread of it does that, one instruction after the other, and after each of
 * them another thread forks: whatever has been copied, the child's child can use them.  The same
 * for a process-shared one with a private mutex.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t private = PTHREAD_COND_INITIALIZER, shared, *c;
static int waits, request, answered, forks;

static void *wait_for_ever(void *arg)
{
	lock(&m);
	STORE(waits, 1);
	for (;;)
		pthread_cond_wait(&private, &m);
	return NULL;
}

static void use(pthread_cond_t *cond)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1);

	lock(&m);
	CHECK_EQ(pthread_cond_timedwait(cond, &m, &ts), ETIMEDOUT);
	CHECK_EQ(pthread_cond_signal(cond), 0);
	CHECK_EQ(pthread_cond_broadcast(cond), 0);
	unlock(&m);
}

static void *fork_on_request(void *arg)
{
	for (int seen = 0;; seen++) {
		pid_t pid;

		while (LOAD(request) == seen)
			sleep_us(1);
		if (LOAD(request) < 0)
			return NULL;
		pid = check_fork();
		if (!pid) {
			use(c);
			_exit(0);
		}
		check_child(pid);
		forks++;
		STORE(answered, seen + 1);
	}
}

static void after_each(void)
{
	int n;

	if (step_count > 1000) /* whatever comes then */
		return;
	n = ADD(request, 1);
	while (LOAD(answered) != n)
		sleep_us(1);
}

static void run(pthread_cond_t *cond)
{
	pid_t pid;

	c = cond;
	pid = check_fork();
	if (!pid) {
		pthread_t t = start(fork_on_request, NULL);

		step_begin(after_each);
		pthread_cond_signal(c);
		step_end();
		CHECK(forks > 20);
		STORE(request, -1);
		join(t);
		use(c);
		_exit(0);
	}
	check_child(pid);
}

int main(int argc, char **argv)
{
	pthread_condattr_t a;

	check_begin(argv[0], 10);
	if (!getenv("CHECK_PRELOAD"))
		check_skip("glibc's own hang in such a child");
	CHECK_EQ(pthread_condattr_init(&a), 0);
	CHECK_EQ(pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(&shared, &a), 0);
	start(wait_for_ever, NULL);
	UNTIL(LOAD(waits));
	lock(&m); /* it waits */
	unlock(&m);
	use(&shared); /* what is looked up once is there */
	run(&private);
	run(&shared);
	return 0;
}
#endif
