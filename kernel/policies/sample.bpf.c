// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sample: all hooks of a spinlock, each answering what the kernel does without a policy, and
 * counted.  To copy from:
 *   clang -target bpf -mcpu=v3 -O2 -g -D__TARGET_ARCH_x86 -c mine.bpf.c -o mine.bpf.o
 *   flexguard kernel attach ./mine.bpf.o LOCK
 *
 * Proved by: acquired = released = acquisitions that programs counted.
 */
#include "syncord.bpf.h"

SYNCORD_COUNTERS(u64 to_acquire; u64 acquired; u64 to_release; u64 released; u64 to_enter_slowpath;
		 u64 enable_fastpath; u64 should_reorder; u64 skip_reorder;)

HOOK(lock_to_acquire)
void BPF_PROG(sample_lock_to_acquire, struct syncord_lock *lock, u32 how)
{
	SYNCORD_COUNT(lock, to_acquire);
}

HOOK(lock_acquired)
void BPF_PROG(sample_lock_acquired, struct syncord_lock *lock, u32 how)
{
	SYNCORD_COUNT(lock, acquired);
}

HOOK(lock_to_release)
void BPF_PROG(sample_lock_to_release, struct syncord_lock *lock, u32 how)
{
	SYNCORD_COUNT(lock, to_release);
}

HOOK(lock_released)
void BPF_PROG(sample_lock_released, struct syncord_lock *lock, u32 how)
{
	SYNCORD_COUNT(lock, released);
}

HOOK(lock_to_enter_slowpath)
u64 BPF_PROG(sample_lock_to_enter_slowpath, struct syncord_lock *lock, struct syncord_node *node)
{
	SYNCORD_COUNT(lock, to_enter_slowpath);
	return 0; /* ns to wait; SYNCORD_UNTIL_FREE | ns: less when the lock is free */
}

HOOK(lock_enable_fastpath)
bool BPF_PROG(sample_lock_enable_fastpath, struct syncord_lock *lock, u32 how)
{
	SYNCORD_COUNT(lock, enable_fastpath);
	return true; /* false: into the queue, even if the lock is free */
}

HOOK(should_reorder)
bool BPF_PROG(sample_should_reorder, struct syncord_lock *lock, struct syncord_node *anchor,
	      struct syncord_node *curr)
{
	SYNCORD_COUNT(lock, should_reorder);
	return false; /* true: right behind the head, and those that came so before */
}

HOOK(skip_reorder)
bool BPF_PROG(sample_skip_reorder, struct syncord_lock *lock, struct syncord_node *anchor)
{
	SYNCORD_COUNT(lock, skip_reorder);
	return false; /* true: this head does not ask should_reorder */
}

SYNCORD_POLICY
struct syncord_ops sample = {
    .lock_to_acquire = (void *)sample_lock_to_acquire,
    .lock_acquired = (void *)sample_lock_acquired,
    .lock_to_release = (void *)sample_lock_to_release,
    .lock_released = (void *)sample_lock_released,
    .lock_to_enter_slowpath = (void *)sample_lock_to_enter_slowpath,
    .lock_enable_fastpath = (void *)sample_lock_enable_fastpath,
    .should_reorder = (void *)sample_should_reorder,
    .skip_reorder = (void *)sample_skip_reorder,
    .name = "sample",
};
