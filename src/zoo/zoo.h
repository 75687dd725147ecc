/* SPDX-License-Identifier: MIT */
/*
 * The zoo: locks of the literature in the place of ours, to measure against.
 *
 * libflexguard-zoo.so is the preload library with another src/lock/mutex.c, that of this folder;
 * rwlocks and condition variables are the product's unless the lock that is chosen (choose.h) has
 * its own.  A lock is one file with one `struct zoo_lock`, and one line in ZOO_TABLE.
 *
 * A lock has 16 bytes of the mutex; all zeroes is free.  What a thread needs for each lock that it
 * holds (a queue lock's node) comes from its pool, which has no limit, and outlives it.
 */
#ifndef FG_ZOO_H
#define FG_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/count.h"
#include "sys/atomic.h"
#include "sys/futex.h"
#include "zoo/table.h"

/* In place of a pthread_mutex_t (and of struct fg_mutex). */
struct zoo_mutex {
	union {
		uint32_t u32[4];
		uint64_t u64[2];
		void *p[2];
	} s;		/* the lock's own */
	uint32_t kind;	/* glibc's place and values */
	uint32_t owner; /* tid; 0: nobody, or about to be somebody */
	uint32_t count; /* recursive: acquisitions beyond the first */
	/* the lock's own, too; of those with `spins`: ns, 0 if FLEXGUARD_SPIN_NS says so */
	uint32_t holder;
	void *node; /* the owner's, from lock to unlock */
};
_Static_assert(sizeof(struct zoo_mutex) == 40 && offsetof(struct zoo_mutex, kind) == 16,
	       "in place");

struct zoo_lock {
	/* False: the deadline has passed, which only locks that can be timed are given. */
	bool (*lock)(struct zoo_mutex *m, const struct fg_deadline *deadline);
	bool (*trylock)(struct zoo_mutex *m);
	void (*unlock)(struct zoo_mutex *m);
	/* For a release that is to be fair, this once (choices.h); NULL: there is one way only. */
	void (*unlock_fairly)(struct zoo_mutex *m);
	/*
	 * What lock tries first; NULL: trylock.  For one whose trylock may do what its lock may
	 * not.
	 */
	bool (*first)(struct zoo_mutex *m);
	/*
	 * Nothing is tried first, since a try is a system call as lock is; whether it was held is
	 * not counted then.
	 */
	bool untried;
	/*
	 * Of the whole process, before the first lock; a sentence if it cannot work here.  NULL:
	 * nothing to do.
	 */
	const char *(*start)(void);
	/* When a mutex is destroyed; NULL: nothing to give back. */
	void (*end)(struct zoo_mutex *m);
	/* Glibc's own lock, of this kind (0: the default one): all functions above are NULL. */
	bool glibcs;
	uint32_t glibc_kind;
	/* How long its waiters spin may be chosen for a lock of its own (choices.h). */
	bool spins;
	/* Private condition variables are its own, too (cond.c). */
	bool ticket_cond;
};

#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	extern const struct zoo_lock zoo_##id;
ZOO_TABLE(ZOO)
#undef ZOO

/* choices.h over these. */
int zoo_release_fairly(struct zoo_mutex *m);
int zoo_set_spin(struct zoo_mutex *m, uint32_t ns);

/* For locks that are glibc's (glibc.c); results as pthread_mutex_lock() and the others. */
int zoo_glibc_lock(struct zoo_mutex *m, const struct zoo_lock *z,
		   const struct fg_deadline *deadline);
int zoo_glibc_try(struct zoo_mutex *m, const struct zoo_lock *z);
int zoo_glibc_unlock(struct zoo_mutex *m, const struct zoo_lock *z);
int zoo_glibc_end(struct zoo_mutex *m, const struct zoo_lock *z);
/* False: the parent's still, since the thread that forked, its owner, has to come first. */
bool zoo_glibc_renew(struct zoo_mutex *m);

/*
 * ---- nodes (node.c): one cache line each, never given back to the system, so that a late look is
 * harmless ----
 */

struct zoo_node {
	struct zoo_node *next;
	uint32_t status;
	uint32_t tid;
	uint64_t time[2];
	struct zoo_node *other;
	uint32_t extra[4];
	struct zoo_node *batch; /* of a free one */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct zoo_node) == 64, "one line");

struct zoo_node *zoo_node_get(void);
void zoo_node_put(struct zoo_node *node);

