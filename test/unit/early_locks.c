/* SPDX-License-Identifier: MIT */
/*
 * A constructor that runs before those of most libraries starts threads that lock and wait; later
 * ones find all in order.
 */
#include "../tools/check.h"

/* early_dso.c */
extern long early_count;
extern int early_threads;
extern pthread_mutex_t early_mutex;

static long program_count;

__attribute__((constructor(101))) static void first(void)
{
	lock(&early_mutex);
	program_count = early_count;
	unlock(&early_mutex);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	CHECK_EQ(early_count, 1000l * early_threads);
	CHECK_EQ(program_count, early_count);
	CHECK_EQ(try_elsewhere(&early_mutex), 0);
	lock(&early_mutex);
	CHECK_EQ(try_elsewhere(&early_mutex), EBUSY);
	unlock(&early_mutex);
	return 0;
}
