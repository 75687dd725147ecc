/* SPDX-License-Identifier: MIT */
/*
 * A thread that signals without the mutex does not look at it once the waiter has its signal: after
 * each instruction of the signal the waiter is interrupted, and as soon as it has been signalled it
 * returns and unmaps the page of the mutex.
 */
#include "../tools/step.h"

#include <sched.h>
#include <sys/mman.h>

#ifdef STEP_SUPPORTED
static pthread_mutex_t *m;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waits, gone, interrupted, tid;
static pthread_t waiter;

static void *wait_once(void *arg)
{
	lock(m);
	STORE(tid, (int)syscall(SYS_gettid));
	STORE(waits, 1);
	CHECK_EQ(pthread_cond_wait(&c, m), 0);
	unlock(m);
	CHECK_EQ(pthread_mutex_destroy(m), 0);
	CHECK_EQ(munmap(m, 4096), 0);
	STORE(gone, 1);
	return NULL;
}

static void interrupt(int sig)
{
	ADD(interrupted, 1);
}

static void after_each(void)
{
	int before = LOAD(interrupted);

	if (LOAD(gone))
		return;
	CHECK_EQ(pthread_kill(waiter, SIGUSR1), 0);
	while (LOAD(interrupted) == before)
		sleep_us(1);
	for (int i = 0; i < 10 && !LOAD(gone); i++) /* time for it to go, if it may */
		sleep_us(20);
}

/* Whether it sleeps in the kernel: the state behind the name in /proc/self/task/TID/stat. */
static int sleeps(int id)
{
	char path[64], line[256] = "", *state;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
	f = fopen(path, "r");
	CHECK(f);
	CHECK(fgets(line, sizeof line, f));
	fclose(f);
	state = strrchr(line, ')');
	return state && state[2] == 'S';
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = interrupt};

	check_begin(argv[0], 30);
	sigaction(SIGUSR1, &sa, NULL);
	for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ERRORCHECK; type++) {
		m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(m != MAP_FAILED);
		mutex_of_type(m, type);
		waits = gone = 0;
		waiter = start(wait_once, NULL);
		UNTIL(LOAD(waits));
		lock(m); /* it has released it */
		unlock(m);
		UNTIL(sleeps(tid));
		step_begin(after_each);
		pthread_cond_signal(&c);
		step_end();
		join(waiter);
	}
	return 0;
}
#endif
