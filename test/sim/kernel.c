/* SPDX-License-Identifier: MIT */
/*
 * The kernel of the machine: CPUs with clocks of their own, and fibers in the place of threads.
 * Who runs next on a CPU is in sched.c, what is due next in events.c, and what programs ask of the
 * kernel in calls.c.
 *
 * Each thread of the simulation borrows the thread-local storage and the rseq
 * area of a host thread that is asleep for ever: a switch of fibers switches the
 * thread pointer as well, so __thread variables and rseq's cpu_id work
 * in the shipped code as they are.
 *
 * Whatever happens next in simulated time runs next: a heap of events, of which a
 * running CPU is one.  A CPU may run ahead by M.quantum.
 */
#include <string.h>

#include "kernel.h"
#include "objects/objects.h"

struct cpu cpus[SIM_CPUS], *here;
struct thread threads[SIM_THREADS];
struct kernel_stats kernel_stats;
uint16_t runnable_at[SAMPLES];
uint64_t horizon, rng_state;
bool chaos;
static int nthreads;

#define VCPUS_EVERY (1 * MS) /* ASK_NS of src/monitor/vcpus.c */

/* ---- threads ------------------------------------------------------------------------- */

void sim_setup(int n)
{
	nthreads = n;
	fibers_setup(n);
	sim_restart();
}

void sim_restart(void)
{
	int cores = M.cpus / M.smt;

	for (int i = 0; i < M.cpus; i++) {
		/*
		 * As Linux spreads threads that are created one by one: over sockets, caches,
		 * cores.
		 */
		int core = i % cores, in_socket = core / M.sockets;

		cpus[i] = (struct cpu){.id = i, .core = core, .socket = core % M.sockets};
		cpus[i].cluster = cpus[i].socket * M.clusters + in_socket % M.clusters;
		if (smt_slow && M.smt > 1 && M.cpus > 1)
			cpus[i].sibling = &cpus[(i + cores) % (2 * cores)];
		sched_reset(i);
		cpus[i].pace = M.little && i >= M.little ? M.pace : 10;
		cpus[i].off_from = cpus[i].off_until = 0;
		cpus[i].next_steal = M.steal ? rng() % M.steal : ~0ull;
		cpus[i].next_noise = M.noise ? rng() % M.noise : ~0ull;
	}
	sim_events_clear();
	sim_one_time = 0;
	sim_futex_reset();
	mem_reset();
	if (!chaos)
		mon_reset(); /* after a check all threads are done, and it is at zero */
	mon_machine();
	if (monitor_on)
		mon_tick();
	memset(&kernel_stats, 0, sizeof(kernel_stats));
	for (int i = 0; i < nthreads; i++) {
		threads[i].state = T_NEW;
		threads[i].next = threads[i].fnext = NULL;
		threads[i].cleanups = NULL;
		threads[i].word = NULL;
		threads[i].interrupt = 0;
		threads[i].blocks_signals = false;
		threads[i].cancelled = threads[i].cancellable = false;
		threads[i].vruntime = threads[i].ops = threads[i].max_wait = threads[i].sum_wait =
		    threads[i].ran = threads[i].waits_from = 0;
	}
	quota_begins();
	sim_post(250 * US, E_SAMPLE, 0, 0);
	if (M.steal && !untold && monitor_on)
		sim_post(VCPUS_EVERY, E_VCPUS, 0, 0);
}

void sim_spawn(int id, void (*body)(struct thread *), uint64_t at)
{
	struct thread *t = &threads[id];

	fiber_begin(t, body);
	t->cpu = id % M.cpus;
	t->role = id;
	sim_post(at, E_START, id, 0);
}

struct thread *sim_self(void)
{
	return here->cur;
}

void sim_exit(void)
{
	here->cur->state = T_DONE;
	sim_yield();
}

