/* SPDX-License-Identifier: MIT */
/*
 * Every kind, by attribute and by static initialiser, excludes writers; process-shared ones do
 * between processes.
 */
#include "../tools/check.h"

#include <sys/mman.h>

static void *contend(void *arg)
{
	pthread_rwlock_t *l = arg;

	for (int i = 0; i < 2000; i++) {
		CHECK_EQ(pthread_rwlock_wrlock(l), 0);
		((volatile int *)(l + 1))[0]++;
		CHECK_EQ(pthread_rwlock_unlock(l), 0);
		CHECK_EQ(pthread_rwlock_rdlock(l), 0);
		CHECK_EQ(pthread_rwlock_unlock(l), 0);
	}
	return NULL;
}

static void sum_of_two(pthread_rwlock_t *l)
{
	pthread_t t;

	*(int *)(l + 1) = 0;
	t = start(contend, l);
	contend(l);
	join(t);
	CHECK_EQ(*(int *)(l + 1), 4000);
	CHECK_EQ(pthread_rwlock_destroy(l), 0);
}

int main(int argc, char **argv)
{
	static const pthread_rwlock_t initial[] = {
	    PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};
	struct {
		pthread_rwlock_t lock;
		int sum;
	} *o = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_rwlockattr_t attr;
	pid_t child;

	(void)argc;
	check_begin(argv[0], 30);
	CHECK(o != MAP_FAILED);
	for (int i = 0; i < 2; i++) {
		memcpy(&o->lock, &initial[i], sizeof(o->lock));
		sum_of_two(&o->lock);
	}
	for (int kind = 0; kind < 3; kind++) {
		CHECK_EQ(pthread_rwlockattr_init(&attr), 0);
		CHECK_EQ(pthread_rwlockattr_setkind_np(&attr, kind), 0);
		memset(&o->lock, 0xa5, sizeof(o->lock));
		CHECK_EQ(pthread_rwlock_init(&o->lock, &attr), 0);
		sum_of_two(&o->lock);
		CHECK_EQ(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
		memset(&o->lock, 0xa5, sizeof(o->lock));
		CHECK_EQ(pthread_rwlock_init(&o->lock, &attr), 0);
		o->sum = 0;
		child = check_fork();
		contend(&o->lock);
		if (!child)
			_exit(0);
		check_child(child);
		CHECK_EQ(o->sum, 4000);
		CHECK_EQ(pthread_rwlock_destroy(&o->lock), 0);
	}
	return 0;
}
