/* SPDX-License-Identifier: MIT */
/*
 * FlexGuard: locks that spin while the critical path is running and sleep when
 * the scheduler takes it off the CPU.  The C API; C++ has flexguard.hpp beside it.
 *
 * Rules for all functions:
 *
 *   - Those that return int return 0 or a positive error number of <errno.h>,
 *     and never EINTR; fg_barrier_wait may say FG_BARRIER_SERIAL.  None of them changes errno.
 *   - Pointers are to valid objects and not NULL.  An object is valid after its
 *     init function or static initialiser, or filled with zeroes, which is the
 *     same as the plain initialiser of its type (a barrier needs its init, a spinlock
 *     its initialiser).  It must not be copied or moved while it is in use, a barrier not
 *     at all.  Using it after its destroy function, or destroying it while threads use it,
 *     is undefined.
 *   - Objects are private to a process.  In the child of a fork they may be used
 *     as with pthreads: what the forking thread held it may release.
 *   - Time limits are absolute, on CLOCK_REALTIME or CLOCK_MONOTONIC.  EINVAL:
 *     another clock, or tv_nsec outside 0..999999999; nothing has happened then.
 *     One that has passed makes a try of it: what is free is taken, else ETIMEDOUT.
 *   - No function allocates memory.  None is safe to call from a signal handler
 *     but those that say so.  None but fg_cond_wait and fg_cond_timedwait is a
 *     cancellation point.
 *   - What happened before an unlock, signal or post in one thread is visible
 *     after the lock or wait that it ends in another.
 *
 * Link with -lflexguard (pkg-config flexguard, CMake package flexguard).
 */
#ifndef FLEXGUARD_H
#define FLEXGUARD_H

#include <sys/types.h>
#include <time.h>

/*
 * Of this header; fg_version() is that of the library.  What was built with this header runs with
 * this and all later versions of libflexguard.so.0.
 */
#define FG_VERSION_MAJOR  0
#define FG_VERSION_MINOR  1
#define FG_VERSION_PATCH  0
#define FG_VERSION_NUMBER (FG_VERSION_MAJOR * 10000 + FG_VERSION_MINOR * 100 + FG_VERSION_PATCH)

#if defined(__GNUC__)
#define FG_API __attribute__((visibility("default")))
#else
#define FG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct timespec; /* strict C99 has none in <time.h> without _POSIX_C_SOURCE */

/* FG_VERSION_NUMBER of the library that runs, which may be newer than this header. */
FG_API int fg_version(void);

/* ---- mutex ---------------------------------------------------------------- */

/* 40 bytes; the contents are the library's. */
typedef struct {
	unsigned long long fg_state[2];
	unsigned int fg_kind;
	unsigned int fg_more[5];
} fg_mutex_t;

enum {
	FG_MUTEX_NORMAL = 0,	 /* locking it twice deadlocks; another thread may unlock it */
	FG_MUTEX_RECURSIVE = 1,	 /* its owner may lock it again, and unlocks it as often */
	FG_MUTEX_ERRORCHECK = 2, /* says EDEADLK and EPERM where a normal one deadlocks or breaks */
	/*
	 * As a normal one, and its memory may become something else while it is locked, if nobody
	 * uses the mutex any more.  For that waiters are never given it by way of their own memory:
	 * with many CPUs, and short sections, up to a fifth slower (simulated).
	 */
	FG_MUTEX_MOVABLE = 0x100,
};

/* clang-format off */
#define FG_MUTEX_INIT		 { { 0, 0 }, FG_MUTEX_NORMAL, { 0, 0, 0, 0, 0 } }
#define FG_RECURSIVE_MUTEX_INIT	 { { 0, 0 }, FG_MUTEX_RECURSIVE, { 0, 0, 0, 0, 0 } }
#define FG_ERRORCHECK_MUTEX_INIT { { 0, 0 }, FG_MUTEX_ERRORCHECK, { 0, 0, 0, 0, 0 } }
#define FG_MOVABLE_MUTEX_INIT	 { { 0, 0 }, FG_MUTEX_MOVABLE, { 0, 0, 0, 0, 0 } }
/* clang-format on */

/* kind: FG_MUTEX_NORMAL, _RECURSIVE, _ERRORCHECK or _MOVABLE; EINVAL: none of them. */
FG_API int fg_mutex_init(fg_mutex_t *mutex, int kind);

/*
 * EBUSY: it is locked, or threads wait with it on a condition variable; it stays
 * valid.  Not needed for memory that is simply given up.  A thread that has locked
 * a mutex as the last user may destroy and free it right after its unlock, though
 * others may still be in theirs.
 */
FG_API int fg_mutex_destroy(fg_mutex_t *mutex);

/* EDEADLK (errorcheck): the caller owns it.  EAGAIN (recursive): locked 2^32 times. */
FG_API int fg_mutex_lock(fg_mutex_t *mutex);

