/* SPDX-License-Identifier: MIT */
/* What the zoo's locks know of their thread and of the environment. */
#include "runtime/policy.h"
#include "runtime/thread.h"
#include "zoo/zoo.h"

uint32_t zoo_tid(void)
{
	static __thread uint32_t tid;
	static __thread uint32_t epoch;

	/* a child of fork has another */
	if (fg_unlikely(!tid || epoch != fg_load_relaxed(&fg_epoch))) {
		tid = (uint32_t)fg_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
		epoch = fg_load_relaxed(&fg_epoch);
	}
	return tid;
}

uint64_t zoo_spin_ns(void)
{
	return fg_spin_ns;
}
