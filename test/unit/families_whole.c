/* SPDX-License-Identifier: MIT */
/*
 * Mutexes and condition variables come from one object, every function of them,
 * whatever version a program refers to; C11's too, which are the same objects.
 */
#include "../tools/check.h"

#define POSIX(X)                                                                                             \
	X(pthread_mutex_init)                                                                                \
	X(pthread_mutex_destroy) X(pthread_mutex_lock) X(pthread_mutex_trylock) X(pthread_mutex_timedlock)   \
	    X(pthread_mutex_clocklock) X(pthread_mutex_unlock) X(pthread_mutex_consistent)                   \
		X(pthread_mutex_getprioceiling) X(pthread_mutex_setprioceiling) X(pthread_cond_init)         \
		    X(pthread_cond_destroy) X(pthread_cond_wait) X(pthread_cond_timedwait)                   \
			X(pthread_cond_clockwait) X(pthread_cond_signal) X(pthread_cond_broadcast)

#define NAME(f)	   #f,
#define ADDRESS(f) (void *)f,

static const char *const posix[] = {POSIX(NAME) NULL};
static void *const posix_bound[] = {POSIX(ADDRESS) NULL};
static const char *const c11[] = {
    "mtx_init",	   "mtx_destroy", "mtx_lock",	   "mtx_trylock", "mtx_timedlock", "mtx_unlock", "cnd_init",
    "cnd_destroy", "cnd_wait",	  "cnd_timedwait", "cnd_signal",  "cnd_broadcast", NULL};

#ifdef __x86_64__ /* the version nodes of glibc differ between architectures */
#define OLD(X)                                                                                               \
	X(pthread_mutex_lock, "GLIBC_2.2.5")                                                                 \
	X(pthread_mutex_unlock, "GLIBC_2.2.5") X(pthread_mutex_trylock, "GLIBC_2.2.5")                       \
	    X(pthread_mutex_timedlock, "GLIBC_2.2.5") X(pthread_mutex_clocklock, "GLIBC_2.30")               \
		X(pthread_mutex_init, "GLIBC_2.2.5") X(pthread_cond_wait, "GLIBC_2.3.2")                     \
		    X(pthread_cond_timedwait, "GLIBC_2.3.2") X(pthread_cond_clockwait, "GLIBC_2.30")         \
			X(pthread_cond_signal, "GLIBC_2.3.2")
#define DECLARE(f, version)                                                                                  \
	void old_##f(void);                                                                                  \
	__asm__(".symver old_" #f ", " #f "@" version);
#define OLD_ADDRESS(f, version) (void *)old_##f,

OLD(DECLARE)
static void *const old_bound[] = {OLD(OLD_ADDRESS) NULL};
#else
static void *const old_bound[] = {NULL};
#endif

static const void *base_of(void *f)
{
	Dl_info info;

	CHECK(f);
	CHECK(dladdr(f, &info));
	return info.dli_fbase;
}

static void expect_from(const void *first, const char *const *names)
{
	for (; *names; names++)
		if (base_of(dlsym(RTLD_DEFAULT, *names)) != first) {
			check_say("%s comes from elsewhere", *names);
			CHECK(!"one object");
		}
}

int main(int argc, char **argv)
{
	const void *first;

	check_begin(argv[0], 20);
	first = base_of(posix_bound[0]);
	expect_from(first, posix);
	expect_from(first, c11);
	for (int i = 0; posix_bound[i]; i++)
		CHECK(base_of(posix_bound[i]) == first);
	for (int i = 0; old_bound[i]; i++)
		CHECK(base_of(old_bound[i]) == first);
	return 0;
}
