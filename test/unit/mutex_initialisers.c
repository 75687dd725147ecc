/* SPDX-License-Identifier: MIT */
/*
 * Every way to make a mutex, with and without attributes, gives one that works; so does zeroed
 * memory.
 */
#include "../tools/check.h"

static void exercise(pthread_mutex_t *m, int type)
{
	int again = type == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY;

	for (int i = 0; i < 3; i++) {
		lock(m);
		CHECK_EQ(try_elsewhere(m), EBUSY);
		CHECK_EQ(pthread_mutex_trylock(m), again);
		if (!again)
			unlock(m);
		CHECK_EQ(try_elsewhere(m), EBUSY);
		unlock(m);
		CHECK_EQ(try_elsewhere(m), 0);
		CHECK_EQ(pthread_mutex_trylock(m), 0);
		unlock(m);
	}
	CHECK_EQ(pthread_mutex_destroy(m), 0);
}

int main(int argc, char **argv)
{
	static pthread_mutex_t in_bss;
	static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
	static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	static pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP,
				    PTHREAD_MUTEX_DEFAULT};
	pthread_mutex_t m, local = PTHREAD_MUTEX_INITIALIZER;

	check_begin(argv[0], 20);
	exercise(&in_bss, PTHREAD_MUTEX_NORMAL);
	exercise(&normal, PTHREAD_MUTEX_NORMAL);
	exercise(&local, PTHREAD_MUTEX_NORMAL);
	exercise(&recursive, PTHREAD_MUTEX_RECURSIVE);
	exercise(&errorcheck, PTHREAD_MUTEX_ERRORCHECK);
	exercise(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);

	memset(&m, 0x5a, sizeof m);
	CHECK_EQ(pthread_mutex_init(&m, NULL), 0);
	exercise(&m, PTHREAD_MUTEX_NORMAL);
	for (int i = 0; i < 5; i++) {
		memset(&m, 0xff, sizeof m);
		mutex_of_type(&m, types[i]);
		exercise(&m, types[i]);
	}
	memset(&m, 0, sizeof m);
	exercise(&m, PTHREAD_MUTEX_NORMAL);
	return 0;
}
