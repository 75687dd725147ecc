// SPDX-License-Identifier: MIT
/*
 * CPUs in groups: each CPU is in its own, and a mask of CPUs that are in none does not stand for
 * any CPU.  A mark names the CPU; one whose number has no place there is none that has a counter.
 * The verifier accepts the program for machines of every size: each way to group CPUs.
 */
#include <bpf/libbpf.h>
#include "groups.h"
#include "harness.h"
#include "mark_bits.h"
#include "monitor/internal.h"
#include "monitor.skel.h"

static uint32_t groups_of_cpus(uint32_t from, uint32_t to, uint32_t shift)
{
	__u64 bits[FG_MAX_CPUS / 64] = {0};

	for (; from < to; from++)
		bits[from / 64] |= 1ull << from % 64;
	return groups_in(bits, shift);
}

static void arithmetic(void)
{
	for (uint32_t shift = 0; FG_CPU_GROUPS << shift <= FG_MAX_CPUS; shift++) {
		uint32_t cpu, cpus = FG_CPU_GROUPS << shift;

		for (cpu = 0; cpu < cpus; cpu++)
			CHECK(groups_of_cpus(cpu, cpu + 1, shift) == 1u << (cpu >> shift));
		CHECK(groups_of_cpus(0, cpus, shift) == UINT32_MAX);
		CHECK(groups_of_cpus(0, cpus / 2, shift) == 0xffff);
		/* None of the mask has a place. */
		CHECK(groups_of_cpus(cpus, FG_MAX_CPUS, shift) == 1u << 31);
		CHECK(groups_of_cpus(0, 0, shift) == 1u << 31);
	}
}

static void in_marks(void)
{
	static const uint32_t above[] = {4094, 4095, 4096, 4097, 8191, 8192, 65536, UINT32_MAX};
	__u64 mark;

	for (uint32_t cpu = 0; cpu < FG_MAX_CPUS; cpu++)
		CHECK(mark_cpu(make_mark(MARK_PREEMPTED, cpu, 1, 0)) == cpu);
	for (size_t i = 0; i < sizeof(above) / sizeof(*above); i++) {
		mark = make_mark(MARK_PREEMPTED, above[i], 0xabcd, 0x12345678);
		CHECK(mark_cpu(mark) >= FG_MAX_CPUS);
		CHECK(mark_kind(mark) == MARK_PREEMPTED);
		CHECK(mark_domain(mark) == 0xabcd && mark_groups(mark) == 0x12345678);
	}
}

int main(void)
{
	test_begin();
	arithmetic();
	in_marks();
	fg_monitor_close(monitor_open_or_skip(NULL));
	for (uint32_t shift = 0; FG_CPU_GROUPS << shift <= FG_MAX_CPUS; shift++) {
		struct monitor_bpf *skel;
		bool early = false;

		CHECK(!fg_skeleton_open(&skel, &early));
		bpf_map__set_max_entries(skel->maps.processes, 16);
		skel->rodata->cpu_shift = shift;
		if (monitor_bpf__load(skel))
			fail("%d CPUs: not accepted", FG_CPU_GROUPS << shift);
		monitor_bpf__destroy(skel);
	}
	return 0;
}
