/* SPDX-License-Identifier: MIT */
/*
 * Included by flexguard.h under -fsanitize=thread: each call that takes something
 * tells the sanitizer that it comes after those that gave it.  A wait that is
 * cancelled does not: what its cleanup handlers look at may be reported as a race.
 */
#ifndef FLEXGUARD_TSAN_H
#define FLEXGUARD_TSAN_H

#ifdef __cplusplus
extern "C" {
#endif

void __tsan_acquire(void *address);
void __tsan_release(void *address);

static inline int fg_tsan_taken(void *object, int error)
{
	if (!error)
		__tsan_acquire(object);
	return error;
}

static inline int fg_tsan_mutex_lock(fg_mutex_t *mutex)
{
	return fg_tsan_taken(mutex, fg_mutex_lock(mutex));
}

static inline int fg_tsan_mutex_trylock(fg_mutex_t *mutex)
{
	return fg_tsan_taken(mutex, fg_mutex_trylock(mutex));
}

static inline int fg_tsan_mutex_timedlock(fg_mutex_t *mutex, clockid_t clock,
					  const struct timespec *deadline)
{
	return fg_tsan_taken(mutex, fg_mutex_timedlock(mutex, clock, deadline));
}

static inline int fg_tsan_mutex_unlock(fg_mutex_t *mutex)
{
	__tsan_release(mutex);
	return fg_mutex_unlock(mutex);
}

/* The mutex is taken again whatever the wait says; if it was never released, nothing is new. */
static inline int fg_tsan_cond_wait(fg_cond_t *cond, fg_mutex_t *mutex)
{
	int error;

	__tsan_release(mutex);
	error = fg_cond_wait(cond, mutex);
	__tsan_acquire(mutex);
	return error;
}

static inline int fg_tsan_cond_timedwait(fg_cond_t *cond, fg_mutex_t *mutex, clockid_t clock,
					 const struct timespec *deadline)
{
	int error;

	__tsan_release(mutex);
	error = fg_cond_timedwait(cond, mutex, clock, deadline);
	__tsan_acquire(mutex);
	return error;
}

static inline int fg_tsan_rwlock_rdlock(fg_rwlock_t *rwlock)
{
	return fg_tsan_taken(rwlock, fg_rwlock_rdlock(rwlock));
}

static inline int fg_tsan_rwlock_tryrdlock(fg_rwlock_t *rwlock)
{
	return fg_tsan_taken(rwlock, fg_rwlock_tryrdlock(rwlock));
}

static inline int fg_tsan_rwlock_timedrdlock(fg_rwlock_t *rwlock, clockid_t clock,
					     const struct timespec *deadline)
{
	return fg_tsan_taken(rwlock, fg_rwlock_timedrdlock(rwlock, clock, deadline));
}

static inline int fg_tsan_rwlock_wrlock(fg_rwlock_t *rwlock)
{
	return fg_tsan_taken(rwlock, fg_rwlock_wrlock(rwlock));
}

static inline int fg_tsan_rwlock_trywrlock(fg_rwlock_t *rwlock)
{
	return fg_tsan_taken(rwlock, fg_rwlock_trywrlock(rwlock));
}

static inline int fg_tsan_rwlock_timedwrlock(fg_rwlock_t *rwlock, clockid_t clock,
					     const struct timespec *deadline)
{
	return fg_tsan_taken(rwlock, fg_rwlock_timedwrlock(rwlock, clock, deadline));
}

static inline int fg_tsan_rwlock_unlock(fg_rwlock_t *rwlock)
{
	__tsan_release(rwlock);
	return fg_rwlock_unlock(rwlock);
}

static inline int fg_tsan_sem_wait(fg_sem_t *sem)
{
	return fg_tsan_taken(sem, fg_sem_wait(sem));
}

static inline int fg_tsan_sem_trywait(fg_sem_t *sem)
{
	return fg_tsan_taken(sem, fg_sem_trywait(sem));
}

static inline int fg_tsan_sem_timedwait(fg_sem_t *sem, clockid_t clock,
					const struct timespec *deadline)
{
	return fg_tsan_taken(sem, fg_sem_timedwait(sem, clock, deadline));
}

static inline int fg_tsan_sem_post(fg_sem_t *sem)
{
	__tsan_release(sem);
	return fg_sem_post(sem);
}

static inline int fg_tsan_spin_lock(fg_spin_t *spin)
{
	return fg_tsan_taken(spin, fg_spin_lock(spin));
}

static inline int fg_tsan_spin_trylock(fg_spin_t *spin)
{
	return fg_tsan_taken(spin, fg_spin_trylock(spin));
}

static inline int fg_tsan_spin_unlock(fg_spin_t *spin)
{
	__tsan_release(spin);
	return fg_spin_unlock(spin);
}

/*
 * After its last round a barrier may be gone before everybody is back.  So what is
 * given and taken is one of a few bytes that stay, by the barrier's address; weak,
 * and so the same in the whole program.
 */
__attribute__((weak)) char fg_tsan_barriers[61];

static inline int fg_tsan_barrier_wait(fg_barrier_t *barrier)
{
	unsigned long address;
	char *stays;
	int serial;

	__builtin_memcpy(&address, &barrier, sizeof(address));
	stays = &fg_tsan_barriers[address / sizeof(*barrier) % sizeof(fg_tsan_barriers)];
	__tsan_release(stays);
	serial = fg_barrier_wait(barrier);
	__tsan_acquire(stays);
	return serial;
}

/*
 * The routine gives before fg_once lets others go on: a routine around it, which finds it in its
 * thread.
 */
static __thread struct {
	fg_once_t *once;
	void (*routine)(void);
} fg_tsan_once_call;

static inline void fg_tsan_once_routine(void)
{
	fg_once_t *once = fg_tsan_once_call.once; /* the routine may itself call fg_once */

	fg_tsan_once_call.routine();
	__tsan_release(once);
}

static inline int fg_tsan_once(fg_once_t *once, void (*routine)(void))
{
	fg_tsan_once_call.once = once;
	fg_tsan_once_call.routine = routine;
	return fg_tsan_taken(once, fg_once(once, fg_tsan_once_routine));
}

#ifdef __cplusplus
}
#endif

