/* SPDX-License-Identifier: MIT */
/*
 * Other processes on the same CPUs, which nobody has registered: threads that only compute, and
 * threads of one that has a lock of its own, on which they sleep and wake each other.
 */
#include "objects/objects.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "arch/arch.h"

static uint32_t word __attribute__((aligned(64)));
static uint64_t sections, inside; /* unseen */

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

static UNSEEN void enter(void)
{
	if (inside++)
		violation("two threads have the other process' lock");
	sections++;
}

static UNSEEN void leave(void)
{
	inside--;
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
		enter();
		sim_work(US);
		leave();
		release();
		sim_work(US);
	}
}

UNSEEN void neighbours_begin(int from)
{
	for (int i = from; i < from + load.busy + load.others; i++) {
		bool alone = i < from + load.busy;

		threads[i].neighbour = true;
		mon_neighbour(i, alone ? i : from + load.busy);
		sim_spawn(i, alone ? compute : compute_and_lock, (uint64_t)(i - from) * 100 * NS);
	}
}

UNSEEN uint64_t neighbours_sections(void)
{
	return sections;
}
