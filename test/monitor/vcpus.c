// SPDX-License-Identifier: MIT
/*
 * What a hypervisor takes: never less than before.  Which virtual CPUs are off is in the counters
 * if that is asked for, and else not.
 */
#include "harness.h"
#include "monitor/internal.h"

static uint32_t off_now(const struct fg_monitor *m)
{
	uint32_t n = 0;

	for (int i = 0; i < FG_MAX_CPUS; i++) {
		uint32_t off = __atomic_load_n(&m->counters->cpu[i].vcpu_off, __ATOMIC_RELAXED);

		CHECK(off <= 1);
		n += off;
	}
	return n;
}

int main(void)
{
	struct fg_monitor_config cfg = {.domains_only = true};
	uint64_t taken = 0, before;
	struct fg_monitor *m;
	uint32_t most = 0, n;

	test_begin();
	m = monitor_open_or_skip(&cfg);
	CHECK(!fg_monitor_look_at_vcpus(m, false, &taken));
	if (!taken)
		skip("no hypervisor tells here what it takes");
	for (int i = 0; i < 300; i++) {
		before = taken;
		CHECK(!fg_monitor_look_at_vcpus(m, true, &taken));
		CHECK(taken >= before);
		n = off_now(m);
		most = n > most ? n : most;
		usleep(1000);
	}
	CHECK(!fg_monitor_look_at_vcpus(m, false, &taken));
	CHECK(!off_now(m));
	printf(
	    "%.2f s taken since boot; at most %u virtual CPUs were off at once, idle ones included\n",
	    (double)taken / 1e9, most);
	fg_monitor_close(m);
	return 0;
}
