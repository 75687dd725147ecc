/* SPDX-License-Identifier: MIT */
/*
 * Who gets the table of visible readers, at first and after a writer: one that reads for long, and
 * sooner readers that pull the lock's line from each other.  Not one that reads and writes in turn,
 * who would take it back each time.  At an odd address as well.  Nor beside a release that another
 * thread has not finished.  And that a lock which is only read gets on without a barrier.
 */
#include "../tools/check.h"

#include <stdbool.h>

#include "lock/rwlock.h"
#include "lock/visible.h"
#include "sys/asymmetric.h"

static struct fg_rwlock rw;
static char room[sizeof(struct fg_rwlock) + 1] __attribute__((aligned(8)));

static void *reads(void *arg)
{
	struct fg_rwlock *l = arg ? arg : &rw;

	CHECK_EQ(_fg_rwlock_rdlock(l, NULL, NULL), 0);
	CHECK_EQ(_fg_rwlock_unlock(l), 0);
	return arg;
}

#if defined(__x86_64__) /* others may not take a lock there at all */
static void at_odd_address(void)
{
	struct fg_rwlock *odd = (void *)(room + 1);

	for (int n = 0; n < 100; n++) {
		join(start(reads, odd));
		reads(odd);
	}
	CHECK_EQ(_fg_rwlock_rdlock(odd, NULL, NULL), 0);
	CHECK_EQ(_fg_rwlock_trywrlock(odd), EBUSY);
	CHECK_EQ(_fg_rwlock_unlock(odd), 0);
	CHECK_EQ(_fg_rwlock_trywrlock(odd), 0);
	CHECK_EQ(_fg_rwlock_unlock(odd), 0);
}
#else
static void at_odd_address(void)
{
}
#endif

/* By this thread alone; true if the lock got the bias. */
static bool reads_alone(int most)
{
	while (most-- && !rw.bias)
		reads(NULL);
	return rw.bias;
}

static void writes(void)
{
	CHECK_EQ(_fg_rwlock_wrlock(&rw, NULL, NULL), 0);
	CHECK_EQ(rw.bias, 0);
	CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
}

/*
 * A reader that was counted, and has found out what readers still lose, stores that after another
 * one has set the bias: it is no time since when the lock has not been written.
 */
static void what_is_left_is_no_time(void)
{
	uint32_t left = 4; /* ns */

	CHECK_EQ(rw.bias, FG_RW_BIASED);
	rw.inhibit = left - FG_RW_FIRST_NS;
	for (int n = 0; n < 300; n++)
		reads(NULL);
	CHECK_EQ(rw.bias, FG_RW_BIASED);
}

/*
 * What an old lock left at this address does not count once somebody has seen to it.  Not while
 * another thread has not finished a release in that column: then readers do without the bias.
 */
static void no_bias_beside_a_release(void)
{
	static struct fg_rwlock next, other;
	uint32_t column = fg_visible_column(&next);
	struct fg_visible_line *line = &_fg_visible[0]; /* nobody's */

	line->entry[column] = (uintptr_t)&next;
	line->released[column] = (uintptr_t)&other;
	for (int n = 0; n < 1000; n++)
		reads(&next);
	CHECK_EQ(next.bias, 0);
	line->released[column] = 0;
	for (int n = 0; n < 1000; n++)
		reads(&next);
	CHECK(next.bias); /* FG_RW_ASYMMETRIC where the machine was slow */
	CHECK_EQ(line->released[column], (uintptr_t)&next);
	line->entry[column] = line->released[column] = 0;
}

int main(void)
{
	int n;

	check_watchdog(60);
	no_bias_beside_a_release();

	CHECK(!reads_alone(50)); /* to take it back may cost more than they have lost */
	CHECK(reads_alone(10000));
	writes();
	CHECK(!reads_alone(1));
	for (n = 0; n < 100000; n++) {
		reads(NULL);
		writes();
	}
	CHECK(reads_alone(1000)); /* however often it has written */
	writes();
	for (n = 0; n < 10000 && !rw.bias; n++) {
		join(start(reads, NULL));
		reads(NULL);
	}
	CHECK_EQ(rw.bias, FG_RW_BIASED);
	what_is_left_is_no_time();
	/* Not written for long: without a barrier, where its next writer can make it. */
	for (n = 0; n < 100000000 && rw.bias == FG_RW_BIASED && fg_asymmetric == FG_ASYMMETRIC; n++)
		reads(NULL);
	CHECK_EQ(rw.bias == FG_RW_ASYMMETRIC, fg_asymmetric == FG_ASYMMETRIC);
	writes();
	at_odd_address();
	return 0;
}
