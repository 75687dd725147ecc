// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * hybrid: who wants a mutex, or to write an rwsem, while its owner is off its CPU and others wait
 * already, sleeps before he spins or queues, as long as the lock is held, at most nap_us.  The
 * kernel looks 16 times meanwhile, for nobody wakes who is not in the queue.
 *
 * Proved by: naps of contended acquisitions, and the spins that got nothing (lock:contention_begin
 * without LCB_F_SPIN), both against those of `-o nap_us=0`, which only counts.
 */
#include "syncord.bpf.h"

const volatile u64 nap_us = 2000;

SYNCORD_COUNTERS(u64 acquisitions; u64 contended; u64 owner_off; u64 naps;)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SYNCORD_TARGETS);
	__type(key, u32);
	__type(value, u64);
} waiters SEC(".maps"); /* and those who have given up, by a signal */

void *bpf_rdonly_cast(const void *at, u32 type) __ksym;

static __always_inline u64 *waiters_of(const struct syncord_lock *lock)
{
	u32 key = lock->id;

	return bpf_map_lookup_elem(&waiters, &key);
}

/* A task that has ended meanwhile is read as zeros, or as what lies there now. */
static __always_inline bool is_off(u64 owner)
{
	u32 type = bpf_core_type_id_kernel(struct task_struct);

	return owner && !((struct task_struct *)bpf_rdonly_cast((void *)owner, type))->on_cpu;
}

HOOK(lock_to_enter_slowpath)
u64 BPF_PROG(hybrid_lock_to_enter_slowpath, struct syncord_lock *lock, struct syncord_node *node)
{
	struct counters *n = counters_of(lock);
	u64 *others = waiters_of(lock);
	bool off = is_off(lock->aux[AUX_HYBRID]);

	if (!n || !others || (node->how & SYNCORD_READ))
		return 0;
	n->contended++;
	n->owner_off += off;
	if (!__sync_fetch_and_add(others, 1) || !off || !nap_us)
		return 0;
	n->naps++;
	return nap_us * 1000 | SYNCORD_UNTIL_FREE;
}

HOOK(lock_acquired)
void BPF_PROG(hybrid_lock_acquired, struct syncord_lock *lock, u32 how)
{
	u64 *others = waiters_of(lock);

	SYNCORD_COUNT(lock, acquisitions);
	if (!others || (how & SYNCORD_READ))
		return;
	lock->aux[AUX_HYBRID] = (u64)bpf_get_current_task_btf();
	if ((how & SYNCORD_SLOW) && *others)
		__sync_fetch_and_sub(others, 1);
}

SYNCORD_POLICY
struct syncord_ops hybrid = {
    .lock_to_enter_slowpath = (void *)hybrid_lock_to_enter_slowpath,
    .lock_acquired = (void *)hybrid_lock_acquired,
    .name = "hybrid",
};
