/* SPDX-License-Identifier: MIT */
/*
 * A destructor of thread-specific data finds the reader-writer locks and the spinlock that its
 * thread holds: they are still its own (EDEADLK for what it writes), keep others out, and are free
 * once it has released them.
 */
#include "../tools/check.h"

static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER, is_read = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_key_t key;

static void *try_to_write(void *lock)
{
	long r = pthread_rwlock_trywrlock(lock);

	if (!r)
		CHECK_EQ(pthread_rwlock_unlock(lock), 0);
	return (void *)r;
}

static void destroy(void *arg)
{
	CHECK_EQ(pthread_rwlock_wrlock(&written), EDEADLK);
	CHECK_EQ(pthread_rwlock_rdlock(&written), EDEADLK);
	CHECK_EQ(pthread_rwlock_rdlock(&is_read), 0);
	CHECK_EQ(pthread_rwlock_unlock(&is_read), 0);
	CHECK_EQ(in_thread(try_to_write, &written), EBUSY);
	CHECK_EQ(in_thread(try_to_write, &is_read), EBUSY);
	CHECK_EQ(pthread_rwlock_unlock(&written), 0);
	CHECK_EQ(pthread_rwlock_unlock(&is_read), 0);
	CHECK_EQ(pthread_spin_unlock(&spin), 0);
	CHECK_EQ(in_thread(try_to_write, &written), 0);
	CHECK_EQ(in_thread(try_to_write, &is_read), 0);
	CHECK_EQ(pthread_spin_trylock(&spin), 0);
	CHECK_EQ(pthread_spin_unlock(&spin), 0);
}

static void *work(void *arg)
{
	CHECK_EQ(pthread_rwlock_wrlock(&written), 0);
	CHECK_EQ(pthread_rwlock_rdlock(&is_read), 0);
	CHECK_EQ(pthread_spin_lock(&spin), 0);
	CHECK_EQ(pthread_setspecific(key, &key), 0);
	return NULL;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
	late_key(&key, destroy);
	for (int i = 0; i < 50; i++)
		join(start(work, NULL));
	return 0;
}
