/* SPDX-License-Identifier: MIT */
/*
 * A thread that never took a lock before begins to read after each instruction in turn of
 * a write lock.  Either it does not get in, or the writer waits for it.
 */
#include "../tools/readers.h"
#include "../tools/step.h"

#include <linux/futex.h>
#include <sched.h>

#ifdef STEP_SUPPORTED
/* a process for so many: a table of readers may have no more lines */
enum { PROCESSES = 3, POSITIONS = 80 };

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
static int turn, tried, left; /* the newcomer that may begin, and how many have */
static int reading, writing, position;

static void say(int *word, int value)
{
	STORE(*word, value);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void hear(int *word, int at_least)
{
	for (int now; (now = LOAD(*word)) < at_least;)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

static void *read_once(void *arg)
{
	int me = (int)(intptr_t)arg, in;

	hear(&turn, me);
	in = !pthread_rwlock_tryrdlock(&lock_);
	STORE(reading, in);
	say(&tried, me);
	for (int i = 0; in && i < 20; i++) {
		CHECK(!LOAD(writing));
		usleep(100);
	}
	STORE(reading, 0);
	if (in)
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	say(&left, me);
	hear(&turn, POSITIONS + 1); /* nobody gets its place before */
	return NULL;
}

static int first;

static void newcomer(void)
{
	if (step_count != first + position)
		return;
	say(&turn, position);
	hear(&tried, position);
	step_ending = 1;
}

static void positions(void)
{
	pthread_t t[POSITIONS + 1];

	for (intptr_t i = 1; i <= POSITIONS; i++)
		t[i] = start(read_once, (void *)i);
	readers_begin(&lock_);
	for (position = 1; position <= POSITIONS; position++) {
		read_in_turn();
		step_begin(newcomer);
		CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
		step_end();
		STORE(writing, 1);
		CHECK(!LOAD(reading));
		sched_yield();
		CHECK(!LOAD(reading));
		STORE(writing, 0);
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
		if (turn != position)
			break; /* it has not so many */
		hear(&left, position);
	}
	readers_end();
	say(&turn, POSITIONS + 1);
	for (int i = 1; i <= POSITIONS; i++)
		join(t[i]);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 60);
	for (int i = 0; i < PROCESSES; i++) {
		pid_t child = check_fork();

		if (!child) {
			first = i * POSITIONS;
			positions();
			_exit(0);
		}
		check_child(child);
	}
	return 0;
}
#endif
