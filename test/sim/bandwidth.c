/* SPDX-License-Identifier: MIT */
/*
 * What a control group's CPU quota does to the program (its neighbours have none): Linux's
 * bandwidth control (Turner, Rao, Rao, "CPU bandwidth control for CFS", OLS 2010;
 * kernel/sched/fair.c). In each period the CPUs together have so much time, which they take from a
 * pool in slices. One that has none left, and finds none, is throttled: what is on its queue waits
 * for the next period. One that goes idle gives back what it has, but for a rest.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "kernel.h"

#define PERIOD	    (100 * MS) /* cpu.max's default, as Docker and Kubernetes have it */
#define SLICE	    (5 * MS)   /* sched_cfs_bandwidth_slice_us */
#define REST	    (1 * MS)   /* min_cfs_rq_runtime */
#define SLACK_AFTER (5 * MS)   /* cfs_bandwidth_slack_period */

double quota_cpus;
static uint64_t pool;
static int64_t left[SIM_CPUS];
static bool throttled[SIM_CPUS], slack_due;

static uint64_t of_period(void)
{
	return (uint64_t)(quota_cpus * PERIOD);
}

void quota_begins(void)
{
	slack_due = false;
	for (int i = 0; i < M.cpus; i++) {
		left[i] = 0;
		throttled[i] = false;
	}
	if (quota_cpus == 0)
		return;
	pool = of_period();
	sim_post(PERIOD, E_QUOTA, 1, 0);
}

void quota_used(const struct cpu *c, uint64_t ps)
{
	if (quota_cpus > 0 && !c->cur->neighbour)
		left[c->id] -= (int64_t)ps;
}

bool quota_is_throttled(const struct cpu *c)
{
	return throttled[c->id];
}

bool quota_lets_run(const struct cpu *c, const struct thread *t)
{
	int64_t *has = &left[c->id];
	uint64_t wanted;

	if (quota_cpus == 0 || t->neighbour || *has > 0)
		return true;
	wanted = (uint64_t)((int64_t)SLICE - *has);
	if (wanted > pool)
		wanted = pool;
	pool -= wanted;
	*has += (int64_t)wanted;
	throttled[c->id] = *has <= 0;
	return *has > 0;
}

void quota_end_slice(struct cpu *c, uint64_t tick)
{
	if (!c->cur->neighbour && left[c->id] <= (int64_t)(tick - c->now) && tick < c->slice_end)
		c->slice_end = tick;
}

void quota_idles(const struct cpu *c)
{
	int64_t *has = &left[c->id];

	if (quota_cpus == 0 || *has <= (int64_t)REST)
		return;
	pool += (uint64_t)*has - REST;
	*has = REST;
	if (slack_due || pool < SLICE)
		return;
	slack_due = true;
	sim_post(c->now + SLACK_AFTER, E_QUOTA, 0, 0);
}

void quota_due(bool period, uint64_t at)
{
	if (period) {
		pool = of_period();
		sim_post(at + PERIOD, E_QUOTA, 1, 0);
	} else {
		slack_due = false;
	}
	for (int i = 0; i < M.cpus; i++) {
		uint64_t debt = (uint64_t)(1 - left[i]);

		if (!throttled[i] || debt > pool)
			continue;
		pool -= debt;
		left[i] = 1;
		throttled[i] = false;
		cpu_arm(&cpus[i], at + M.idle_exit);
	}
}

/*
 * Of control groups' version 2, in a group of its own, as a container sees it; without a quota
 * there are none, whatever limits the simulator itself.
 */
static const struct {
	const char *path, *format;
} files[] = {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "%llu %llu\n"}};
#define FD(i) (100000 + (long)(i))
#define FILES (long)(sizeof(files) / sizeof(*files))
static bool at_end[FILES]; /* has been read since it was opened last */

static bool opens(const char *path, long *result)
{
	for (long i = 0; i < FILES; i++)
		if (!strcmp(path, files[i].path)) {
			*result = quota_cpus > 0 ? FD(i) : -ENOENT;
			at_end[i] = false;
			return true;
		}
	return false;
}

bool quota_serves(long nr, long a, long b, long c, long *result)
{
	long i = a - FD(0);

	if (nr == SYS_openat)
		return opens((const char *)b, result);
	if (i < 0 || i >= FILES || (nr != SYS_read && nr != SYS_close))
		return false;
	*result = 0;
	if (nr == SYS_read && !at_end[i]) {
		*result = snprintf((char *)b, (size_t)c, files[i].format, of_period() / US,
				   PERIOD / US);
		at_end[i] = true;
	}
	return true;
}
