/* SPDX-License-Identifier: MIT */
/*
 * Who gets the table of visible readers back after a writer: readers that pull the lock's line from
 * each other.  Not one that reads and writes alone, who would take it back each time.
 */
#include "../tools/check.h"

#include "lock/rwlock.h"

static struct fg_rwlock rw;

static void *reads(void *arg)
{
	CHECK_EQ(_fg_rwlock_rdlock(&rw, NULL, NULL), 0);
	CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	return arg;
}

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
	return 0;
}
