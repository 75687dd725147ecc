/* SPDX-License-Identifier: MIT */
/*
 * The spinlock of ttas.c whose owner asks for a time-slice extension (extension.h); the FlexGuard
 * paper compares with it, and combines it with its own lock (paper.c).
 */
#include "zoo/extension.h"

#include "runtime/thread.h"
#include "zoo/zoo.h"

static __thread unsigned depth;
static __thread volatile struct fg_slice_ctrl *control;

static __attribute__((noinline, cold)) void enable(void)
{
	zoo_extension_enable(); /* the process could, so this thread can */
	control = fg_slice_ctrl(fg_self()->cpu);
}

void zoo_extend_begin(void)
{
	if (fg_unlikely(!control))
		enable();
	if (!depth++)
		control->request = 1;
	fg_fence_local();
}

void zoo_extend_end(void)
{
	bool unused;

	fg_fence_local();
	if (!depth || --depth) /* another thread began it */
		return;
	unused = control->request;
	control->request = 0;
	fg_fence_local();
	if (!unused || control->granted) /* the CPU is due, or has been taken */
		fg_syscall6(FG_SYS_SLICE_YIELD, 0, 0, 0, 0, 0, 0);
}

unsigned zoo_extended(void)
{
	return depth;
}

static bool trylock(struct zoo_mutex *m)
{
	zoo_extend_begin();
	if (zoo_ttas.trylock(m))
		return true;
	zoo_extend_end();
	return false;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	uint32_t n = 0;

	while (fg_load_relaxed(&m->s.u32[0]) || !trylock(m)) { /* a waiter asks for nothing */
		if (deadline && ++n % ZOO_LOOK_EVERY == 0 && fg_deadline_passed(deadline))
			return false;
		zoo_pause();
	}
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	zoo_ttas.unlock(m);
	zoo_extend_end();
}

const struct zoo_lock zoo_ttasext = {
    .lock = lock, .trylock = trylock, .unlock = unlock, .start = zoo_extension_enable};