#define fg_mutex_lock	      fg_tsan_mutex_lock
#define fg_mutex_trylock      fg_tsan_mutex_trylock
#define fg_mutex_timedlock    fg_tsan_mutex_timedlock
#define fg_mutex_unlock	      fg_tsan_mutex_unlock
#define fg_cond_wait	      fg_tsan_cond_wait
#define fg_cond_timedwait     fg_tsan_cond_timedwait
#define fg_sem_wait	      fg_tsan_sem_wait
#define fg_sem_trywait	      fg_tsan_sem_trywait
#define fg_sem_timedwait      fg_tsan_sem_timedwait
#define fg_sem_post	      fg_tsan_sem_post
#define fg_spin_lock	      fg_tsan_spin_lock
#define fg_spin_trylock	      fg_tsan_spin_trylock
#define fg_spin_unlock	      fg_tsan_spin_unlock
#define fg_barrier_wait	      fg_tsan_barrier_wait
#define fg_once		      fg_tsan_once
#define fg_rwlock_rdlock      fg_tsan_rwlock_rdlock
#define fg_rwlock_tryrdlock   fg_tsan_rwlock_tryrdlock
#define fg_rwlock_timedrdlock fg_tsan_rwlock_timedrdlock
#define fg_rwlock_wrlock      fg_tsan_rwlock_wrlock
#define fg_rwlock_trywrlock   fg_tsan_rwlock_trywrlock
#define fg_rwlock_timedwrlock fg_tsan_rwlock_timedwrlock
#define fg_rwlock_unlock      fg_tsan_rwlock_unlock

#endif