void sim_others_stop(void)
{
	struct cpu *mine = here;

	for (int i = 0; i < M.cpus; i++) {
		struct cpu *c = &cpus[i];

		c->queue = NULL;
		c->queued = 0;
		c->kicked = c->resched = c->displaced = cpu_armed[i] = false;
		cpu_away[i] = NULL;
		if (c != mine)
			c->cur = NULL;
	}
	for (int i = 0; i < nthreads; i++)
		if (&threads[i] != mine->cur && threads[i].state != T_NEW)
			threads[i].state = T_DONE;
	sim_events_clear();
	horizon = mine->now;
	sim_futex_reset();
}

/* As of the latest ticks: thread_group_cputime() in kernel/sched/cputime.c. */
uint64_t sim_process_ran(void)
{
	uint64_t all = 0;

	for (int i = 0; i < nthreads; i++)
		all += threads[i].neighbour ? 0 : threads[i].ran;
	return all;
}

/* ---- the event loop ---------------------------------------------------------------------- */

/*
 * A CPU that has been woken to balance does so for all that are idle (_nohz_idle_balance() in
 * kernel/sched/fair.c).
 */
static void balance_idle(uint64_t at)
{
	int queued = 0;

	for (int i = 0; i < M.cpus; i++)
		queued += quota_is_throttled(&cpus[i]) ? 0 : cpus[i].queued;
	for (int i = 0; queued && i < M.cpus; i++)
		if (cpu_idle(&cpus[i])) {
			cpu_arm(&cpus[i], at + M.idle_exit);
			queued--;
		}
}

/* The CPU that may go on and has the thread of the highest priority; NULL: none before *at. */
static struct cpu *choose_by_priority(uint64_t *at)
{
	struct cpu *best = NULL;
	uint64_t first = ~0ull;

	for (int i = 0; i < M.cpus; i++) {
		struct cpu *c = &cpus[i];

		if (!cpu_armed[i])
			continue;
		if (c->armed_at > sim_one_time)
			first = c->armed_at < first ? c->armed_at : first;
		else if (!best || !c->cur || (best->cur && c->cur->priority > best->cur->priority))
			best = c;
	}
	*at = first;
	return best;
}

/* Runs the CPU's thread until another event is due. */
static void run_cpu(struct cpu *c, uint64_t at)
{
	struct thread *t = c->cur;
	uint64_t next;

	if (c->now < at)
		c->now = at;
	cpu_armed[c->id] = false;
	here = c;
	if (c->now >= c->next_steal) { /* the guest's kernel sees nothing */
		c->off_from = c->now;
		c->now += M.steal_len / 2 + rng() % M.steal_len;
		c->off_until = c->now;
		c->next_steal = c->now + rng() % (2 * M.steal);
		cpu_arm(c, c->now);
		return;
	}
	if (c->interrupted) {
		c->now += c->interrupted;
		c->interrupted = 0;
		cpu_arm(c, c->now);
		return;
	}
	if (cpu_away[c->id]) { /* the kernel thread is done */
		c->cur = t = cpu_away[c->id];
		t->started = c->now;
		cpu_away[c->id] = NULL;
		c->in_kernel = true;
		mon_switch(c->id, -2, false, false, t->id);
		c->in_kernel = false;
		c->now += M.cswitch;
	} else if (!t) {
		cpu_reschedule(c, false);
		return;
	}
	if (c->now >= c->next_noise) {
		c->next_noise = c->now + rng() % (2 * M.noise);
		cpu_account(c);
		c->in_kernel = true;
		mon_switch(c->id, t->id, true, true, -2);
		c->in_kernel = false;
		cpu_away[c->id] = t;
		c->cur = NULL;
		cpu_arm(c, c->now + M.cswitch + M.noise_len);
		return;
	}
	if (c->resched || (c->queue && (c->displaced || c->now >= c->slice_end))) {
		bool yields = c->resched;

		c->resched = c->displaced = false;
		/* The tick of a CPU with two wakes an idle one (nohz_balancer_kick() of Linux). */
		if (!yields && !chaos && !c->kicked) {
			c->kicked = true;
			sim_post(c->now + 1, E_KICK, c->id, 0);
		}
		cpu_reschedule(c, !yields);
		return;
	}
	if (c->now >= c->slice_end) {
		cpu_account(c);
		if (!quota_lets_run(c, t)) {
			cpu_reschedule(c, true);
			return;
		}
		cpu_start_slice(c);
	}
	next = sim_next_at();
	if (schedule.by_priority) {
		choose_by_priority(&horizon);
		if (next < horizon)
			horizon = next;
	} else {
		horizon = (next != ~0ull && next > c->now ? next : c->now) + M.quantum;
	}
	if (c->queue && c->slice_end < horizon)
		horizon = c->slice_end;
	fiber_run(t);
	if (t->state == T_RUN)
		cpu_arm(c, c->now);
	else
		cpu_reschedule(c, false);
}

