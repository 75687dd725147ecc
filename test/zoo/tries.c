/* SPDX-License-Identifier: MIT */
/*
 * A try does not wait: after every instruction of a read lock and its unlock, whose thread does not
 * go on until it is answered, another thread tries for a read lock, and has it.
 */
#include "../tools/step.h"

#include <sched.h>

#ifdef STEP_SUPPORTED
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static int request, answered;

static void *try_each(void *arg)
{
	(void)arg;
	for (int seen = 0;; seen++) {
		while (LOAD(request) == seen)
			sched_yield();
		if (LOAD(request) < 0)
			return NULL;
		CHECK_EQ(pthread_rwlock_tryrdlock(&rw), 0);
		CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
		STORE(answered, seen + 1);
	}
}

static void after_each(void)
{
	int n = ADD(request, 1);

	while (LOAD(answered) != n)
		sched_yield();
}

int main(int argc, char **argv)
{
	pthread_t t;

	check_begin(argv[0], 40);
	CHECK_EQ(pthread_rwlock_rdlock(&rw), 0); /* what is bound at the first call is bound */
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	t = start(try_each, NULL);
	step_begin(after_each);
	pthread_rwlock_rdlock(&rw);
	pthread_rwlock_unlock(&rw);
	step_end();
	CHECK(step_count > 10);
	STORE(request, -1);
	join(t);
	CHECK_EQ(pthread_rwlock_trywrlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_tryrdlock(&rw), EBUSY);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return 0;
}
#endif
