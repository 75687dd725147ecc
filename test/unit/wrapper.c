/* SPDX-License-Identifier: MIT */
/*
 * A preloaded library that wraps condition variables and passes on to whoever is next, by the
 * version of glibc's that it knows: as sanitizers and tracers do, which must not get the condition
 * variables of 2.2.5.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#ifdef __x86_64__
#define VERSION "GLIBC_2.3.2"
#else
#define VERSION "GLIBC_2.17"
#endif

static void *next(const char *name)
{
	void *f = dlvsym(RTLD_NEXT, name, VERSION);

	if (!f)
		f = dlsym(RTLD_NEXT, name);
	if (!f)
		abort();
	return f;
}

#define WRAP(name, arguments, ...)                                           \
	int name arguments                                                   \
	{                                                                    \
		static __typeof__(name) *f;                                  \
                                                                             \
		if (!__atomic_load_n(&f, __ATOMIC_RELAXED))                  \
			__atomic_store_n(&f, next(#name), __ATOMIC_RELAXED); \
		return f(__VA_ARGS__);                                       \
	}
WRAP(pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), c, a)
WRAP(pthread_cond_destroy, (pthread_cond_t * c), c)
WRAP(pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), c, m)
WRAP(pthread_cond_timedwait, (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *t), c,
     m, t)
WRAP(pthread_cond_signal, (pthread_cond_t * c), c)
WRAP(pthread_cond_broadcast, (pthread_cond_t * c), c)
