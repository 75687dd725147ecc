/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's reordering of a spinlock's queue, in user space: syncord_reorder.h is the series'
 * own, taken out of kernel/patches when this is built (tools/from_series); the lock around it is
 * here.
 *
 * Two parts.  Each queue of up to 8 waiters, whatever the policy answers and whoever must not be
 * passed, against what the order has to be.  Then threads: mutual exclusion, nobody lost, nobody
 * passed for longer than the bound, which is counted in acquisitions.  Built with TSan as well,
 * where what the head writes is ordered by the hand-over alone.
 *
 *   -t N  threads (8)   -n N  acquisitions in all (60000)   -s N  seed   -w S  hang limit
 *   -r    only threads
 */
#include "../tools/progress.h"

#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* What the header takes from the kernel.  An acquire stands for the order by dependency. */
#define READ_ONCE(x)		      __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define WRITE_ONCE(x, v)	      __atomic_store_n(&(x), v, __ATOMIC_RELAXED)
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define syncord_rule(n)		      true
#define SYNCORD_MAX_SCAN	      6

struct mcs_spinlock {
	struct mcs_spinlock *next;
	int locked;
};

struct syncord_node {
	uint64_t enq_ns; /* here: the acquisitions made before, and 1 */
	uint64_t joined; /* the same, when it stood in the queue */
	unsigned who, bypassed;
	char answer; /* in the first part: Wanted, Passed, Barred, Ordinary */
};

struct qnode {
	struct mcs_spinlock mcs;
	struct syncord_node sn;
};

struct syncord_scan {
	unsigned overdue, asked;
	unsigned ends, looks; /* in the first part: until the owner leaves */
	bool alone;
};

static void cpu_relax(void);
static bool syncord_may_look(struct syncord_scan *s, unsigned looked);
static int syncord_wants(struct syncord_scan *s, struct syncord_node *head,
			 struct syncord_node *curr);
/* Not called where the bound is the fault that has been put in. */
__attribute__((unused)) static bool syncord_barred(struct syncord_scan *s,
						   struct syncord_node *node);

#include REORDER /* syncord_reorder.h, or with a fault */

#define MAX_THREADS 32
#define MIN_SCAN    4 /* looked at although the owner has left */
#define BOUND	    100

/* The lock's word as in the kernel: who is inside, who waits for that alone, the queue's last. */
#define LOCKED	1U
#define PENDING 2U
#define TAIL(i) (((unsigned)(i) + 1) << 2)

static unsigned word;
static struct qnode nodes[MAX_THREADS];
static uint64_t acquired; /* written inside */
static uint64_t goal = 60000;
#define ROUNDS 50
static unsigned moved_in_all, overdue_in_all, queued_in_all, ordinary_in_all;
static int n_threads = 8;
static __thread uint64_t policys_rng;

static void cpu_relax(void)
{
	sched_yield();
}

static bool syncord_may_look(struct syncord_scan *s, unsigned looked)
{
	/* At the last one it waits: there for as long as the owner is inside. */
	if (s->alone)
		return looked < s->ends && s->looks++ < 100;
	return looked < MIN_SCAN || READ_ONCE(word) & (LOCKED | PENDING);
}

static int syncord_wants(struct syncord_scan *s, struct syncord_node *head,
			 struct syncord_node *curr)
{
	CHECK(++s->asked <= SYNCORD_MAX_SCAN);
	CHECK(curr->enq_ns); /* of the others nothing is known */
	if (s->alone)
		return curr->answer == 'W';
	CHECK(head != curr);
	CHECK_EQ(curr->who, container_of(curr, struct qnode, sn) - nodes);
	switch (head->enq_ns / 4096 % 3) {
	case 0: return curr->who & 3 ? 1 : 0; /* one in four is never wanted */
	case 1: return (head->who & 1) == (curr->who & 1);
	default:
		return (int)rnd_below(&policys_rng, 9) < 4 ? 1 :
		       rnd_below(&policys_rng, 40)	   ? 0 :
							     -1;
	}
}

static bool syncord_barred(struct syncord_scan *s, struct syncord_node *node)
{
	return s->alone ? node->answer == 'B' :
			  __atomic_load_n(&acquired, __ATOMIC_RELAXED) + 1 - node->enq_ns >= BOUND;
}

