/* SPDX-License-Identifier: MIT */
/*
 * lock/mutex.h over the lock that FLEXGUARD_LOCK names: types, deadlines, nodes.  In
 * libflexguard-zoo.so this file stands where src/lock/mutex.c does elsewhere.
 */
#include "lock/mutex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/options.h"
#include "lock/epoch.h"
#include "runtime/count.h"
#include "runtime/decide.h"
#include "zoo/hybrid.h"
#include "zoo/pairname.h"

_Static_assert(sizeof(struct zoo_mutex) == sizeof(struct fg_mutex) &&
		   offsetof(struct zoo_mutex, kind) == offsetof(struct fg_mutex, lock.tag),
	       "in place");

static const struct {
	const char *name;
	const struct zoo_lock *lock;
	unsigned can;
} locks[] = {
#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) {name, &zoo_##id, can},
	ZOO_TABLE(ZOO)
#undef ZOO
};

/* Chosen at the first lock, which may come before any constructor; the environment is there by then. */
static const struct zoo_lock *chosen;
static unsigned can;

/* Not a mutex's name: a rwlock's (rwlock.c), whose users' mutexes are these. */
static const struct zoo_lock *const fallback = &zoo_futex;

static __attribute__((cold, noreturn)) void zoo_refuse(const char *name, const char *why)
{
	dprintf(STDERR_FILENO, "flexguard: --lock %s: %s\n", name, why);
	_exit(125);
}

static __attribute__((noinline, cold)) const struct zoo_lock *choose(void)
{
	const char *name = secure_getenv(FG_LOCK_ENV), *why;
	const struct zoo_lock *lock = fallback;
	unsigned lock_can = ZOO_TIMED | ZOO_SHARED;
	struct zoo_pair pair;

	for (size_t i = 0; name && i < sizeof(locks) / sizeof(locks[0]); i++) {
		if (strcmp(name, locks[i].name))
			continue;
		lock = locks[i].lock;
		lock_can = locks[i].can;
	}
	if (name && zoo_pair_by_name(name, &pair)) {
		zoo_pair_choose(locks[pair.fast].lock, locks[pair.slow].lock);
		lock = pair.cond ? &zoo_hybridpaircond : &zoo_hybridpair;
		lock_can = 0;
	}
	/* `flexguard run` has tried it too: this is for who preloads the library by hand. */
	why = lock->start ? lock->start() : NULL;
	if (why)
		zoo_refuse(name, why);
	fg_store_relaxed(&can, lock_can);
	fg_store_release(&chosen, lock);
	return lock;
}

static const struct zoo_lock *zoo(void)
{
	const struct zoo_lock *z = fg_load_acquire(&chosen);

	return fg_likely(z != NULL) ? z : choose();
}

/* Before main, so that what a lock cannot do is not found out in the middle. */
__attribute__((constructor)) static void start(void)
{
	zoo();
}

bool _fg_mutex_may_be_shared(void)
{
	zoo();
	return can & ZOO_SHARED;
}

bool zoo_has_ticket_cond(void)
{
	return zoo()->ticket_cond;
}

static struct zoo_mutex *of(struct fg_mutex *m)
{
	return (struct zoo_mutex *)m;
}

/* ---- threads ------------------------------------------------------------------ */

uint32_t zoo_tid(void)
{
	static __thread uint32_t tid;
	static __thread uint32_t epoch;

	if (fg_unlikely(!tid || epoch != fg_load_relaxed(&fg_epoch))) { /* a child of fork has another */
		tid = (uint32_t)fg_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
		epoch = fg_load_relaxed(&fg_epoch);
	}
	return tid;
}

uint64_t zoo_spin_ns(void)
{
	return fg_spin_ns;
}

/* ---- sleeping: with private futexes, or for a process-shared mutex with the others ---- */