uint32_t zoo_tid(void);
/* Of the CPU that the thread runs on (numa.c); what a lock that asks for it has as `start`. */
uint32_t zoo_numa_node(void);
const char *zoo_numa_start(void);
/* From FLEXGUARD_SPIN_NS: how long locks that spin before they sleep do so. */
uint64_t zoo_spin_ns(void);
uint64_t zoo_cycles(void);

/* Of this lock, one with `spins`. */
static inline uint64_t zoo_spin_ns_of(const struct zoo_mutex *m)
{
	uint32_t ns = fg_load_relaxed(&m->holder);

	return ns ? ns : zoo_spin_ns();
}

/* The pair (pair.c) for whose fast side this thread waits; NULL: for none. */
extern __thread struct zoo_mutex *zoo_pair_waits;
void zoo_pair_look(void);

/* Between two looks at a lock that somebody else has. */
static inline void zoo_pause(void)
{
	fg_count(fg_self(), FG_STAT_SPINS, 1);
	if (fg_unlikely(zoo_pair_waits != NULL))
		zoo_pair_look();
	fg_pause();
}

/* Pauses of a waiter between two looks at what costs more: a clock, a switch.  Not varied. */
#define ZOO_LOOK_EVERY 64u

/* The lock of one that is tried again and again. */
static inline __attribute__((always_inline)) bool zoo_lock_by_trying(
    struct zoo_mutex *m, bool (*trylock)(struct zoo_mutex *m), const struct fg_deadline *deadline)
{
	for (uint32_t n = 0; !trylock(m); n++) {
		if (deadline && n % ZOO_LOOK_EVERY == 0 && fg_deadline_passed(deadline))
			return false;
		zoo_pause();
	}
	return true;
}

/*
 * A try of an MCS queue with this tail: a node of mine that is all of it, or NULL: somebody is in
 * it.  Acquire: pairs with zoo_node_behind(); release: a thread behind me finds my node as I left
 * it.
 */
static inline struct zoo_node *zoo_queue_try(struct zoo_node **tail, uint32_t status)
{
	struct zoo_node *none = NULL, *me;

	if (fg_load_relaxed(tail))
		return NULL;
	me = zoo_node_get();
	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, status);
	if (__atomic_compare_exchange_n(tail, &none, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return me;
	zoo_node_put(me);
	return NULL;
}

/*
 * Of an MCS queue with this tail, by its head `n`: the node behind, or NULL: there was none, and
 * now the lock is free.  Release: the next owner sees what was done in the section; acquire: the
 * node behind is as its owner left it.
 */
static inline struct zoo_node *zoo_node_behind(struct zoo_node **tail, struct zoo_node *n)
{
	struct zoo_node *next = fg_load_acquire(&n->next), *expected = n;

	if (!next && __atomic_compare_exchange_n(tail, &expected, NULL, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
		return NULL;
	while (!(next = fg_load_acquire(&n->next)))
		zoo_pause(); /* it is in the queue, and about to link itself */
	return next;
}

/*
 * Spins until `done`, for so many ns at most: whether it is.  The clock is looked at now and
 * then only.
 */
#define zoo_spin_for(ns, done)                                               \
	({                                                                   \
		uint64_t start_ = fg_now_ns(), limit_ = (ns);                \
		bool done_ = false;                                          \
                                                                             \
		do {                                                         \
			for (int i_ = 0; i_ < 16 && !(done_ = (done)); i_++) \
				zoo_pause();                                 \
		} while (!done_ && fg_now_ns() - start_ < limit_);           \
		done_;                                                       \
	})
#define zoo_spin_until(done) zoo_spin_for(zoo_spin_ns(), done)

/* ---- sleeping -------------------------------------------------------------- */

/*
 * On a word of the lock, which may be process-shared.  Results as fg_futex_wait() and
 * fg_futex_wake().  `shared` was asked before the release: after it the next owner may destroy the
 * lock, and its word is an address only.
 */
int zoo_wait(struct zoo_mutex *m, uint32_t *word, uint32_t value,
	     const struct fg_deadline *deadline);
bool zoo_is_shared(const struct zoo_mutex *m);
int zoo_wake(uint32_t *word, int count, bool shared);

/* On a word of the waiter's own node. */
void zoo_park(uint32_t *word, uint32_t value);
void zoo_unpark(uint32_t *word);

void zoo_sleep_ns(uint64_t ns); /* below a second */

static inline void zoo_yield(void)
{
	fg_syscall6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

#endif
