/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In a guest: which virtual CPUs are off.  KVM writes into the guest's memory when it takes a
 * virtual CPU off, and when it puts it on again (struct kvm_steal_time; vcpu_is_preempted() of the
 * kernel reads the same, arch/x86/kernel/kvm.c).  No event of the guest goes with it, so the daemon
 * asks now and then.
 */
#ifndef FG_VCPU_H
#define FG_VCPU_H

#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "marks.h"
#include "monitor_types.h"

/*
 * Where each CPU's is, told by the loader: it has no name in kernels without CONFIG_KALLSYMS_ALL.
 * `vcpus` of them; 0: no hypervisor of this kind.
 */
__u64 vcpu_at[FG_MAX_CPUS];
__u32 vcpus;

#define KVM_VCPU_PREEMPTED 1 /* arch/x86/include/uapi/asm/kvm_para.h */

/* One that is idle may be off as well; no thread that anybody waits for runs there. */
static long look_at_vcpu(__u32 cpu, struct fg_vcpus *found)
{
	struct fg_counters *c = get_counters();
	struct kvm_steal_time *vcpu;
	__u32 off;

	if (!c || cpu >= FG_MAX_CPUS)
		return 1;
	vcpu = (void *)vcpu_at[cpu];
	if (!vcpu)
		return 0;
	found->steal_ns += BPF_CORE_READ(vcpu, steal);
	off = found->tell && BPF_CORE_READ(vcpu, preempted) & KVM_VCPU_PREEMPTED;
	if (READ_ONCE(c->cpu[cpu].vcpu_off) != off)
		WRITE_ONCE(c->cpu[cpu].vcpu_off, off);
	return 0;
}

SEC("syscall")
int look_at_vcpus(struct fg_vcpus *args)
{
	struct fg_vcpus found = {.tell = args->tell};

	if (bpf_core_field_exists(((struct kvm_steal_time *)0)->preempted))
		bpf_loop(vcpus, look_at_vcpu, &found, 0);
	args->steal_ns = found.steal_ns;
	return 0;
}

#endif
