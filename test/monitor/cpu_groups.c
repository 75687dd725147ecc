// SPDX-License-Identifier: MIT
/*
 * CPUs in groups: each CPU is in its own, and a mask of CPUs that are in none does not stand for
 * any CPU.  The verifier accepts the program for machines of every size: each way to group CPUs.
 */
#include <bpf/libbpf.h>
#include "groups.h"
#include "harness.h"
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

int main(void)
{
	test_begin();
	arithmetic();
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
