// SPDX-License-Identifier: MIT
/*
 * Where CPUs are: nodes whose CPUs do not come in order, caches of them, a node where each CPU has
 * one of its own, which are alike, a CPU that the kernel says nothing about; and the counters say
 * of this machine what the kernel says.
 */
#include <sys/stat.h>
#include "harness.h"
#include "monitor/topology.h"

static char root[] = "/tmp/fg-topology-XXXXXX";

static void put(const char *file, const char *text)
{
	put_below(root, file, text);
}

/* Index 0: its own; index 3: shared by those in `shared`. */
static void put_cpu(int cpu, const char *shared)
{
	char file[96], own[16];

	snprintf(own, sizeof(own), "%d\n", cpu);
	for (int i = 0; i < 4; i++) {
		snprintf(file, sizeof(file), "cpu/cpu%d/cache/index%d/level", cpu, i);
		put(file, i == 3 ? "3\n" : i == 2 ? "2\n" : "1\n");
		snprintf(file, sizeof(file), "cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, i);
		put(file, i == 3 ? shared : own);
	}
}

int main(void)
{
	static uint8_t near[FG_MAX_CPUS], cached[16];
	char command[64];
	struct monitor m;
	struct client c;

	test_begin();
	CHECK(mkdtemp(root));
	put("node/online", "0,2-3\n");
	put("node/node0/cpulist", "0-3,8-9\n");
	put("node/node2/cpulist", "4-7\n");
	put("node/node3/cpulist", "10-11\n");
	for (int cpu = 0; cpu < 10; cpu++)
		put_cpu(cpu, cpu < 2 || cpu > 7 ? "0-1,8-9\n" : cpu < 4 ? "2-3\n" : "4-7\n");
	put_cpu(10, "10\n");
	put_cpu(11, "11\n");
	memset(cached, 0xff, sizeof(cached));
	fg_topology_read(root, cached, 14);
	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(!system(command));
	for (int cpu = 0; cpu < 10; cpu++)
		CHECK(cached[cpu] == (cpu < 2 || cpu > 7 ? 0 : cpu < 4 ? 1 : 2 << 5));
	CHECK(cached[10] == 3 << 5 && cached[11] == 3 << 5);
	CHECK(cached[12] == 0 && cached[13] == 0 && cached[14] == 0xff);

	fg_topology_read("/nowhere", cached, 2);
	CHECK(cached[0] == 0 && cached[1] == 0);

	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	CHECK(c.counters->online_cpus == (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	fg_topology_read("/sys/devices/system", near, FG_MAX_CPUS);
	for (int cpu = 0; cpu < FG_MAX_CPUS; cpu++)
		CHECK(c.counters->near[cpu] == near[cpu]);
	client_leave(&c);
	monitor_stop(&m);
	return 0;
}
