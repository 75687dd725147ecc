/* SPDX-License-Identifier: MIT */
/*
 * A thread unlocks for one that reads.  In some instruction of that another reader, whose place it
 * may be about to take, unlocks by itself; in a later one it is back, and a writer comes, who is
 * never in beside it.
 */
#include "../tools/readers.h"
#include "../tools/step.h"

#include <stdbool.h>

#ifdef STEP_SUPPORTED
/*
 * Around the call by which all threads pass a barrier: between a look and what it leads to.  Eight
 * and five instructions, so not each is tried, which takes some 20 s.
 */
enum { BEFORE = 60, BEFORE_EACH = 3, AFTER = 70, AFTER_EACH = 2, TURNS = 15 };

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
static struct reader_helper comes_back, stays;
static long call, leaves_at, reads_at; /* instructions of the unlock */
static bool left, back;
static int reads; /* it is back */
static pthread_t writer;

static void *write_once(void *arg)
{
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	CHECK_EQ(LOAD(reads), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return arg;
}

static void happens(void)
{
	if (!call && step_is_call())
		call = step_count;
	if (step_count == leaves_at) {
		reader_errand(&comes_back, READER_LEAVES);
		left = true;
	}
	if (step_count == reads_at) {
		reader_errand(&comes_back, READER_READS);
		STORE(reads, 1);
		back = true;
		writer = start(write_once, NULL);
		sleep_us(200); /* it waits, most likely */
	}
}

static void read_once(struct reader_helper *h)
{
	reader_errand(h, READER_READS);
	reader_errand(h, READER_LEAVES);
}

static void once(long leaves, long comes)
{
	leaves_at = leaves;
	reads_at = comes;
	left = back = false;
	/* What is left of a place that another thread has released goes. */
	read_once(&comes_back);
	read_once(&stays);
	read_by_turns(TURNS);
	reader_errand(&comes_back, READER_READS);
	reader_errand(&stays, READER_READS);
	step_begin(happens);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0); /* for the one that stays */
	step_end();
	if (back) {
		sleep_us(200); /* it would be in */
		STORE(reads, 0);
	}
	if (back || !left)
		reader_errand(&comes_back, READER_LEAVES);
	if (back)
		join(writer);
	CHECK_EQ(pthread_rwlock_trywrlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 100);
	readers_begin(&lock_);
	reader_begin(&comes_back);
	reader_begin(&stays);
	/* Whose line is looked at first. */
	read_once(&comes_back);
	once(0, 0);
	/* Without the call nothing is taken that may have to be given back. */
	for (long leaves = call > BEFORE ? call - BEFORE : 1; leaves < call; leaves += BEFORE_EACH)
		for (long comes = call + 1; comes < call + AFTER; comes += AFTER_EACH)
			once(leaves, comes);
	reader_end(&comes_back);
	reader_end(&stays);
	readers_end();
	return 0;
}
#endif