/* True if a CPU has run. */
static bool run_by_priority(uint64_t until)
{
	uint64_t due = sim_next_at(), first;
	struct cpu *c;

	if (due <= sim_one_time)
		return false;
	c = choose_by_priority(&first);
	if (!c) {
		sim_one_time = first < due ? first : due;
		if (sim_one_time > until || due <= sim_one_time)
			return false;
		c = choose_by_priority(&first);
	}
	run_cpu(c, sim_one_time);
	/* One that the hypervisor has taken away goes on later; the others go on now. */
	if (c->now > sim_one_time && c->now > c->off_until)
		sim_one_time = c->now;
	here = NULL;
	return true;
}

static bool anything_left(void)
{
	if (sim_events_left())
		return true;
	for (int i = 0; schedule.by_priority && i < M.cpus; i++)
		if (cpu_armed[i])
			return true;
	return false;
}

static void sample(uint64_t at)
{
	uint16_t n = 0;

	for (int i = 0; i < nthreads; i++)
		n += !threads[i].neighbour &&
		     (threads[i].state == T_RUN || threads[i].state == T_QUEUED);
	kernel_stats.runnable_sum += n;
	kernel_stats.one_runnable += n == 1;
	runnable_at[kernel_stats.runnable_samples++ % SAMPLES] = n;
	here->in_kernel = true;
	if (monitor_on)
		mon_tick();
	here->in_kernel = false;
	sim_post(at + 250 * US, E_SAMPLE, 0, 0);
}

/* As src/monitor/vcpus.c does where the host is busy. */
static void look_at_vcpus_now(uint64_t at)
{
	here->in_kernel = true;
	for (int i = 0; i < M.cpus; i++)
		mon_vcpu(i, at >= cpus[i].off_from && at < cpus[i].off_until);
	mon_look_at_vcpus();
	here->in_kernel = false;
	sim_post(at + VCPUS_EVERY, E_VCPUS, 0, 0);
}

int sim_run(uint64_t until)
{
	int left = 0;

	while (anything_left() && schedule.steps < SCHEDULE_MAX && !(chaos && results.violations) &&
	       (schedule.by_priority ? sim_one_time : sim_next_at()) < until) {
		struct event e;
		struct cpu *c;

		if (schedule.by_priority && run_by_priority(until))
			continue;
		e = sim_next_event();
		c = &cpus[e.who % SIM_CPUS];
		switch (e.kind) {
		case E_CPU: run_cpu(c, e.at); break;
		case E_TIMER: sim_timer(e.who, e.arg, e.at); break;
		case E_START:
			here = &cpus[threads[e.who].cpu];
			if (here->now < e.at && cpu_idle(here))
				here->now = e.at;
			cpu_enqueue(here, &threads[e.who]);
			if (cpu_idle(here))
				cpu_arm(here, e.at);
			break;
		case E_KICK:
			c->kicked = false;
			balance_idle(e.at);
			break;
		case E_VCPUS:
			here = &cpus[0];
			look_at_vcpus_now(e.at);
			break;
		case E_QUOTA: quota_due(e.who != 0, e.at); break;
		case E_CANCEL: sim_cancel(e.who, e.at); break;
		case E_SAMPLE:
			here = &cpus[0];
			sample(e.at);
			break;
		}
		here = NULL;
	}
	here = NULL;
	for (int i = 0; i < nthreads; i++)
		left += threads[i].state != T_NEW && threads[i].state != T_DONE;
	return left;
}
