/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A "policy" of policy.c: a congestion control, the struct_ops type that stock kernels have, with
 * the counters and options of one for locks.  BAD: one that the verifier refuses.
 */
#include "syncord.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
	u64 __sk_common;
};
#pragma clang attribute pop

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 flags;
	char name[16];
};

const volatile u64 step = 1;
const volatile bool slow[SYNCORD_CPUS];

struct counters {
	u64 inits;
	u64 max_step;
	u64 min_step;
	u64 histogram[SYNCORD_BUCKETS];
	u64 hidden_;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SYNCORD_TARGETS);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

HOOK(init)
void BPF_PROG(tested_init, struct sock *sk)
{
	u32 zero = 0;
	struct counters *n = bpf_map_lookup_elem(&counters, &zero);

	if (!n)
		return;
#ifdef BAD
	n[1].inits++; /* beyond it */
#endif
	n->inits += step;
	at_most(&n->max_step, step);
	at_least(&n->min_step, step);
	n->histogram[bucket_of(step) & (SYNCORD_BUCKETS - 1)]++;
	n->hidden_ += slow[bpf_get_smp_processor_id() & (SYNCORD_CPUS - 1)];
}

HOOK(ssthresh)
u32 BPF_PROG(tested_ssthresh, struct sock *sk)
{
	return 2;
}

HOOK(undo_cwnd)
u32 BPF_PROG(tested_undo_cwnd, struct sock *sk)
{
	return 10;
}

HOOK(cong_avoid)
void BPF_PROG(tested_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
}

SYNCORD_POLICY
struct tcp_congestion_ops tested = {
    .init = (void *)tested_init,
    .ssthresh = (void *)tested_ssthresh,
    .undo_cwnd = (void *)tested_undo_cwnd,
    .cong_avoid = (void *)tested_cong_avoid,
    .name = "fg_tested",
};
