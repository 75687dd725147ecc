/* SPDX-License-Identifier: MIT */
/*
 * glibc's own functions, for the objects that stay with glibc: robust, PI, protected
 * and process-shared ones.  Found by version, since glibc has several of some
 * (docs/design/preload.md), in libc itself, whoever else stands behind us with the
 * same names, and when the library starts or when first needed: an object of
 * another library's constructor may come before ours.
 */
#ifndef FG_NATIVE_H
#define FG_NATIVE_H

#include <pthread.h>
#include <semaphore.h>

/* name, version, type of function */
/* clang-format off */
#define FG_NATIVE_TABLE(X)                                                                                   \
	X(pthread_mutex_init, "GLIBC_2.2.5", int (*)(pthread_mutex_t *, const pthread_mutexattr_t *))        \
	X(pthread_mutex_destroy, "GLIBC_2.2.5", int (*)(pthread_mutex_t *))                                  \
	X(pthread_mutex_lock, "GLIBC_2.2.5", int (*)(pthread_mutex_t *))                                     \
	X(pthread_mutex_trylock, "GLIBC_2.2.5", int (*)(pthread_mutex_t *))                                  \
	X(pthread_mutex_unlock, "GLIBC_2.2.5", int (*)(pthread_mutex_t *))                                   \
	X(pthread_mutex_timedlock, "GLIBC_2.2.5", int (*)(pthread_mutex_t *, const struct timespec *))       \
	X(pthread_mutex_clocklock, "GLIBC_2.34",                                                             \
	  int (*)(pthread_mutex_t *, clockid_t, const struct timespec *))                                    \
	X(pthread_mutex_consistent, "GLIBC_2.12", int (*)(pthread_mutex_t *))                                \
	X(pthread_mutex_getprioceiling, "GLIBC_2.4", int (*)(const pthread_mutex_t *, int *))                \
	X(pthread_mutex_setprioceiling, "GLIBC_2.4", int (*)(pthread_mutex_t *, int, int *))                 \
	X(pthread_cond_init, "GLIBC_2.3.2", int (*)(pthread_cond_t *, const pthread_condattr_t *))           \
	X(pthread_cond_destroy, "GLIBC_2.3.2", int (*)(pthread_cond_t *))                                    \
	X(pthread_cond_wait, "GLIBC_2.3.2", int (*)(pthread_cond_t *, pthread_mutex_t *))                    \
	X(pthread_cond_timedwait, "GLIBC_2.3.2",                                                             \
	  int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))                             \
	X(pthread_cond_clockwait, "GLIBC_2.34",                                                              \
	  int (*)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))                  \
	X(pthread_cond_signal, "GLIBC_2.3.2", int (*)(pthread_cond_t *))                                     \
	X(pthread_cond_broadcast, "GLIBC_2.3.2", int (*)(pthread_cond_t *))                                  \
	X(sem_wait, "GLIBC_2.34", int (*)(sem_t *))                                                          \
	X(sem_timedwait, "GLIBC_2.34", int (*)(sem_t *, const struct timespec *))                            \
	X(sem_clockwait, "GLIBC_2.34", int (*)(sem_t *, clockid_t, const struct timespec *))                 \
	X(pthread_barrier_init, "GLIBC_2.34",                                                                \
	  int (*)(pthread_barrier_t *, const pthread_barrierattr_t *, unsigned int))                         \
	X(pthread_barrier_wait, "GLIBC_2.34", int (*)(pthread_barrier_t *))                                  \
	X(pthread_barrier_destroy, "GLIBC_2.34", int (*)(pthread_barrier_t *))                               \
	X(pthread_rwlock_init, "GLIBC_2.34", int (*)(pthread_rwlock_t *, const pthread_rwlockattr_t *))      \
	X(pthread_rwlock_rdlock, "GLIBC_2.34", int (*)(pthread_rwlock_t *))                                  \
	X(pthread_rwlock_tryrdlock, "GLIBC_2.34", int (*)(pthread_rwlock_t *))                               \
	X(pthread_rwlock_wrlock, "GLIBC_2.34", int (*)(pthread_rwlock_t *))                                  \
	X(pthread_rwlock_trywrlock, "GLIBC_2.34", int (*)(pthread_rwlock_t *))                               \
	X(pthread_rwlock_unlock, "GLIBC_2.34", int (*)(pthread_rwlock_t *))                                  \
	X(pthread_rwlock_destroy, "GLIBC_2.34", int (*)(pthread_rwlock_t *))                                 \
	X(pthread_rwlock_timedrdlock, "GLIBC_2.34", int (*)(pthread_rwlock_t *, const struct timespec *))    \
	X(pthread_rwlock_timedwrlock, "GLIBC_2.34", int (*)(pthread_rwlock_t *, const struct timespec *))    \
	X(pthread_rwlock_clockrdlock, "GLIBC_2.34",                                                          \
	  int (*)(pthread_rwlock_t *, clockid_t, const struct timespec *))                                   \
	X(pthread_rwlock_clockwrlock, "GLIBC_2.34",                                                          \
	  int (*)(pthread_rwlock_t *, clockid_t, const struct timespec *))
/* clang-format on */

enum fg_native_index {
#define X(name, version, type) FG_NATIVE_##name,
	FG_NATIVE_TABLE(X)
#undef X
	    FG_NATIVE_COUNT
};

/* Never NULL: a glibc without the function cannot run the program that calls it. */
void *fg_native(enum fg_native_index which);

#define X(name, version, type)                                           \
	static inline __typeof__((type)0) fg_native_##name(void)         \
	{                                                                \
		return (__typeof__((type)0))fg_native(FG_NATIVE_##name); \
	}
FG_NATIVE_TABLE(X)
#undef X

#endif
