/* SPDX-License-Identifier: MIT */
/*
 * Other processes on the same CPUs.  Nobody has registered threads that only compute, nor those of
 * one that has a lock of its own, on which they sleep and wake each other.  Those of another have
 * a lock as the product's, and a monitor: its slots are part of the program's array here, and its
 * domain is the program's, as with two processes of one user.
 */
#include "objects/objects.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "lock/lock.h"

static uint32_t word __attribute__((aligned(64)));
static struct fg_lock ours __attribute__((aligned(64)));
static uint64_t sections, inside, ours_inside; /* unseen */

/* 0 free, 1 held, 2 held and perhaps waited for: Drepper, "Futexes Are Tricky". */
static void take(void)
{
	uint32_t free = 0;

	if (__atomic_compare_exchange_n(&word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE))
		sim_syscall(SYS_futex, (long)&word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2, 0, 0,
			    (long)FUTEX_BITSET_MATCH_ANY);
}

static void release(void)
{
	if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
		sim_syscall(SYS_futex, (long)&word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
}

static UNSEEN void enter(uint64_t *in)
{
	if ((*in)++)
		violation("two threads have the other process' lock");
	sections++;
}

static UNSEEN void leave(uint64_t *in)
{
	(*in)--;
}

static void compute(struct thread *t)
{
	(void)t;
	for (;;)
		sim_work(10 * US);
}

static void compute_and_lock(struct thread *t)
{
	(void)t;
	for (;;) {
		take();
		enter(&inside);
		sim_work(US);
		leave(&inside);
		release();
		sim_work(US);
	}
}

static void compute_and_lock_ours(struct thread *t)
{
	(void)t;
	for (;;) {
		_fg_lock(&ours);
		enter(&ours_inside);
		sim_work(US);
		leave(&ours_inside);
		_fg_unlock(&ours);
		sim_work(US);
	}
}

UNSEEN void neighbours_begin(int from)
{
	int others = from + load.busy, registered = others + load.others;

	for (int i = from; i < registered + load.registered; i++) {
		threads[i].neighbour = true;
		mon_neighbour(i,
			      i < others     ? i :
			      i < registered ? others :
					       registered,
			      i >= registered);
		sim_spawn(i,
			  i < others	 ? compute :
			  i < registered ? compute_and_lock :
					   compute_and_lock_ours,
			  (uint64_t)(i - from) * 100 * NS);
	}
}

UNSEEN uint64_t neighbours_sections(void)
{
	return sections;
}
