/* SPDX-License-Identifier: MIT */
/*
 * Mutexes and condition variables come from one object, every function of them,
 * whatever version a program refers to or looks up; C11's too, which are the same objects.
 * But for the condition variables of glibc 2.2.5, which are others: those are libc's.
 */
#include "../tools/check.h"

/* clang-format off */
#define POSIX(X)                                                                                             \
	X(pthread_mutex_init)                                                                                \
	X(pthread_mutex_destroy) X(pthread_mutex_lock) X(pthread_mutex_trylock) X(pthread_mutex_timedlock)   \
	    X(pthread_mutex_clocklock) X(pthread_mutex_unlock) X(pthread_mutex_consistent)                   \
		X(pthread_mutex_getprioceiling) X(pthread_mutex_setprioceiling) X(pthread_cond_init)         \
		    X(pthread_cond_destroy) X(pthread_cond_wait) X(pthread_cond_timedwait)                   \
			X(pthread_cond_clockwait) X(pthread_cond_signal) X(pthread_cond_broadcast)
/* clang-format on */

#define NAME(f)	   #f,
#define ADDRESS(f) (void *)f,

static const char *const posix[] = {POSIX(NAME) NULL};
static void *const posix_bound[] = {POSIX(ADDRESS) NULL};
static const char *const c11[] = {
    "mtx_init",	  "mtx_destroy",   "mtx_lock",	  "mtx_trylock", "mtx_timedlock",
    "mtx_unlock", "cnd_init",	   "cnd_destroy", "cnd_wait",	 "cnd_timedwait",
    "cnd_signal", "cnd_broadcast", NULL};

#ifdef __x86_64__ /* the version nodes of glibc differ between architectures */
/* clang-format off */
#define OLD(X)                                                                                               \
	X(pthread_mutex_lock, "GLIBC_2.2.5")                                                                 \
	X(pthread_mutex_unlock, "GLIBC_2.2.5") X(pthread_mutex_trylock, "GLIBC_2.2.5")                       \
	    X(pthread_mutex_timedlock, "GLIBC_2.2.5") X(pthread_mutex_clocklock, "GLIBC_2.30")               \
		X(pthread_mutex_init, "GLIBC_2.2.5") X(pthread_cond_wait, "GLIBC_2.3.2")                     \
		    X(pthread_cond_timedwait, "GLIBC_2.3.2") X(pthread_cond_clockwait, "GLIBC_2.30")         \
			X(pthread_cond_signal, "GLIBC_2.3.2")
/* clang-format on */
#define DECLARE(f, version) \
	void old_##f(void); \
	__asm__(".symver old_" #f ", " #f "@" version);
#define OLD_ADDRESS(f, version) (void *)old_##f,

OLD(DECLARE)
static void *const old_bound[] = {OLD(OLD_ADDRESS) NULL};

/* clang-format off */
#define FIRST_CONDS(X)                                                                                       \
	X(pthread_cond_init, "GLIBC_2.2.5")                                                                  \
	X(pthread_cond_destroy, "GLIBC_2.2.5") X(pthread_cond_wait, "GLIBC_2.2.5")                           \
	    X(pthread_cond_timedwait, "GLIBC_2.2.5") X(pthread_cond_signal, "GLIBC_2.2.5")                   \
		X(pthread_cond_broadcast, "GLIBC_2.2.5")
/* clang-format on */
#define DECLARE_FIRST(f, version) \
	void first_##f(void);     \
	__asm__(".symver first_" #f ", " #f "@" version);
#define FIRST_ADDRESS(f, version) (void *)first_##f,
#define LOOK_UP(f, version)	  {#f, version},

FIRST_CONDS(DECLARE_FIRST)
static void *const first_conds[] = {FIRST_CONDS(FIRST_ADDRESS) NULL};
static const struct look_up {
	const char *name, *version;
} old_looked_up[] = {OLD(LOOK_UP){NULL, NULL}},
  first_looked_up[] = {FIRST_CONDS(LOOK_UP){NULL, NULL}};
#else
static void *const old_bound[] = {NULL}, *const first_conds[] = {NULL};
static const struct look_up {
	const char *name, *version;
} old_looked_up[] = {{NULL, NULL}}, first_looked_up[] = {{NULL, NULL}};
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

static void expect_versions_from(const void *first, const struct look_up *l)
{
	for (; l->name; l++)
		if (base_of(dlvsym(RTLD_DEFAULT, l->name, l->version)) != first) {
			check_say("%s of %s comes from elsewhere", l->name, l->version);
			CHECK(!"one object");
		}
}

int main(int argc, char **argv)
{
	const void *first, *libc;

	check_begin(argv[0], 20);
	first = base_of(posix_bound[0]);
	expect_from(first, posix);
	expect_from(first, c11);
	for (int i = 0; posix_bound[i]; i++)
		CHECK(base_of(posix_bound[i]) == first);
	for (int i = 0; old_bound[i]; i++)
		CHECK(base_of(old_bound[i]) == first);
	expect_versions_from(first, old_looked_up);
	if (argc > 1) {
		void *lib = dlopen(argv[1], RTLD_NOW);
		void *const *f = lib ? dlsym(lib, "unversioned") : NULL;

		CHECK(f);
		for (; *f; f++)
			CHECK(base_of(*f) == first);
	}
	libc = base_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
	for (int i = 0; first_conds[i]; i++)
		CHECK(base_of(first_conds[i]) == libc);
	expect_versions_from(libc, first_looked_up);
	return 0;
}
