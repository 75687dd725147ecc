/* SPDX-License-Identifier: MIT */
/*
 * The exported __pthread_mutex_* names are the same functions: a lock taken by one name is held for
 * the other.
 */
#include "../tools/check.h"

typedef int mutex_fn(pthread_mutex_t *);

/* Old names: without a default version in newer glibcs. */
static void *find(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);

	return f ? f : dlvsym(RTLD_DEFAULT, name, "GLIBC_2.2.5");
}

int main(int argc, char **argv)
{
	mutex_fn *lock2 = (mutex_fn *)find("__pthread_mutex_lock");
	mutex_fn *try2 = (mutex_fn *)find("__pthread_mutex_trylock");
	mutex_fn *unlock2 = (mutex_fn *)find("__pthread_mutex_unlock");
	mutex_fn *destroy2 = (mutex_fn *)find("__pthread_mutex_destroy");
	int (*init2)(pthread_mutex_t *, const pthread_mutexattr_t *) =
	    (int (*)(pthread_mutex_t *, const pthread_mutexattr_t *))find("__pthread_mutex_init");
	pthread_mutex_t m;

	check_begin(argv[0], 20);
	if (!lock2 || !try2 || !unlock2)
		check_skip("this libc has no such names");
	CHECK_EQ(init2 ? init2(&m, NULL) : pthread_mutex_init(&m, NULL), 0);
	CHECK_EQ(lock2(&m), 0);
	CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	CHECK_EQ(try2(&m), EBUSY);
	unlock(&m);
	lock(&m);
	CHECK_EQ(try2(&m), EBUSY);
	CHECK_EQ(unlock2(&m), 0);
	CHECK_EQ(try2(&m), 0);
	CHECK_EQ(try_elsewhere(&m), EBUSY);
	CHECK_EQ(unlock2(&m), 0);
	CHECK_EQ(destroy2 ? destroy2(&m) : pthread_mutex_destroy(&m), 0);
	return 0;
}
