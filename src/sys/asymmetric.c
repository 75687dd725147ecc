/* SPDX-License-Identifier: MIT */
#include "sys/asymmetric.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>

#include "arch/arch.h"
#include "sys/clock.h"
#include "sys/filter.h"
#include "sys/futex.h"

uint32_t fg_asymmetric;

/*
 * A CPU that runs a thread has its clock tick at least each 10 ms (HZ is 100 or more), and an
 * interrupt is a barrier.  Not varied.
 */
#define TICKS_NS 20000000u

static long membarrier(long command)
{
	return fg_syscall6(SYS_membarrier, command, 0, 0, 0, 0, 0);
}

static bool everywhere(void)
{
	long r = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);

	/* Not registered.  A child of fork is if its parent was. */
	if (r == -EPERM && !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		r = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	return !r;
}

bool fg_barrier_everywhere(uint32_t whose)
{
	bool done;

	if (!fg_call_begins(whose))
		return false;
	done = everywhere();
	fg_call_ends(whose);
	return done;
}

/*
 * The program has a filter that nobody has seen come (filter.h), which answers the call with an
 * error: until each CPU has passed a barrier by itself.
 */
static __attribute__((noinline, cold)) void wait_for_ticks(void)
{
	uint32_t nobody = 0;
	struct fg_deadline ticks;

	fg_deadline_in(&ticks, TICKS_NS);
	/* By the clock: it may answer futex(2) with an error as well. */
	while (!fg_deadline_passed(&ticks))
		fg_futex_wait(&nobody, 0, FG_FUTEX_ANY, &ticks);
}

void fg_asymmetric_ends(void)
{
	uint32_t have = FG_ASYMMETRIC;

	fg_cas_acq_rel(&fg_asymmetric, &have, FG_ASYMMETRIC_ENDS);
	if (have == FG_SYMMETRIC)
		return;
	/*
	 * What went on without a barrier of its own passes one now; what comes later has seen that
	 * this ends.  Another thread may be at it, too, for a filter of its own: neither waits for
	 * the other.
	 */
	if (!fg_barrier_everywhere(0))
		wait_for_ticks();
	fg_store_release(&fg_asymmetric, FG_SYMMETRIC);
}

void fg_asymmetric_setup(void)
{
	fg_filter_before(fg_asymmetric_ends);
	/*
	 * Now, with one thread most likely: with several the kernel takes some 15 ms.  It need not
	 * be asked for the barrier itself: a kernel that has the one has the other.
	 */
	if (!fg_call_begins(0))
		return;
	if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		fg_store_release(&fg_asymmetric, FG_ASYMMETRIC);
	fg_call_ends(0);
}

void fg_asymmetric_after_fork(void)
{
	if (fg_load_relaxed(&fg_asymmetric) == FG_ASYMMETRIC_ENDS)
		fg_store_relaxed(&fg_asymmetric, FG_SYMMETRIC);
}

void fg_fence_heavy(uint32_t whose)
{
	fg_fence_seq_cst();
	if (fg_load_acquire(&fg_asymmetric) == FG_SYMMETRIC || fg_barrier_everywhere(whose))
		return;
	/* A filter that has been seen has ended this before. */
	fg_asymmetric_ends();
}
