// SPDX-License-Identifier: MIT
/*
 * In a guest whose host is busy: the monitor asks which virtual CPUs are off (bpf/vcpu.h), so that
 * an owner on one of them counts as preempted.  Only while the hypervisor takes time away, and for
 * at most 1 % of a CPU.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "monitor/internal.h"
#include "monitor/percpu.h"
#include "monitor_types.h"
#include "monitor.skel.h"

/* A virtual CPU is mostly off for some ms.  Not varied; 0.1 to 1 ms were simulated. */
#define ASK_NS 1000000u

/* Of all virtual CPUs, in a heartbeat: less is taken on a host that is not busy.  Not varied. */
#define TAKEN_NS 1000000u

/* After the last heartbeat in which so much was taken it asks for so long.  Not varied. */
#define BUSY_NS 1000000000ull

/* Of all CPUs since boot; false: no hypervisor has told yet that it has taken any. */
static bool has_been_taken(void)
{
	unsigned long long taken = 0;
	FILE *f = fopen("/proc/stat", "re");

	if (!f)
		return false;
	/* user, nice, system, idle, iowait, irq, softirq, steal */
	if (fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &taken) != 1)
		taken = 0;
	fclose(f);
	return taken;
}

void fg_vcpus_find(struct fg_monitor *m)
{
	struct fg_percpu *p = has_been_taken() ? fg_percpu_open() : NULL;

	if (p && fg_percpu_find(p, "steal_time", (uint64_t *)m->skel->bss->vcpu_at, FG_MAX_CPUS))
		m->skel->bss->vcpus = FG_MAX_CPUS;
	while (m->skel->bss->vcpus && !m->skel->bss->vcpu_at[m->skel->bss->vcpus - 1])
		m->skel->bss->vcpus--;
	fg_percpu_close(p);
}

static void ask(struct fg_monitor *m, bool tell)
{
	uint64_t before = m->vcpus.steal_ns;

	if (fg_monitor_look_at_vcpus(m, tell, &m->vcpus.steal_ns) || !before)
		return;
	m->vcpus.taken_ns += m->vcpus.steal_ns - before;
}

static void ask_in(struct fg_monitor *m, uint64_t ns)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(ns / 1000000000u),
					     .tv_nsec = (long)(ns % 1000000000u)}};

	timerfd_settime(m->vcpus.fd, 0, &at, NULL);
}

int fg_vcpus_start(struct fg_monitor *m)
{
	int err;

	if (!m->skel->bss->vcpus)
		return 0;
	m->vcpus.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (m->vcpus.fd < 0)
		return -errno;
	err = fg_watch(m, m->vcpus.fd, FG_EV_VCPUS, 0);
	if (err)
		fg_vcpus_stop(m);
	return err;
}

void fg_vcpus_stop(struct fg_monitor *m)
{
	if (m->vcpus.fd >= 0)
		close(m->vcpus.fd);
	m->vcpus.fd = -1;
}

void fg_vcpus_tick(struct fg_monitor *m, uint64_t now)
{
	bool asks = now < m->vcpus.until_ns;

	if (m->vcpus.fd < 0)
		return;
	if (!m->nr_processes) {
		m->vcpus.steal_ns = 0; /* nobody has counted meanwhile */
		return;
	}
	if (!asks)
		ask(m, false);
	if (m->vcpus.taken_ns >= TAKEN_NS) {
		m->vcpus.until_ns = now + BUSY_NS;
		if (!asks)
			ask_in(m, ASK_NS);
	}
	m->vcpus.taken_ns = 0;
}

void fg_vcpus_ready(struct fg_monitor *m)
{
	uint64_t expirations, before = fg_clock_ns(CLOCK_THREAD_CPUTIME_ID), cost;
	bool goes_on = m->nr_processes && fg_now_ns() < m->vcpus.until_ns;

	if (read(m->vcpus.fd, &expirations, sizeof(expirations)) < 0)
		return;
	ask(m, goes_on);
	if (!goes_on) {
		m->vcpus.until_ns = 0;
		return;
	}
	cost = fg_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	ask_in(m, 100 * cost > ASK_NS ? 100 * cost : ASK_NS);
}
