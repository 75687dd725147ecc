/* SPDX-License-Identifier: MIT */
/*
 * hybrid:FAST+BLOCKING: any two locks of the zoo as the sides of the BPF Hybrid Lock (hybrid.c).
 * Each is a mutex of its own, in a block of memory, since both together do not fit into one; a
 * mutex that is never destroyed keeps its two lines.
 *
 * Such a lock knows nothing of switches, and its waiters cannot leave.  What they all do while they
 * wait is to call zoo_pause(): there they look whether to switch, and once the lock has been
 * switched away they sleep between two looks, so that the owner gets a CPU (section IV.A:
 * locks need not be abortable, a switch is only slower without).
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "zoo/hybrid.h"

/* Of a waiter of the side that was switched away from, between two looks.  Not varied. */
#define SWITCH_SLEEP_NS 50000u

/* A line each. */
struct block {
	struct zoo_mutex fast __attribute__((aligned(64)));
	struct zoo_mutex slow __attribute__((aligned(64)));
};

/* Blocks that the system is asked for at once, and that are kept for others.  Not varied. */
#define CHUNK  32u
#define SPARES 64u

/* given back, or never used; each NULL or somebody's to take, by an exchange */
static struct block *spares[SPARES];

static const struct zoo_lock *fast_lock, *slow_lock;

__thread struct zoo_mutex *zoo_pair_waits __attribute__((tls_model("initial-exec")));

void zoo_pair_choose(const struct zoo_lock *fast, const struct zoo_lock *slow)
{
	fast_lock = fast;
	slow_lock = slow;
}

const char *zoo_pair_start(void)
{
	const char *why = fast_lock->start ? fast_lock->start() : NULL;

	return why || !slow_lock->start ? why : slow_lock->start();
}

/*
 * Not the thread's nodes: a signal handler that keeps one would do so in the middle of somebody's
 * taking the same.
 */
static void put_block(struct block *b)
{
	for (uint32_t i = 0; i < SPARES; i++) {
		struct block *none = NULL;

		/* Release: the thread that takes it sees what is in it. */
		if (!fg_load_relaxed(&spares[i]) &&
		    __atomic_compare_exchange_n(&spares[i], &none, b, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
	}
	/* More spares than anybody needs: it is lost. */
}

static struct block *get_block(void)
{
	struct block *b;
	long p;

	for (uint32_t i = 0; i < SPARES; i++)
		if (fg_load_relaxed(&spares[i]) &&
		    (b = __atomic_exchange_n(&spares[i], NULL, __ATOMIC_ACQUIRE)))
			return b;
	/* Raw, as zoo_node_get(). */
	p = fg_syscall6(SYS_mmap, 0, CHUNK * sizeof(*b), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p < 0 && p > -4096)
		abort();
	b = (struct block *)p;
	for (uint32_t i = 1; i < CHUNK; i++)
		put_block(&b[i]);
	return b;
}

static struct block *block_of(struct zoo_mutex *m)
{
	struct block *b = __atomic_load_n(&m->s.p[1], __ATOMIC_ACQUIRE);
	void *none = NULL;

	if (fg_likely(b != NULL))
		return b;
	b = get_block();
	*b = (struct block){0};
	/* Release: a thread that finds the block finds it empty. */
	if (__atomic_compare_exchange_n(&m->s.p[1], &none, b, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return b;
	put_block(b);
	return none;
}

void zoo_pair_end(struct zoo_mutex *m)
{
	struct block *b = m->s.p[1];

	if (!b)
		return;
	if (fast_lock->end)
		fast_lock->end(&b->fast);
	if (slow_lock->end)
		slow_lock->end(&b->slow);
	m->s.p[1] = NULL;
	put_block(b);
}

void zoo_pair_look(void)
{
	static __thread uint32_t looks;
	struct zoo_mutex *m = zoo_pair_waits;

	if (++looks % ZOO_LOOK_EVERY == 0)
		zoo_hybrid_switch_if_wanted(m);
	if (switched_away(m))
		zoo_sleep_ns(SWITCH_SLEEP_NS);
}

/* `stay` makes no difference: nobody leaves. */
static bool fast_lock_it(struct zoo_mutex *m, bool stay)
{
	struct zoo_mutex *before = zoo_pair_waits; /* I may be a signal handler */

	(void)stay;
	zoo_pair_waits = m;
	fast_lock->lock(&block_of(m)->fast, NULL);
	zoo_pair_waits = before;
	return true;
}

static bool fast_trylock(struct zoo_mutex *m)
{
	return fast_lock->trylock(&block_of(m)->fast);
}

static void fast_unlock(struct zoo_mutex *m)
{
	fast_lock->unlock(&block_of(m)->fast);
}

const struct side zoo_fast_side = {fast_lock_it, fast_trylock, fast_unlock};

static bool slow_trylock(struct zoo_mutex *m)
{
	return slow_lock->trylock(&block_of(m)->slow);
}

static bool slow_lock_it(struct zoo_mutex *m, bool stay)
{
	struct zoo_mutex *inner = &block_of(m)->slow;

	if (!slow_lock->untried &&
	    (slow_lock->first ? slow_lock->first : slow_lock->trylock)(inner))
		return true;
	if (!stay)
		zoo_hybrid_switch_if_wanted(m);
	return slow_lock->lock(inner, NULL);
}

static void slow_unlock(struct zoo_mutex *m)
{
	slow_lock->unlock(&block_of(m)->slow);
}

const struct side zoo_slow_side = {slow_lock_it, slow_trylock, slow_unlock};
