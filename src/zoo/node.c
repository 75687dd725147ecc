/* SPDX-License-Identifier: MIT */
/*
 * Queue nodes.  A thread has a few free ones, in the pool of its index (runtime/thread.h): when it
 * ends, the next thread with that index has them.  What is more than twice a batch goes to all,
 * because nodes migrate: with CLH, the first of a queue leaves its node to the next one, and the
 * last gets one more than it had.  What all have is a stack of batches.  The first batch of a pool
 * lies beside it: when hundreds of threads began with the stack, whose compare-and-swap fails for
 * all but one at a time, that alone took 256 of them more than 20 ms (simulated: amd512).
 *
 * No memory of nodes goes back to the system: a late look at one is harmless.
 *
 * A signal handler may lock between any two instructions of this.  While a pool is being changed
 * the handler of that thread goes to the stack, which has no lock.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime/thread.h"
#include "zoo/zoo.h"

/* Not varied. */
#define NODE_BATCH 8u  /* nodes */
#define FRESH	   64u /* nodes that the system is asked for at once */

struct pool {
	struct zoo_node *free; /* by `other`; valid between any two instructions */
	/* of them, or a few off after a thread that ended in the middle of a change */
	uint32_t nr;
	uint32_t id; /* of the thread whose pool it is, with its generation */
	uint32_t changing;
	uint32_t has_begun; /* its first batch is in use */
	struct zoo_node first[NODE_BATCH];
} __attribute__((aligned(FG_CACHE_LINE)));

/* As the chunks of runtime/slots.c, of which an index is one of a piece. */
static struct pool *pools[FG_CHUNKS];

/* ---- what all have ------------------------------------------------------------------ */

/*
 * Address of the first node of a batch >> 6, and above it a count of changes: a batch that was
 * taken and given back while somebody looked is another one then.  No address without a hint is
 * above 2^48.
 */
#define ADDRESS_BITS 42
static uint64_t stack;

static struct zoo_node *first_of(uint64_t top)
{
	return (struct zoo_node *)(uintptr_t)((top & ((1ull << ADDRESS_BITS) - 1)) << 6);
}

static uint64_t next_top(uint64_t top, const struct zoo_node *first)
{
	uint64_t address = (uint64_t)(uintptr_t)first >> 6;

	if (address >> ADDRESS_BITS)
		abort();
	return ((top >> ADDRESS_BITS) + 1) << ADDRESS_BITS | address;
}

static void give_batch(struct zoo_node *first)
{
	uint64_t top = fg_load_relaxed(&stack);

	do {
		fg_store_relaxed(&first->batch, first_of(top));
	} while (!__atomic_compare_exchange_n(&stack, &top, next_top(top, first), false,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static long map(size_t bytes)
{
	/* Raw: a lock may be taken inside malloc.  Without memory a program cannot go on either. */
	long p = fg_syscall6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p < 0 && p > -4096)
		abort();
	return p;
}

static void link_batches(struct zoo_node *n, uint32_t nodes)
{
	for (uint32_t i = 0; i < nodes; i++)
		n[i].other = (i + 1) % NODE_BATCH ? &n[i + 1] : NULL;
}

static struct zoo_node *fresh_batch(void)
{
	struct zoo_node *n = (struct zoo_node *)map(FRESH * sizeof(*n));

	link_batches(n, FRESH);
	for (uint32_t i = NODE_BATCH; i < FRESH; i += NODE_BATCH)
		give_batch(&n[i]);
	return n;
}

static struct zoo_node *take_batch(void)
{
	/* pairs with give_batch(): its nodes' links */
	uint64_t top = __atomic_load_n(&stack, __ATOMIC_ACQUIRE);
	struct zoo_node *first;

	while ((first = first_of(top)))
		if (__atomic_compare_exchange_n(&stack, &top,
						next_top(top, fg_load_relaxed(&first->batch)),
						false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return first;
	return fresh_batch();
}

/* ---- a thread's own ------------------------------------------------------------------- */

static struct pool *piece_of(uint32_t index)
{
	struct pool **at = &pools[index / FG_PIECE], *none = NULL, *piece = fg_load_acquire(at);

	if (fg_likely(piece != NULL))
		return piece;
	piece = (struct pool *)map(FG_PIECE * sizeof(*piece));
	if (__atomic_compare_exchange_n(at, &none, piece, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return piece;
	fg_syscall6(SYS_munmap, (long)piece, FG_PIECE * sizeof(*piece), 0, 0, 0, 0);
	return none;
}

/*
 * NULL: a thread without an index (too many, or at its end), or the handler of one that is at it.
 */
static struct pool *enter(void)
{
	struct fg_self *t = fg_self();
	struct pool *p;

	if (fg_unlikely(!fg_has_slot(t)))
		return NULL;
	p = &piece_of(fg_id_index(t->id))[fg_id_index(t->id) % FG_PIECE];
	/* Mine by now: the thread that had it may have ended in the middle of a change. */
	if (fg_unlikely(p->id != t->id)) {
		fg_store_relaxed(&p->changing, 0);
		fg_fence_local();
		fg_store_relaxed(&p->id, t->id);
	}
	if (fg_load_relaxed(&p->changing))
		return NULL;
	fg_store_relaxed(&p->changing, 1);
	fg_fence_local();
	return p;
}

static void leave(struct pool *p)
{
	fg_fence_local();
	fg_store_relaxed(&p->changing, 0);
}

static struct zoo_node *batch_for(struct pool *p)
{
	if (p->has_begun)
		return take_batch();
	link_batches(p->first, NODE_BATCH);
	p->has_begun = 1;
	fg_fence_local(); /* nobody begins again with nodes that are free, or taken */
	return p->first;
}

struct zoo_node *zoo_node_get(void)
{
	struct pool *p = enter();
	struct zoo_node *n;

	if (fg_unlikely(!p)) {
		n = take_batch();
		if (n->other)
			give_batch(n->other);
		return n;
	}
	n = fg_load_relaxed(&p->free);
	if (fg_unlikely(!n)) {
		n = batch_for(p);
		p->nr = 0;
		for (const struct zoo_node *i = n; i; i = i->other)
			p->nr++;
	}
	fg_store_relaxed(&p->free, n->other);
	p->nr--;
	leave(p);
	return n;
}

/* A batch of the thread's, for all. */
static void give_some(struct pool *p)
{
	struct zoo_node *first = p->free, *last = first;

	for (uint32_t i = 1; i < NODE_BATCH && last->other; i++)
		last = last->other;
	fg_store_relaxed(&p->free, last->other);
	last->other = NULL;
	p->nr -= NODE_BATCH;
	give_batch(first);
}

/* `other` and `batch` of a free node only: late looks at the rest may still come. */
void zoo_node_put(struct zoo_node *n)
{
	struct pool *p = enter();

	if (fg_unlikely(!p)) {
		n->other = NULL;
		give_batch(n);
		return;
	}
	n->other = p->free;
	fg_store_relaxed(&p->free, n);
	if (fg_unlikely(++p->nr > 2 * NODE_BATCH))
		give_some(p);
	leave(p);
}
