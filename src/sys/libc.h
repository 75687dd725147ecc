/* SPDX-License-Identifier: MIT */
/*
 * libc's own functions, by address.  A name belongs to whoever comes first among
 * the preloaded libraries: a wrapper that takes a lock of its own, called from
 * where a lock is taken, would come back and back.  So what a lock path needs of
 * libc it calls through here; test/api/test_names.py knows what else is called by name,
 * and when.
 */
#ifndef FG_LIBC_H
#define FG_LIBC_H

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

/*
 * The function of that name, NULL as version for the default one; NULL if libc has none.  Not on a
 * lock path.
 */
void *fg_libc_function(const char *name, const char *version);

/*
 * How libc is opened for that, and by nobody else: by this what stands before dlopen() knows that a
 * copy of this library, its own or one that the program is linked with, looks for libc's functions,
 * and leaves libc as it is.
 */
#define FG_LIBC_MODE (RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)

/* Libc's, in no header of its (sys/cleanup.h). */
void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *),
			   void *arg);
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

/* name, type of function */
/* clang-format off */
#define FG_LIBC_TABLE(X)                                                       \
	X(_pthread_cleanup_push,                                               \
	  void (*)(struct _pthread_cleanup_buffer *, void (*)(void *), void *)) \
	X(_pthread_cleanup_pop, void (*)(struct _pthread_cleanup_buffer *, int)) \
	X(pthread_mutex_lock, int (*)(pthread_mutex_t *))                      \
	X(pthread_mutex_unlock, int (*)(pthread_mutex_t *))                    \
	X(pthread_setcanceltype, int (*)(int, int *))                          \
	X(pthread_setspecific, int (*)(pthread_key_t, const void *))           \
	X(pthread_testcancel, void (*)(void))                                  \
	X(sem_post, int (*)(sem_t *))
/* clang-format on */

enum fg_libc_index {
#define X(name, type) FG_LIBC_##name,
	FG_LIBC_TABLE(X)
#undef X
	    FG_LIBC_COUNT
};

/* At the start of the process.  Before it, each is looked up when it is first needed. */
void fg_libc_setup(void);

void *fg_libc(enum fg_libc_index which);

#define X(name, type)                                                \
	static inline __typeof__((type)0) fg_libc_##name(void)       \
	{                                                            \
		return (__typeof__((type)0))fg_libc(FG_LIBC_##name); \
	}
FG_LIBC_TABLE(X)
#undef X

#endif