/* EBUSY: it is locked; by the caller too, unless recursive.  EAGAIN as with fg_mutex_lock. */
FG_API int fg_mutex_trylock(fg_mutex_t *mutex);

/* ETIMEDOUT; EINVAL (see above); EDEADLK and EAGAIN as with fg_mutex_lock. */
FG_API int fg_mutex_timedlock(fg_mutex_t *mutex, clockid_t clock, const struct timespec *deadline);

/* EPERM (recursive, errorcheck): the caller does not own it.  The mutex must be locked. */
FG_API int fg_mutex_unlock(fg_mutex_t *mutex);

/* ---- condition variable ---------------------------------------------------- */

/* 48 bytes; the contents are the library's. */
typedef struct {
	unsigned long long fg_state[6];
} fg_cond_t;

/* clang-format off */
#define FG_COND_INIT { { 0, 0, 0, 0, 0, 0 } }
/* clang-format on */

/* Always 0. */
FG_API int fg_cond_init(fg_cond_t *cond);

/*
 * Always 0.  Nobody may wait.  Threads that have been woken but have not come
 * back from their wait may: it waits for those that still need the object.
 */
FG_API int fg_cond_destroy(fg_cond_t *cond);

/*
 * Releases the mutex, sleeps until woken, takes the mutex again, as one step for
 * whoever signals with the mutex held.  May come back without a signal: wait in
 * a loop that looks at the condition.  The caller owns the mutex, once.
 * Different mutexes may be used with one condition variable.
 *
 * A cancellation point: a cancelled thread has the mutex again when its cleanup
 * handlers run, and takes no signal that another waiter could have had.
 *
 * EPERM (recursive, errorcheck): the caller does not own the mutex, nothing has
 * happened.
 */
FG_API int fg_cond_wait(fg_cond_t *cond, fg_mutex_t *mutex);

/*
 * The same; ETIMEDOUT: not woken in time; it owns the mutex again then as well.  EINVAL: see above.
 */
FG_API int fg_cond_timedwait(fg_cond_t *cond, fg_mutex_t *mutex, clockid_t clock,
			     const struct timespec *deadline);

/* Wakes one thread, or all, that wait now; nobody, if none does.  Always 0. */
FG_API int fg_cond_signal(fg_cond_t *cond);
FG_API int fg_cond_broadcast(fg_cond_t *cond);

/* ---- reader-writer lock ------------------------------------------------------ */

/* 56 bytes; the contents are the library's. */
typedef struct {
	unsigned long long fg_state[6];
	unsigned int fg_kind;
	unsigned int fg_more;
} fg_rwlock_t;

/*
 * Readers let a writer that waits go first, so that writers do not starve.  Of
 * the default kind, a thread may still read again what it reads already, and no
 * reader waits for long because another one does not end; with writers first,
 * every reader that comes waits for every writer that waits.
 */
enum {
	FG_RWLOCK_DEFAULT = 0,
	FG_RWLOCK_WRITERS_FIRST = 2,
};

/* clang-format off */
#define FG_RWLOCK_INIT		     { { 0, 0, 0, 0, 0, 0 }, FG_RWLOCK_DEFAULT, 0 }
#define FG_WRITERS_FIRST_RWLOCK_INIT { { 0, 0, 0, 0, 0, 0 }, FG_RWLOCK_WRITERS_FIRST, 0 }
/* clang-format on */

/* kind: one of the two; EINVAL: none of them. */
FG_API int fg_rwlock_init(fg_rwlock_t *rwlock, int kind);

/*
 * Always 0.  Nobody uses it any more.  Not needed for memory that is simply given up, unless a
 * thread has it locked to write: until then that one looks as if others might wait for it.
 */
FG_API int fg_rwlock_destroy(fg_rwlock_t *rwlock);

/* To read, together with others.  EDEADLK: the caller writes.  EAGAIN: 2^28 - 2^23 threads read. */
FG_API int fg_rwlock_rdlock(fg_rwlock_t *rwlock);

/*
 * EBUSY: somebody writes, or, with writers first, waits to write.  Of the default kind it passes a
 * writer that waits for readers.  EAGAIN as with fg_rwlock_rdlock.
 */
FG_API int fg_rwlock_tryrdlock(fg_rwlock_t *rwlock);

/* ETIMEDOUT; EINVAL (see above); EDEADLK and EAGAIN as with fg_rwlock_rdlock. */
FG_API int fg_rwlock_timedrdlock(fg_rwlock_t *rwlock, clockid_t clock,
				 const struct timespec *deadline);

/*
 * To write, alone.  EDEADLK: the caller writes already.  One that reads must not
 * call it: it would wait for itself.
 */
FG_API int fg_rwlock_wrlock(fg_rwlock_t *rwlock);