int zoo_wait(struct zoo_mutex *m, uint32_t *word, uint32_t value, const struct fg_deadline *deadline)
{
	fg_count(fg_self(), FG_STAT_PARKS, 1);
	if (fg_likely(!(m->kind & FG_KIND_ZOO_SHARED)))
		return fg_futex_wait(word, value, FG_FUTEX_ANY, deadline);
	return fg_futex_wait_shared(word, value, deadline);
}

int zoo_wake(struct zoo_mutex *m, uint32_t *word, int count)
{
	fg_count(fg_self(), FG_STAT_WAKEUPS, 1);
	if (fg_likely(!(m->kind & FG_KIND_ZOO_SHARED)))
		return fg_futex_wake(word, count, FG_FUTEX_ANY);
	return fg_futex_wake_shared(word, count);
}

void zoo_park(uint32_t *word, uint32_t value)
{
	fg_count(fg_self(), FG_STAT_PARKS, 1);
	fg_futex_wait(word, value, FG_FUTEX_ANY, NULL);
}

void zoo_unpark(uint32_t *word)
{
	fg_count(fg_self(), FG_STAT_WAKEUPS, 1);
	fg_futex_wake(word, 1, FG_FUTEX_ANY);
}

void zoo_nap(uint64_t ns)
{
	struct timespec t = {.tv_nsec = (long)ns};

	fg_syscall6(SYS_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}

/* ---- fork ---------------------------------------------------------------------------- */

/*
 * A child's copy of a mutex has the queue, the tickets or the semaphore of threads that it does not have.
 * The kind has room for the fork that a mutex is of; at its first use in a child it is made anew, held if
 * it was.  `owner` is right in the child: the thread that forks was not in the middle of anything.
 */
#define EPOCH_SHIFT 12
#define EPOCH_MASK  0xffffu

static bool is_parents(const struct zoo_mutex *m)
{
	return fg_unlikely(((fg_load_acquire(&m->kind) >> EPOCH_SHIFT ^ fg_load_relaxed(&fg_epoch)) & EPOCH_MASK) != 0);
}

static __attribute__((noinline, cold)) void renew(struct zoo_mutex *m, const struct zoo_lock *z)
{
	uint32_t kind = fg_load_relaxed(&m->kind), fresh;
	bool taken;

	fresh = (kind & ~(EPOCH_MASK << EPOCH_SHIFT)) | (fg_load_relaxed(&fg_epoch) & EPOCH_MASK) << EPOCH_SHIFT;
	if (kind & FG_KIND_ZOO_SHARED) {
		fg_cas_relaxed(&m->kind, &kind, fresh);
		return;
	}
	taken = _fg_epoch_lock();
	if (!is_parents(m)) {
		/* Another thread has been here. */
	} else if (z->glibc_kind) {
		zoo_glibc_renew(m);
		fg_store_release(&m->kind, fresh);
	} else {
		m->s.u64[0] = m->s.u64[1] = 0;
		m->node = NULL;
		if (m->owner)
			z->trylock(m);
		fg_store_release(&m->kind, fresh); /* pairs with the acquire in is_parents() */
	}
	_fg_epoch_unlock(taken);
}

/* ---- types --------------------------------------------------------------------- */

static const struct zoo_lock *ready(struct zoo_mutex *m)
{
	const struct zoo_lock *z = zoo();

	if (is_parents(m))
		renew(m, z);
	return z;
}

static bool knows_owner(const struct zoo_mutex *m)
{
	uint32_t type = m->kind & FG_KIND_TYPE;

	return type == FG_KIND_RECURSIVE || type == FG_KIND_ERRORCHECK;
}

static bool is_recursive(const struct zoo_mutex *m)
{
	return (m->kind & FG_KIND_TYPE) == FG_KIND_RECURSIVE;
}

static bool owned(const struct zoo_mutex *m)
{
	return fg_load_relaxed(&m->owner) == zoo_tid();
}

static int lock_again(struct zoo_mutex *m)
{
	if (m->count == UINT32_MAX) /* as glibc's limit */
		return EAGAIN;
	m->count++;
	return 0;
}

static void acquired(struct zoo_mutex *m)
{
	fg_store_relaxed(&m->owner, zoo_tid());
}

/* A lock that cannot be left once one has queued for it is asked again and again instead. */
static bool lock_by_polling(const struct zoo_lock *z, struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	while (!z->trylock(m)) {
		if (fg_deadline_passed(deadline))
			return false;
		fg_syscall6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	return true;
}

int _fg_mutex_lock_untraced(struct fg_mutex *mutex, const struct fg_deadline *deadline)
{
	struct zoo_mutex *m = of(mutex);
	const struct zoo_lock *z = ready(m);

	if (z->glibc_kind)
		return zoo_glibc_lock(m, z, deadline);
	if (knows_owner(m) && owned(m))
		return is_recursive(m) ? lock_again(m) : EDEADLK;
	if (z->untried || !(z->first ? z->first : z->trylock)(m)) {
		if (!z->untried)
			fg_count(fg_self(), FG_STAT_CONTENDED, 1);
		if (deadline && !(can & ZOO_TIMED)) {
			if (!lock_by_polling(z, m, deadline))
				return ETIMEDOUT;
		} else if (!z->lock(m, deadline)) {
			return ETIMEDOUT;
		}
	}
	acquired(m);
	return 0;
}

int _fg_mutex_trylock(struct fg_mutex *mutex)
{
	struct zoo_mutex *m = of(mutex);
	const struct zoo_lock *z = ready(m);

	if (z->glibc_kind)
		return zoo_glibc_try(m, z);
	if (is_recursive(m) && owned(m))
		return lock_again(m);
	if (!z->trylock(m))
		return EBUSY;
	acquired(m);
	return 0;
}

static int release(struct zoo_mutex *m, const struct zoo_lock *z, void (*unlock)(struct zoo_mutex *m))
{
	if (knows_owner(m)) {
		if (!owned(m))
			return EPERM;
		if (m->count) {
			m->count--;
			return 0;
		}
	} else if (fg_unlikely(!fg_load_relaxed(&m->owner))) {
		return 0; /* nobody holds it: undefined in POSIX, nothing in glibc, a lost node in a queue */
	}
	fg_store_relaxed(&m->owner, 0);
	unlock(m);
	return 0;
}

int _fg_mutex_unlock(struct fg_mutex *mutex)
{
	struct zoo_mutex *m = of(mutex);
	const struct zoo_lock *z = ready(m);

	return z->glibc_kind ? zoo_glibc_unlock(m, z) : release(m, z, z->unlock);
}

/* ---- what a program may choose (choices.h) ---- */

int zoo_release_fairly(struct zoo_mutex *m)
{
	const struct zoo_lock *z = ready(m);

	return z->unlock_fairly ? release(m, z, z->unlock_fairly) : ENOTSUP;
}

int zoo_set_spin(struct zoo_mutex *m, uint32_t ns)
{
	if (!zoo()->spins)
		return ENOTSUP;
	fg_store_relaxed(&m->holder, ns ? ns : 1);
	return 0;
}

/* Here nothing has a short way past _fg_mutex_unlock(). */
void _fg_mutex_unlock_slow(struct fg_mutex *m)
{
	_fg_mutex_unlock(m);
}

int _fg_mutex_destroy(struct fg_mutex *mutex)
{
	struct zoo_mutex *m = of(mutex);
	const struct zoo_lock *z = ready(m);

	if (z->glibc_kind)
		return zoo_glibc_end(m, z);
	if (fg_load_relaxed(&m->owner))
		return EBUSY;
	if (z->end)
		z->end(m);
	m->kind = ~0u; /* as glibc does */
	return 0;
}

int _fg_mutex_lock_traced(struct fg_mutex *m, const struct fg_deadline *deadline, const void *caller)
{
	struct fg_traced t = fg_trace_begins();
	int r = _fg_mutex_lock_untraced(m, deadline);

	fg_trace_ends(&t, m, caller);
	return r;
}
