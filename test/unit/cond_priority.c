/* SPDX-License-Identifier: MIT */
/*
 * A signal goes to the waiter that the scheduling policy puts first: of SCHED_FIFO and SCHED_RR the
 * one with the highest priority, of equals the one that came first, and all others after these.
 */
#include "../tools/check.h"

#include <sched.h>
#include <stdbool.h>

#define WAITERS 4

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int order[WAITERS], returned, inside;
static pid_t tid;

/* number: in which order they came; priority 0: SCHED_OTHER */
struct waiter {
	int number, priority;
};

static void *waits(void *arg)
{
	const struct waiter *w = arg;
	struct sched_param p = {.sched_priority = w->priority};

	CHECK_EQ(pthread_setschedparam(pthread_self(), w->priority ? SCHED_FIFO : SCHED_OTHER, &p),
		 0);
	lock(&m);
	tid = gettid();
	inside++;
	CHECK_EQ(pthread_cond_wait(&cond, &m), 0);
	order[returned++] = w->number;
	unlock(&m);
	return NULL;
}

static bool is_asleep(void)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	CHECK(f);
	CHECK_EQ(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'S';
}

/* It may sleep for a moment before it does for the signal. */
static void until_asleep(int number)
{
	int looks = 0;

	for (;; sleep_us(1000)) {
		bool waiting;

		lock(&m);
		waiting = inside > number;
		unlock(&m);
		looks = waiting && is_asleep() ? looks + 1 : 0;
		if (looks == 10)
			return;
	}
}

static void wake_in_order(const int *priority, const int *expected)
{
	struct waiter w[WAITERS];
	pthread_t t[WAITERS];

	returned = inside = 0;
	for (int i = 0; i < WAITERS; i++) {
		w[i] = (struct waiter){i, priority[i]};
		t[i] = start(waits, &w[i]);
		until_asleep(i);
	}
	for (int i = 0; i < WAITERS; i++) {
		lock(&m);
		CHECK_EQ(pthread_cond_signal(&cond), 0);
		unlock(&m);
		UNTIL(({
			lock(&m);
			int n = returned;
			unlock(&m);
			n > i;
		}));
	}
	for (int i = 0; i < WAITERS; i++) {
		join(t[i]);
		if (order[i] != expected[i])
			check_say("number %d came as the %d. and not number %d", order[i], i + 1,
				  expected[i]);
	}
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(order[i], expected[i]);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 30);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO,
				  &(struct sched_param){.sched_priority = 1}) ||
	    pthread_setschedparam(pthread_self(), SCHED_OTHER, &(struct sched_param){0}))
		check_skip("no thread may have a real-time policy here");
	wake_in_order((int[]){10, 15, 20, 25}, (int[]){3, 2, 1, 0});
	wake_in_order((int[]){25, 10, 20, 15}, (int[]){0, 2, 3, 1});
	wake_in_order((int[]){10, 10, 10, 10}, (int[]){0, 1, 2, 3});
	wake_in_order((int[]){0, 0, 5, 0}, (int[]){2, 0, 1, 3});
	wake_in_order((int[]){5, 0, 5, 6}, (int[]){3, 0, 2, 1});
	return 0;
}
