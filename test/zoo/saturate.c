/* SPDX-License-Identifier: MIT */
/*
 * Of the single-word lock: its 16 bits of readers are full at 65,535, which is EAGAIN and not a
 * corrupt word.
 */
#include "../tools/check.h"

#define READERS 65535

int main(int argc, char **argv)
{
	static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

	check_begin(argv[0], 30);
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_rdlock(&rw), EAGAIN);
	CHECK_EQ(pthread_rwlock_tryrdlock(&rw), EBUSY);
	CHECK_EQ(pthread_rwlock_trywrlock(&rw), EBUSY);
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return 0;
}
