// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lockstat: the counters of Documentation/locking/lockstat.rst for the targets alone, on a kernel
 * without CONFIG_LOCK_STAT.  `-o only=1`: acquisitions, and no other.  Of locks that sleep it has
 * no waits, for the task may come back on another CPU, and of readers, who share them, no holds.
 *
 * Proved by: acquisitions = those that programs counted.
 */
#include "syncord.bpf.h"

const volatile bool only;

enum { LAST_CPU, SINCE };
/* Not in lock->aux: that goes on over a replacement, and with it a hold that ended meanwhile. */
u64 owners[SYNCORD_TARGETS][8]; /* a line each, which the lock itself guards */

SYNCORD_COUNTERS(u64 acquisitions; u64 acq_bounces; u64 contentions; u64 con_bounces;
		 u64 min_wait_ns; u64 max_wait_ns; u64 wait_ns; u64 min_hold_ns; u64 max_hold_ns;
		 u64 hold_ns; u64 asked_;)

/* A CPU asks for one lock at a time, and an interrupt that takes the same one would deadlock. */
HOOK(lock_to_acquire)
void BPF_PROG(lockstat_lock_to_acquire, struct syncord_lock *lock, u32 how)
{
	struct counters *n = counters_of(lock);

	if (n && !only && lock->type == SYNCORD_SPIN)
		n->asked_ = bpf_ktime_get_ns();
}

HOOK(lock_acquired)
void BPF_PROG(lockstat_lock_acquired, struct syncord_lock *lock, u32 how)
{
	struct counters *n = counters_of(lock);
	u64 *owner = owners[lock->id & (SYNCORD_TARGETS - 1)], now, cpu;

	if (n)
		n->acquisitions++;
	if (!n || only)
		return;
	now = bpf_ktime_get_ns();
	cpu = 1 + (u64)bpf_get_smp_processor_id();
	n->acq_bounces += owner[LAST_CPU] != cpu;
	n->contentions += !!(how & SYNCORD_SLOW);
	n->con_bounces += (how & SYNCORD_SLOW) && owner[LAST_CPU] != cpu;
	if ((how & SYNCORD_SLOW) && n->asked_) {
		n->wait_ns += now - n->asked_;
		at_least(&n->min_wait_ns, now - n->asked_);
		at_most(&n->max_wait_ns, now - n->asked_);
	}
	n->asked_ = 0; /* a trylock does not say that it asks */
	if (how & SYNCORD_READ)
		return;
	owner[LAST_CPU] = cpu;
	owner[SINCE] = now;
}

HOOK(lock_to_release)
void BPF_PROG(lockstat_lock_to_release, struct syncord_lock *lock, u32 how)
{
	struct counters *n = counters_of(lock);
	u64 *owner = owners[lock->id & (SYNCORD_TARGETS - 1)], hold;

	if (!n || only || (how & SYNCORD_READ) || !owner[SINCE])
		return; /* or taken before the policy was attached */
	hold = bpf_ktime_get_ns() - owner[SINCE];
	n->hold_ns += hold;
	at_least(&n->min_hold_ns, hold);
	at_most(&n->max_hold_ns, hold);
	owner[SINCE] = 0;
}

SYNCORD_POLICY
struct syncord_ops lockstat = {
    .lock_to_acquire = (void *)lockstat_lock_to_acquire,
    .lock_acquired = (void *)lockstat_lock_acquired,
    .lock_to_release = (void *)lockstat_lock_to_release,
    .name = "lockstat",
};
