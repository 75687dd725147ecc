// SPDX-License-Identifier: MIT
/* The verifier accepts the program for machines of every size: each way to group CPUs. */
#include <bpf/libbpf.h>
#include "harness.h"
#include "monitor/internal.h"
#include "monitor.skel.h"

int main(void)
{
	test_begin();
	fg_monitor_close(monitor_open_or_skip(NULL));
	for (uint32_t shift = 0; FG_CPU_GROUPS << shift <= FG_MAX_CPUS; shift++) {
		struct monitor_bpf *skel;
		bool early;

		CHECK(!fg_skeleton_open(&skel, &early));
		bpf_map__set_max_entries(skel->maps.processes, 16);
		skel->rodata->cpu_shift = shift;
		if (monitor_bpf__load(skel))
			fail("%d CPUs: not accepted", FG_CPU_GROUPS << shift);
		monitor_bpf__destroy(skel);
	}
	return 0;
}
