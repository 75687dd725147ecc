/* SPDX-License-Identifier: MIT */
/* EAGAIN when the count of a recursive mutex is full, where the count stands in its glibc field. */
#include "../tools/check.h"

int main(int argc, char **argv)
{
	pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

	check_begin(argv[0], 20);
	lock(&m);
	lock(&m);
	lock(&m);
	if (m.__data.__count != 3)
		check_skip("the count is elsewhere or counts otherwise (%u at depth 3)", m.__data.__count);
	m.__data.__count = ~0u;
	CHECK_EQ(pthread_mutex_lock(&m), EAGAIN);
	CHECK_EQ(pthread_mutex_trylock(&m), EAGAIN);
	m.__data.__count = 3;
	unlock(&m);
	unlock(&m);
	CHECK_EQ(try_elsewhere(&m), EBUSY);
	unlock(&m);
	CHECK_EQ(try_elsewhere(&m), 0);
	return 0;
}
