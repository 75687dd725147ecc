/* SPDX-License-Identifier: MIT */
#include "runtime/slice.h"

#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/count.h"
#include "sys/filter.h"
#include "sys/slice.h"

/*
 * For this thread.  What the first one is refused, the others are: no kernel support, or too short
 * an area.  A later one alone, since others may have asked for something by then.
 */
static bool enable(const struct fg_self *t, struct fg_thread *me)
{
	uint32_t untried = FG_SLICES_UNTRIED;
	long r = -1;

	if (fg_call_begins(t->id)) {
		r = fg_syscall6(SYS_prctl, FG_PR_RSEQ_SLICE, FG_RSEQ_SLICE_SET, FG_RSEQ_SLICE_EXT,
				0, 0, 0);
		fg_call_ends(t->id);
	}
	me->slice = r ? FG_SLICE_REFUSED : FG_SLICE_QUIET;
	fg_cas_relaxed(&fg_slices, &untried, r ? FG_SLICES_NONE : FG_SLICES_OFFERED);
	return !r;
}

__attribute__((noinline, cold)) void fg_slice_begin(struct fg_self *t)
{
	volatile struct fg_slice_ctrl *ctrl;
	struct fg_thread *me;

	if (!fg_has_slot(t))
		return;
	me = fg_thread_mine(t);
	/* Once for all its locks, also if that has been granted and is over: sys/slice.h. */
	if (me->slice != FG_SLICE_QUIET && (me->slice != FG_SLICE_UNTRIED || !enable(t, me)))
		return;
	ctrl = fg_slice_ctrl(t->cpu);
	if (ctrl->all) /* the program's own, which it will end itself */
		return;
	me->slice = FG_SLICE_ASKED;
	t->unordered = 1;
	fg_fence_local();
	ctrl->request = 1;
}

__attribute__((noinline, cold)) void _fg_slice_end(struct fg_self *t)
{
	volatile struct fg_slice_ctrl *ctrl = fg_slice_ctrl(t->cpu);
	bool unused = ctrl->request, in_time = false;

	ctrl->request = 0;
	fg_fence_local();
	fg_thread_mine(t)->slice = FG_SLICE_QUIET;
	t->unordered = 0;
	if (unused && !ctrl->granted)
		return;
	/* Where a filter has come since, the kernel's timer takes the CPU. */
	if (fg_call_begins(t->id)) {
		in_time = fg_syscall6(FG_SYS_SLICE_YIELD, 0, 0, 0, 0, 0, 0) == 1;
		fg_call_ends(t->id);
	}
	fg_count(t, FG_STAT_EXTENSIONS, 1);
	if (in_time)
		fg_count(t, FG_STAT_EXTENSIONS_IN_TIME, 1);
}
