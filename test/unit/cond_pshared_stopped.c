/* SPDX-License-Identifier: MIT */
/*
 * A process whose signal of a process-shared condition variable does not come back, since a waiter
 * in another process is stopped or has been killed (glibc before 2.41 waits for it), signals all
 * others as ever: also those that threads of its own wait for with private mutexes.
 */
#include "../tools/asleep.h"

#include <stdbool.h>
#include <sys/mman.h>

/* At all offsets in two pages that 16 divides. */
enum { OTHERS = 192 };

static struct shared {
	pthread_cond_t other[OTHERS];
	pthread_cond_t held;
	pthread_mutex_t m;
	int waiting;
} *s;

static pthread_mutex_t own[OTHERS]; /* private */
static int own_waits, over;
static int tid;

static void *wait_with_own(void *arg)
{
	int i = (int)(intptr_t)arg;

	lock(&own[i]);
	ADD(own_waits, 1);
	while (!over)
		CHECK_EQ(pthread_cond_wait(&s->other[i], &own[i]), 0);
	unlock(&own[i]);
	return NULL;
}

/* A process that waits for `held` by the time that this returns. */
static pid_t waiter(void)
{
	pid_t pid = check_fork();

	if (!pid) {
		lock(&s->m);
		s->waiting = 1;
		for (;;)
			pthread_cond_wait(&s->held, &s->m);
	}
	for (bool waits = false; !waits; sleep_us(100)) {
		lock(&s->m);
		waits = s->waiting;
		unlock(&s->m);
	}
	s->waiting = 0;
	return pid;
}

static void *signal_held(void *arg)
{
	STORE(tid, (int)syscall(SYS_gettid));
	CHECK_EQ(pthread_cond_signal(&s->held), 0);
	STORE(tid, -1);
	return arg;
}

/* In its signal, and it stays there; or it has come back. */
static void until_held_or_back(void)
{
	for (int looks = 0; looks < 100 && LOAD(tid) >= 0; sleep_us(200))
		looks = LOAD(tid) && is_asleep(LOAD(tid)) ? looks + 1 : 0;
}

static void mode(bool kills, bool with_own)
{
	pthread_t t[OTHERS];
	pthread_attr_t a;
	int status;
	pid_t first, second;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, check_small_stack()), 0);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(s != MAP_FAILED);
	mutex_pshared(&s->m);
	cond_pshared(&s->held);
	for (int i = 0; i < OTHERS; i++) {
		cond_pshared(&s->other[i]);
		CHECK_EQ(pthread_mutex_init(&own[i], NULL), 0);
	}
	first = waiter();
	CHECK_EQ(kill(first, kills ? SIGKILL : SIGSTOP), 0);
	CHECK_EQ(waitpid(first, &status, WUNTRACED), first);
	/* Its signal, which it does not take; whoever comes now is of the next group. */
	CHECK_EQ(pthread_cond_signal(&s->held), 0);
	second = waiter();

	for (int i = 0; with_own && i < OTHERS; i++)
		CHECK_EQ(pthread_create(&t[i], &a, wait_with_own, (void *)(intptr_t)i), 0);
	UNTIL(!with_own || LOAD(own_waits) == OTHERS);
	start(signal_held, NULL);
	until_held_or_back();
	for (int i = 0; i < OTHERS; i++) {
		lock(&own[i]);
		STORE(over, 1);
		unlock(&own[i]);
		CHECK_EQ(i % 2 ? pthread_cond_signal(&s->other[i]) :
				 pthread_cond_broadcast(&s->other[i]),
			 0);
	}
	for (int i = 0; with_own && i < OTHERS; i++)
		join(t[i]);
	if (!kills)
		kill(first, SIGKILL);
	kill(second, SIGKILL);
	_exit(0);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 30);
	for (int i = 0; i < 4; i++) {
		pid_t pid = check_fork();

		if (!pid)
			mode(i & 1, i & 2);
		check_child(pid);
	}
	return 0;
}
