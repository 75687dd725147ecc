// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bias: an rwsem that has been read often and not written is biased towards readers, who then write
 * nothing that others share; the next who writes ends it, and waits for a grace period of RCU.  How
 * often it may come back the kernel decides: no sooner than nine times as long after its end as
 * that took (BRAVO's rule).  For locks that are static data of the kernel, and hardly written.
 *
 * Proved by: biased = the reads that the kernel counts as such, in which the words of the rwsem do
 * not change; nobody beside a writer.
 */
#include "syncord.bpf.h"

const volatile u64 reads = 16; /* so many in the ordinary way since the last write */

SYNCORD_COUNTERS(u64 biased; u64 ordinary; u64 writes; u64 wanted;)

HOOK(lock_acquired)
void BPF_PROG(bias_lock_acquired, struct syncord_lock *lock, u32 how)
{
	struct counters *n = counters_of(lock);

	if (!(how & SYNCORD_READ))
		lock->aux[AUX_BIAS] = 0;
	if (!n)
		return;
	if (how & SYNCORD_BIASED)
		n->biased++;
	else if (how & SYNCORD_READ)
		n->ordinary++;
	else
		n->writes++;
}

/* By a reader who is inside; of those who come together one may not be counted. */
HOOK(reader_bias)
bool BPF_PROG(bias_reader_bias, struct syncord_lock *lock)
{
	if (++lock->aux[AUX_BIAS] < reads)
		return false;
	SYNCORD_COUNT(lock, wanted);
	return true;
}

SYNCORD_POLICY
struct syncord_ops bias = {
    .lock_acquired = (void *)bias_lock_acquired,
    .reader_bias = (void *)bias_reader_bias,
    .name = "bias",
};
