/* SPDX-License-Identifier: MIT */
/* What the operations on a reader-writer lock answer, to its holder and to others. */
#include "../tools/check.h"

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
static const struct timespec invalid = {0, 1000000000}, past = {1, 0};

static void *others(void *arg)
{
	int written = *(int *)arg;

	CHECK_EQ(pthread_rwlock_trywrlock(&lock_), EBUSY);
	CHECK_EQ(pthread_rwlock_timedwrlock(&lock_, &past), ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_clockwrlock(&lock_, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_timedwrlock(&lock_, &invalid), EINVAL);
	CHECK_EQ(pthread_rwlock_timedrdlock(&lock_, &invalid), EINVAL);
	CHECK_EQ(pthread_rwlock_clockrdlock(&lock_, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	CHECK_EQ(pthread_rwlock_tryrdlock(&lock_), written ? EBUSY : 0);
	if (!written)
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_timedrdlock(&lock_, &past), written ? ETIMEDOUT : 0);
	if (!written)
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_clockrdlock(&lock_, CLOCK_MONOTONIC, &past),
		 written ? ETIMEDOUT : 0);
	if (!written)
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct timespec *volatile no_time = NULL;
	int written = 1;

	(void)argc;
	check_begin(argv[0], 20);
	/* Without a time glibc looks at no clock either. */
	CHECK_EQ(pthread_rwlock_clockrdlock(&lock_, 99, no_time), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	/* A free lock is given to whoever asks, however late, but not for an invalid time. */
	CHECK_EQ(pthread_rwlock_timedwrlock(&lock_, &invalid), EINVAL);
	CHECK_EQ(pthread_rwlock_timedrdlock(&lock_, &past), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);

	CHECK_EQ(pthread_rwlock_timedwrlock(&lock_, &past), 0);
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), EDEADLK);
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), EDEADLK);
	CHECK_EQ(pthread_rwlock_timedrdlock(&lock_, &past), EDEADLK);
	CHECK_EQ(pthread_rwlock_timedwrlock(&lock_, &past), EDEADLK);
	CHECK_EQ(pthread_rwlock_tryrdlock(&lock_), EBUSY);
	CHECK_EQ(pthread_rwlock_trywrlock(&lock_), EBUSY);
	join(start(others, &written));
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);

	written = 0;
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&lock_), EBUSY);
	join(start(others, &written));
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&lock_), EBUSY);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_destroy(&lock_), 0);
	return 0;
}
