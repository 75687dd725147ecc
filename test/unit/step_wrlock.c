/* SPDX-License-Identifier: MIT */
/*
 * After each instruction of a write lock, which may have to wait for a reader, and of its unlock, a
 * signal handler of the thread reads, or tries to.  While the writer waits it may, as any other
 * thread, and what it unlocks is what it has read.
 */
#include "../tools/readers.h"
#include "../tools/step.h"

#include <stdbool.h>

#ifdef STEP_SUPPORTED
enum { POSITIONS = 250, READS_US = 1000, TURNS = 40 };

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
static int position, came, waits, has_read;
static uint32_t reading, begun;

static void *read_for_a_while(void *arg)
{
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	STORE(reading, 1);
	STORE(begun, 1);
	sleep_us(READS_US);
	STORE(reading, 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return arg;
}

static bool here(void)
{
	if (step_count != position)
		return false;
	came = step_ending = 1;
	return true;
}

static void has(int answer, int refusal)
{
	if (answer) {
		CHECK_EQ(answer, refusal);
		return;
	}
	has_read++;
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
}

static void handler_reads(void)
{
	if (here())
		has(pthread_rwlock_rdlock(&lock_), EDEADLK);
}

static void handler_tries(void)
{
	if (here())
		has(pthread_rwlock_tryrdlock(&lock_), EBUSY);
}

static void *try_to_read(void *arg)
{
	int r = pthread_rwlock_tryrdlock(arg);

	if (!r)
		CHECK_EQ(pthread_rwlock_unlock(arg), 0);
	return (void *)(long)r;
}

static void once(void (*happens)(void), bool at_lock)
{
	pthread_t reader = 0;

	if (waits) {
		STORE(begun, 0);
		reader = start(read_for_a_while, NULL);
		UNTIL(LOAD(begun));
	}
	if (at_lock)
		step_begin(happens);
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	if (at_lock)
		step_end();
	CHECK_EQ(LOAD(reading), 0);
	CHECK_EQ(in_thread(try_to_read, &lock_), EBUSY);
	if (!at_lock)
		step_begin(happens);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	if (!at_lock)
		step_end();
	if (waits)
		join(reader);
	CHECK_EQ(pthread_rwlock_trywrlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
}

static void each(void (*happens)(void), bool at_lock)
{
	for (position = came = 1; came && position <= POSITIONS; position++) {
		read_by_turns(TURNS);
		came = 0;
		once(happens, at_lock);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 100);
	if (!getenv("CHECK_PRELOAD"))
		check_skip("glibc's handler may wait for its own thread for ever");
	readers_begin(&lock_);
	for (waits = 0; waits < 2; waits++) {
		each(handler_reads, true);
		each(handler_tries, true);
	}
	CHECK(has_read > 0);
	waits = 0;
	each(handler_reads, false);
	each(handler_tries, false);
	readers_end();
	return 0;
}
#endif
