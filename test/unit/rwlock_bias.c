/* SPDX-License-Identifier: MIT */
/*
 * Who gets the table of visible readers back after a writer: readers that pull the lock's line from
 * each other.  Not one that reads and writes alone, who would take it back each time.  And never at
 * an odd address, whose lowest bit the table needs: a writer would not see that reader.
 */
#include "../tools/check.h"

#include "lock/rwlock.h"

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

int main(void)
{
	int n;

	reads(NULL);
	CHECK_EQ(rw.bias, 1); /* nothing has been lost by it yet */
	CHECK_EQ(_fg_rwlock_wrlock(&rw, NULL, NULL), 0);
	CHECK_EQ(rw.bias, 0);
	CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	for (n = 0; n < 1000; n++) {
		reads(NULL);
		CHECK_EQ(rw.bias, 0);
	}
	for (n = 0; n < 1000 && !rw.bias; n++) {
		join(start(reads, NULL));
		reads(NULL);
	}
	CHECK_EQ(rw.bias, 1);
	at_odd_address();
	return 0;
}