/* The lock without the queue, by the first waiter of all; false: not got. */
static bool take_pending(void)
{
	unsigned old;

	if (READ_ONCE(word) & ~LOCKED)
		return false;
	old = __atomic_fetch_or(&word, PENDING, __ATOMIC_ACQUIRE);
	if (!(old & ~LOCKED)) {
		while (READ_ONCE(word) & LOCKED)
			cpu_relax();
		__atomic_fetch_sub(&word, PENDING - LOCKED, __ATOMIC_RELAXED);
		return true;
	}
	if (!(old & PENDING))
		__atomic_fetch_and(&word, ~PENDING, __ATOMIC_RELAXED);
	return false;
}

/* Kernel: queued_spin_lock_slowpath(), of a waiter with a policy or without. */
static void take(struct qnode *me, bool ordinary)
{
	unsigned i = (unsigned)(me - nodes), old, free = 0;
	struct mcs_spinlock *next = NULL;
	struct syncord_scan scan = {0};
	unsigned moved = 0;

	if (ordinary && take_pending())
		return;
	me->mcs.next = NULL;
	me->mcs.locked = 0;
	me->sn = (struct syncord_node){
	    .enq_ns = ordinary ? 0 : __atomic_load_n(&acquired, __ATOMIC_RELAXED) + 1,
	    .who = i,
	};
	if (__atomic_compare_exchange_n(&word, &free, LOCKED, 0, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	old = __atomic_load_n(&word, __ATOMIC_RELAXED);
	/* Acquire: that node's link is reached by a dependency on its number. */
	while (!__atomic_compare_exchange_n(&word, &old, (old & (LOCKED | PENDING)) | TAIL(i), 0,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	if (old >> 2) {
		uint64_t joined = __atomic_load_n(&acquired, __ATOMIC_RELAXED) + 1;

#ifdef BROKEN_PUBLISH
		__atomic_store_n(&nodes[(old >> 2) - 1].mcs.next, &me->mcs, __ATOMIC_RELAXED);
#else
		__atomic_store_n(&nodes[(old >> 2) - 1].mcs.next, &me->mcs, __ATOMIC_RELEASE);
#endif
		while (!__atomic_load_n(&me->mcs.locked, __ATOMIC_ACQUIRE))
			cpu_relax();
		me->sn.joined = joined;
		next = READ_ONCE(me->mcs.next);
	}
	if (!ordinary)
		moved = syncord_reorder(&scan, &me->mcs);
	while ((old = READ_ONCE(word)) & (LOCKED | PENDING))
		cpu_relax();
	moved_in_all += moved;
	overdue_in_all += scan.overdue;
	/* Nobody behind: the tail is cleared by the same step, unless somebody came. */
	if (old == TAIL(i) &&
	    __atomic_compare_exchange_n(&word, &old, LOCKED, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	__atomic_fetch_or(&word, LOCKED, __ATOMIC_RELAXED);
#ifndef BROKEN_STALE
	if (!ordinary)
		next = READ_ONCE(me->mcs.next);
#endif
	while (!next) {
		next = READ_ONCE(me->mcs.next);
		if (!next)
			cpu_relax();
	}
	__atomic_store_n(&next->locked, 1, __ATOMIC_RELEASE);
}

static void *work(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t rng = policys_rng = rnd_seed((uint64_t)id);
	unsigned free;
	static volatile uint64_t first, second; /* equal outside of sections */

	for (progress_at(id, "takes"); __atomic_load_n(&acquired, __ATOMIC_RELAXED) < goal;
	     progress_made(id)) {
		bool ordinary = !rnd_below(&rng, 64);
		struct syncord_node *sn = &nodes[id].sn;

		sn->joined = 0;
		free = 0;
		if (!__atomic_compare_exchange_n(&word, &free, LOCKED, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			take(&nodes[id], ordinary);
		CHECK_EQ(first, second);
		first++;
		if (!rnd_below(&rng, 4))
			sched_yield();
		__atomic_store_n(&acquired, acquired + 1, __ATOMIC_RELAXED);
		ordinary_in_all += ordinary;
		if (sn->joined) {
			queued_in_all++;
			/*
			 * Overdue after BOUND; then come those who stood before him already, and
			 * those whom the scan that had looked at him still moved.
			 */
			CHECK(acquired - sn->joined <= BOUND + 2 * (uint64_t)n_threads);
		}
		second++;
		__atomic_fetch_and(&word, ~LOCKED, __ATOMIC_RELEASE);
	}
	progress_at(id, NULL);
	return NULL;
}

/* n waiters behind the head, and the order that they have to end in. */
static void one_queue(const char *answers, unsigned n, unsigned ends)
{
	struct syncord_scan scan = {.alone = true, .ends = ends};
	unsigned order[16], at = 0, stopped = 0, moved = 0, barred = 0;
	struct mcs_spinlock *m;

	/* Those looked at: not the last, no more than the budget, none behind one that bars. */
	while (stopped + 1 < n && stopped < SYNCORD_MAX_SCAN && stopped < ends) {
		if (answers[stopped] == 'B' || answers[stopped] == 'O') {
			barred = 1;
			break;
		}
		stopped++;
	}
	for (unsigned i = 0; i < stopped; i++)
		if (answers[i] == 'W') {
			moved += i > at;
			order[at++] = i;
		}
	for (unsigned i = 0; i < stopped; i++)
		if (answers[i] == 'P')
			order[at++] = i;
	for (unsigned i = stopped; i < n; i++)
		order[at++] = i;

	for (unsigned i = 0; i <= n; i++) {
		nodes[i].mcs.next = i < n ? &nodes[i + 1].mcs : NULL;
		nodes[i].sn = (struct syncord_node){
		    .enq_ns = i && answers[i - 1] == 'O' ? 0 : 1,
		    .answer = i ? answers[i - 1] : 0,
		    .who = i,
		};
	}
	CHECK_EQ(syncord_reorder(&scan, &nodes[0].mcs), moved);
	CHECK_EQ(scan.overdue, barred);
	m = nodes[0].mcs.next;
	for (unsigned i = 0; i < n; i++, m = m->next) {
		CHECK(m);
		CHECK_EQ(m - &nodes[0].mcs, (&nodes[order[i] + 1].mcs - &nodes[0].mcs));
		CHECK_EQ(container_of(m, struct qnode, mcs)->sn.bypassed,
			 order[i] < stopped && answers[order[i]] == 'P');
	}
	CHECK(!m);
}

static void every_queue(void)
{
	unsigned long queues = 0;

	for (unsigned n = 0; n <= 8; n++)
		for (unsigned ends = 0; ends <= SYNCORD_MAX_SCAN + 2; ends++)
			for (unsigned code = 0; code < 1U << 2 * n; code++, queues++) {
				char answers[8];

				for (unsigned i = 0; i < n; i++)
					answers[i] = "WPBO"[code >> 2 * i & 3];
				one_queue(answers, n, ends);
			}
	printf("%lu queues in the order that they must be in\n", queues);
}

int main(int argc, char **argv)
{
	pthread_t t[MAX_THREADS], dog;
	int opt, only_threads = 0;
	uint64_t each;
	bool all;

	check_begin(argv[0], 0);
	while ((opt = getopt(argc, argv, "t:n:s:w:r")) != -1) {
		switch (opt) {
		case 't': n_threads = atoi(optarg); break;
		case 'n': goal = strtoull(optarg, NULL, 0); break;
		case 's': check_seed = strtoull(optarg, NULL, 0); break;
		case 'w': progress_limit = (unsigned)atoi(optarg); break;
		case 'r': only_threads = 1; break;
		default: return CHECK_SETUP;
		}
	}
	if (n_threads < 1 || n_threads > MAX_THREADS)
		return CHECK_SETUP;
	if (!only_threads)
		every_queue();
	/* Again where threads had the lock one after the other, each in its time slice. */
	each = goal;
	do {
		dog = progress_begin(1);
		start_numbered(t, n_threads, 0, work);
		join_all(t, n_threads);
		progress_end(dog);
		CHECK_EQ(word, 0);
		all = n_threads < 4 || (moved_in_all && overdue_in_all);
		goal += each;
	} while (!all && goal <= ROUNDS * each);
	printf(
	    "%llu acquisitions, %u by the queue, %u ordinary; %u moved, %u scans ended by one overdue\n",
	    (unsigned long long)acquired, queued_in_all, ordinary_in_all, moved_in_all,
	    overdue_in_all);
	if (!all)
		check_skip("the threads did not meet");
	return 0;
}
