/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: run queues by virtual run time, where a woken thread goes, who makes room for
 * whom.
 */
#include <stddef.h>

#include "kernel.h"

uint64_t sim_one_time;
bool cpu_armed[SIM_CPUS];
struct thread *cpu_away[SIM_CPUS];
static uint64_t minv[SIM_CPUS]; /* vruntime from which a CPU's queue goes on */

void sched_reset(int cpu)
{
	minv[cpu] = 0;
	cpu_away[cpu] = NULL;
	cpu_armed[cpu] = false;
}

void cpu_arm(struct cpu *c, uint64_t at)
{
	cpu_armed[c->id] = true;
	if (!schedule.by_priority) {
		sim_post(at, E_CPU, c->id, 0);
		return;
	}
	c->armed_at = at;
	if (at < horizon)
		horizon = at; /* it may be of a higher priority */
}

void cpu_enqueue(struct cpu *c, struct thread *t)
{
	struct thread **at = &c->queue;

	t->state = T_QUEUED;
	t->cpu = c->id;
	while (*at && (*at)->vruntime <= t->vruntime)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
	c->queued++;
}

/* To run it on the CPU `to`. */
static struct thread *dequeue(struct cpu *c, const struct cpu *to)
{
	struct thread *t = c->queue;

	if (chaos) /* any of them */
		for (uint64_t n = c->queued ? rng() % (uint64_t)c->queued : 0; n; n--)
			t = t->next;
	while (t && !quota_lets_run(to, t))
		t = t->next;
	if (t) {
		struct thread **at = &c->queue;

		while (*at != t)
			at = &(*at)->next;
		*at = t->next;
		c->queued--;
	}
	return t;
}

bool cpu_idle(const struct cpu *c)
{
	return !cpu_armed[c->id] && !c->cur && !quota_is_throttled(c);
}

/* Near where it ran last, as select_idle_sibling(): the same last-level cache only. */
static struct cpu *choose_cpu(const struct thread *t)
{
	struct cpu *last = &cpus[t->cpu];

	if (cpu_idle(last))
		return last;
	for (int i = 1; i < M.cpus; i++) {
		struct cpu *c = &cpus[(last->id + i) % M.cpus];

		if (cpu_idle(c) && c->cluster == last->cluster)
			return c;
	}
	return last;
}

static struct cpu *longest_queue(const struct cpu * not)
{
	struct cpu *best = NULL;

	for (int i = 1; i < M.cpus; i++) {
		struct cpu *c = &cpus[(not->id + i) % M.cpus];

		if (c->queued && !quota_is_throttled(c) && (!best || c->queued > best->queued))
			best = c;
	}
	return best;
}

/* The CPU takes a thread of another's queue. */
static struct thread *pull(struct cpu *c)
{
	struct cpu *from = longest_queue(c);
	struct thread *t = from ? dequeue(from, c) : NULL;

	if (!t)
		return NULL;
	t->vruntime = t->vruntime > minv[from->id] ? t->vruntime - minv[from->id] + minv[c->id] :
						     minv[c->id];
	t->cpu = c->id;
	mon_migrate(t->id, c->id);
	kernel_stats.pulls++;
	return t;
}

/*
 * Ticks of all CPUs come together, as by Linux's default (tick_setup_sched_timer() in
 * kernel/time/tick-sched.c), or rather up to 20 us late: as traced on a guest of 2 CPUs.  Or spread
 * over a tick, as with its parameter skew_tick=1.
 */
#define TICK_LATE (20 * US)

static uint64_t next_tick(const struct cpu *c, uint64_t after)
{
	uint64_t phase = skew_tick ? M.tick * (uint64_t)c->id / (uint64_t)M.cpus : 0;

	return (after - phase + M.tick - 1) / M.tick * M.tick + phase +
	       (skew_tick ? 0 : rng() % TICK_LATE);
}

void cpu_start_slice(struct cpu *c)
{
	c->cur->started = c->slice_began = c->now;
	c->slice_end = chaos ? c->now + rng() % (20 * US) : next_tick(c, c->now + M.slice);
	if (quota_cpus > 0)
		quota_end_slice(c, next_tick(c, c->now + 1));
}

void cpu_account(struct cpu *c)
{
	struct thread *t = c->cur;

	t->vruntime += c->now - t->started;
	t->ran += c->now - t->started;
	kernel_stats.ran += t->neighbour ? 0 : c->now - t->started;
	quota_used(c, c->now - t->started);
	t->started = c->now;
	if (t->vruntime > minv[c->id])
		minv[c->id] = t->vruntime;
}

void cpu_reschedule(struct cpu *c, bool preempt)
{
	struct thread *prev = c->cur, *next;
	bool runnable = prev && prev->state == T_RUN;

	here = c;
	c->in_kernel = true;
	if (prev) {
		cpu_account(c);
		if (runnable)
			cpu_enqueue(c, prev);
	}
	next = dequeue(c, c);
	if (!next && !c->queue && M.cpus > 1) {
		c->now += M.cswitch / 4;
		next = pull(c);
	}
	if (next != prev) {
		kernel_stats.switches++;
		kernel_stats.preempted += runnable;
		if (prev && prev->state == T_DONE)
			prev->cpu = c->id;
		mon_switch(c->id, prev ? prev->id : -1, runnable, preempt, next ? next->id : -1);
		c->now += M.cswitch;
	}
	c->cur = next;
	c->in_kernel = false;
	if (!next) {
		quota_idles(c);
		return;
	}
	next->state = T_RUN;
	next->cpu = c->id;
	c->displaced = false;
	*next->rseq_cpu = (uint32_t)c->id;
	cpu_start_slice(c);
	cpu_arm(c, c->now);
}

/*
 * Of Linux 6.6 and later, where all slices are alike (check_preempt_wakeup_fair() and, by
 * RUN_TO_PARITY, protect_slice() in kernel/sched/fair.c): who has run for a slice makes room for a
 * woken thread that has had less.
 */
static bool comes_first(const struct thread *t, const struct cpu *c)
{
	const struct thread *cur = c->cur;

	return M.wakeup_preemption && !chaos && cur && cur->state == T_RUN &&
	       here->now > c->slice_began && here->now - c->slice_began >= M.slice &&
	       t->vruntime < cur->vruntime + (here->now - cur->started);
}

void sim_wake(struct thread *t)
{
	struct cpu *c = choose_cpu(t);

	mon_wakeup(t->id, c->id);
	if (t->vruntime < minv[c->id])
		t->vruntime = minv[c->id];
	cpu_enqueue(c, t);
	if (cpu_idle(c)) {
		cpu_arm(c, here->now + (chaos ? rng() % (50 * US) : M.idle_exit));
		return;
	}
	if (comes_first(t, c)) {
		c->displaced = true;
		if (c == here)
			horizon = c->now;
	}
	/* Its slice ends in time, though nothing else is due before. */
	if (c == here && c->slice_end < horizon)
		horizon = c->slice_end;
	if (!c->kicked && M.cpus > 1) {
		c->kicked = true; /* an idle CPU elsewhere finds it at a tick */
		sim_post(here->now + 1 + rng() % M.tick, E_KICK, c->id, 0);
	}
}
