/* SPDX-License-Identifier: MIT */
/* destroy says EBUSY while the lock is held, and the memory is good for another lock afterwards. */
#include "../tools/check.h"

int main(int argc, char **argv)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	pthread_mutex_t m;

	check_begin(argv[0], 20);
	for (int i = 0; i < 100; i++) {
		mutex_of_type(&m, types[i % 4]);
		lock(&m);
		CHECK_EQ(pthread_mutex_destroy(&m), EBUSY);
		CHECK_EQ(try_elsewhere(&m), EBUSY);
		unlock(&m);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
	}
	return 0;
}