/* EBUSY: somebody reads or writes, the caller too. */
FG_API int fg_rwlock_trywrlock(fg_rwlock_t *rwlock);

/* ETIMEDOUT; EINVAL (see above); EDEADLK as with fg_rwlock_wrlock. */
FG_API int fg_rwlock_timedwrlock(fg_rwlock_t *rwlock, clockid_t clock,
				 const struct timespec *deadline);

/* Always 0.  By the thread that has locked it, to read or to write. */
FG_API int fg_rwlock_unlock(fg_rwlock_t *rwlock);

/* ---- barrier ------------------------------------------------------------------ */

/* 32 bytes; the contents are the library's.  Zeroes are no valid one. */
typedef struct {
	unsigned int fg_state[8];
} fg_barrier_t;

#define FG_BARRIER_SERIAL (-1)

/* For so many threads.  EINVAL: 0, or more than 2^31 - 2. */
FG_API int fg_barrier_init(fg_barrier_t *barrier, unsigned int count);

/*
 * Always 0.  No round is under way.  Threads of the last round that have not come
 * back from it may be left: it waits for them.
 */
FG_API int fg_barrier_destroy(fg_barrier_t *barrier);

/*
 * Waits until `count` threads have come, which then go on.  FG_BARRIER_SERIAL for one of them, 0
 * for the others.
 */
FG_API int fg_barrier_wait(fg_barrier_t *barrier);

/* ---- once ---------------------------------------------------------------------- */

/* 4 bytes; the contents are the library's. */
typedef struct {
	unsigned int fg_state;
} fg_once_t;

/* clang-format off */
#define FG_ONCE_INIT { 0 }
/* clang-format on */

/*
 * Always 0.  Calls the routine, unless that has been done with this object; waits
 * while another thread does it.  If the routine is cancelled, throws a C++
 * exception or is left by longjmp(), it has not been done, and the next caller
 * tries.  It must not call fg_once with the same object.
 */
FG_API int fg_once(fg_once_t *once, void (*routine)(void));

/* ---- semaphore ------------------------------------------------------------------ */

/* 8 bytes; the contents are the library's. */
typedef struct {
	unsigned long long fg_state;
} fg_sem_t;

/* clang-format off */
/* Up to 2^31 - 1; of any integer type: in braces C++ takes no int variable for an unsigned. */
#ifdef __cplusplus
#define FG_SEM_INIT(value) { static_cast<unsigned long long>(value) }
#else
#define FG_SEM_INIT(value) { (unsigned long long)(value) }
#endif
/* clang-format on */

/* EINVAL: value above 2^31 - 1. */
FG_API int fg_sem_init(fg_sem_t *sem, unsigned int value);

/* Always 0.  Nobody may wait.  Not needed for memory that is simply given up. */
FG_API int fg_sem_destroy(fg_sem_t *sem);

/* Waits until the value is above 0, and takes 1 from it. */
FG_API int fg_sem_wait(fg_sem_t *sem);

/* EAGAIN: the value is 0. */
FG_API int fg_sem_trywait(fg_sem_t *sem);

/* ETIMEDOUT; EINVAL (see above). */
FG_API int fg_sem_timedwait(fg_sem_t *sem, clockid_t clock, const struct timespec *deadline);

/* Adds 1 to the value.  EOVERFLOW: it is 2^31 - 1.  May be called from a signal handler. */
FG_API int fg_sem_post(fg_sem_t *sem);

/* ---- spinlock ------------------------------------------------------------------- */

/* 4 bytes; the contents are the library's.  Zeroes are no free one on every CPU. */
typedef struct {
	int fg_state;
} fg_spin_t;

/* clang-format off */
#if defined(__x86_64__) || defined(__i386__)
#define FG_SPIN_INIT_ 1
#else
#define FG_SPIN_INIT_ 0
#endif
#define FG_SPIN_INIT { FG_SPIN_INIT_ }
/* clang-format on */

/* Both always 0; when it is destroyed, nobody may hold it. */
FG_API int fg_spin_init(fg_spin_t *spin);
FG_API int fg_spin_destroy(fg_spin_t *spin);

/*
 * Always 0.  For sections of a few instructions where 4 bytes matter; otherwise a
 * mutex costs no more.  Waiters sleep when the owner is off its CPU.  Not to be
 * locked twice; unlocked by the thread that has locked it.
 */
FG_API int fg_spin_lock(fg_spin_t *spin);

/* EBUSY: locked. */
FG_API int fg_spin_trylock(fg_spin_t *spin);

/* Always 0. */
FG_API int fg_spin_unlock(fg_spin_t *spin);

#ifdef __cplusplus
}
#endif

/* ThreadSanitizer does not see into the library: under it, calls tell it what they order. */
#if defined(__SANITIZE_THREAD__)
#include <flexguard_tsan.h>
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <flexguard_tsan.h>
#endif
#endif

#endif
