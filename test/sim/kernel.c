/* SPDX-License-Identifier: MIT */
/*
 * The kernel of the machine: CPUs with clocks of their own, run queues, timers, and fibers in the
 * place of threads.  What programs ask of it is in calls.c.
 *
 * Each thread of the simulation borrows the thread-local storage and the rseq
 * area of a host thread that is asleep for ever: a switch of fibers switches the
 * thread pointer as well, so __thread variables and rseq's cpu_id work
 * in the shipped code as they are.
 *
 * Whatever happens next in simulated time runs next: a heap of events, of which a
 * running CPU is one.  A CPU may run ahead by M.quantum.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "objects/objects.h"

struct cpu cpus[SIM_CPUS], *here;
struct thread threads[SIM_THREADS];
struct kernel_stats kernel_stats;
uint16_t runnable_at[SAMPLES];
uint64_t horizon, rng_state;
bool chaos;
static int nthreads;
static uint64_t minv[SIM_CPUS];	      /* vruntime from which a CPU's queue goes on */
static struct thread *away[SIM_CPUS]; /* its current thread, while a kernel thread has the CPU */
static bool armed[SIM_CPUS];	      /* has an event of its own */

/* ---- events ---------------------------------------------------------------------- */

struct event {
	uint64_t at, seq;
	int kind, who;
	uint64_t arg;
};
#define EVENTS (1u << 20) /* timers that have been overtaken stay until they are due */
static struct event heap[EVENTS];
static int nheap, background; /* background: those that do not keep the simulation going */
static uint64_t event_seq;

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void sim_post(uint64_t at, enum event_kind kind, int who, uint64_t arg)
{
	struct event e = {at, event_seq++, kind, who, arg};
	int i = nheap++;

	for (; i && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
	if (at + M.quantum < horizon)
		horizon = at + M.quantum;
	background += kind == E_SAMPLE;
}

static struct event next_event(void)
{
	struct event first = heap[0], e = heap[--nheap];
	int i = 0, child;

	while ((child = 2 * i + 1) < nheap) {
		child += child + 1 < nheap && before(&heap[child + 1], &heap[child]);
		if (before(&e, &heap[child]))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = e;
	background -= first.kind == E_SAMPLE;
	return first;
}

/* Of schedules by priorities: time is one for all, and whoever is ready by then may go on. */
static uint64_t one_time;

static void arm(struct cpu *c, uint64_t at)
{
	armed[c->id] = true;
	if (!schedule.by_priority) {
		sim_post(at, E_CPU, c->id, 0);
		return;
	}
	c->armed_at = at;
	if (at < horizon)
		horizon = at; /* it may be of a higher priority */
}

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
		minv[i] = 0;
		away[i] = NULL;
		armed[i] = false;
		cpus[i].pace = M.little && i >= M.little ? M.pace : 10;
		cpus[i].next_steal = M.steal ? rng() % M.steal : ~0ull;
		cpus[i].next_noise = M.noise ? rng() % M.noise : ~0ull;
	}
	nheap = background = 0;
	one_time = 0;
	sim_futex_reset();
	mem_reset();
	if (!chaos)
		mon_reset(); /* after a check all threads are done, and it is at zero */
	if (monitor_on)
		mon_tick();
	memset(&kernel_stats, 0, sizeof(kernel_stats));
	for (int i = 0; i < nthreads; i++) {
		threads[i].state = T_NEW;
		threads[i].next = threads[i].fnext = NULL;
		threads[i].cleanups = NULL;
		threads[i].word = NULL;
		threads[i].interrupt = 0;
		threads[i].cancelled = threads[i].cancellable = false;
		threads[i].vruntime = threads[i].ops = threads[i].max_wait = threads[i].sum_wait =
		    threads[i].ran = 0;
	}
	sim_post(250 * US, E_SAMPLE, 0, 0);
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
		c->kicked = c->resched = c->displaced = armed[i] = false;
		away[i] = NULL;
		if (c != mine)
			c->cur = NULL;
	}
	for (int i = 0; i < nthreads; i++)
		if (&threads[i] != mine->cur && threads[i].state != T_NEW)
			threads[i].state = T_DONE;
	nheap = background = 0;
	horizon = mine->now;
	sim_futex_reset();
}

/* ---- the scheduler ----------------------------------------------------------------- */

static void enqueue(struct cpu *c, struct thread *t)
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

static struct thread *dequeue(struct cpu *c)
{
	struct thread *t = c->queue;

	if (chaos) /* any of them */
		for (uint64_t n = c->queued ? rng() % (uint64_t)c->queued : 0; n; n--)
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

static bool idle(const struct cpu *c)
{
	return !armed[c->id] && !c->cur;
}

/* Near where it ran last, as select_idle_sibling(): the same last-level cache only. */
static struct cpu *choose_cpu(const struct thread *t)
{
	struct cpu *last = &cpus[t->cpu];

	if (idle(last))
		return last;
	for (int i = 1; i < M.cpus; i++) {
		struct cpu *c = &cpus[(last->id + i) % M.cpus];

		if (idle(c) && c->cluster == last->cluster)
			return c;
	}
	return last;
}

static struct cpu *longest_queue(const struct cpu * not)
{
	struct cpu *best = NULL;

	for (int i = 1; i < M.cpus; i++) {
		struct cpu *c = &cpus[(not->id + i) % M.cpus];

		if (c->queued && (!best || c->queued > best->queued))
			best = c;
	}
	return best;
}

/* The CPU takes a thread of another's queue. */
static struct thread *pull(struct cpu *c)
{
	struct cpu *from = longest_queue(c);
	struct thread *t;

	if (!from)
		return NULL;
	t = dequeue(from);
	t->vruntime = t->vruntime > minv[from->id] ? t->vruntime - minv[from->id] + minv[c->id] :
						     minv[c->id];
	t->cpu = c->id;
	mon_migrate(t->id, c->id);
	kernel_stats.pulls++;
	return t;
}

static void start_slice(struct cpu *c)
{
	uint64_t end = c->now + (chaos ? rng() % (20 * US) : M.slice),
		 phase = M.tick * (uint64_t)c->id / (uint64_t)M.cpus;

	c->cur->started = c->slice_began = c->now;
	c->slice_end = chaos ? end : (end - phase + M.tick - 1) / M.tick * M.tick + phase;
}

static void account(struct cpu *c)
{
	struct thread *t = c->cur;

	t->vruntime += c->now - t->started;
	t->ran += c->now - t->started;
	t->started = c->now;
	if (t->vruntime > minv[c->id])
		minv[c->id] = t->vruntime;
}

/*
 * The current thread, if any, gives up the CPU: to the queue's first, to one of elsewhere, or to
 * nobody.
 */
static void reschedule(struct cpu *c, bool preempt)
{
	struct thread *prev = c->cur, *next;
	bool runnable = prev && prev->state == T_RUN;

	here = c;
	c->in_kernel = true;
	if (prev) {
		account(c);
		if (runnable)
			enqueue(c, prev);
	}
	next = dequeue(c);
	if (!next && M.cpus > 1) {
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
	if (!next)
		return;
	next->state = T_RUN;
	next->cpu = c->id;
	c->displaced = false;
	*next->rseq_cpu = (uint32_t)c->id;
	start_slice(c);
	arm(c, c->now);
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
	enqueue(c, t);
	if (idle(c)) {
		arm(c, here->now + (chaos ? rng() % (50 * US) : M.idle_exit));
		return;
	}
	if (comes_first(t, c)) {
		c->displaced = true;
		if (c == here)
			horizon = c->now;
	}
	if (!c->kicked && M.cpus > 1) {
		c->kicked = true; /* an idle CPU elsewhere finds it at a tick */
		sim_post(here->now + 1 + rng() % M.tick, E_KICK, c->id, 0);
	}
}

/* ---- the event loop ---------------------------------------------------------------------- */

/* The CPU that may go on and has the thread of the highest priority; NULL: none before *at. */
static struct cpu *choose_by_priority(uint64_t *at)
{
	struct cpu *best = NULL;
	uint64_t first = ~0ull;

	for (int i = 0; i < M.cpus; i++) {
		struct cpu *c = &cpus[i];

		if (!armed[i])
			continue;
		if (c->armed_at > one_time)
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

	if (c->now < at)
		c->now = at;
	armed[c->id] = false;
	here = c;
	if (c->now >= c->next_steal) { /* the guest's kernel, and so the monitor, sees nothing */
		c->now += M.steal_len / 2 + rng() % M.steal_len;
		c->next_steal = c->now + rng() % (2 * M.steal);
		arm(c, c->now);
		return;
	}
	if (away[c->id]) { /* the kernel thread is done */
		c->cur = t = away[c->id];
		t->started = c->now;
		away[c->id] = NULL;
		c->in_kernel = true;
		mon_switch(c->id, -2, false, false, t->id);
		c->in_kernel = false;
		c->now += M.cswitch;
	} else if (!t) {
		reschedule(c, false);
		return;
	}
	if (c->now >= c->next_noise) {
		c->next_noise = c->now + rng() % (2 * M.noise);
		account(c);
		c->in_kernel = true;
		mon_switch(c->id, t->id, true, true, -2);
		c->in_kernel = false;
		away[c->id] = t;
		c->cur = NULL;
		arm(c, c->now + M.cswitch + M.noise_len);
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
		reschedule(c, !yields);
		return;
	}
	if (c->now >= c->slice_end) {
		account(c);
		start_slice(c);
	}
	if (schedule.by_priority) {
		choose_by_priority(&horizon);
		if (nheap && heap[0].at < horizon)
			horizon = heap[0].at;
		if (c->queue && c->slice_end < horizon)
			horizon = c->slice_end;
	} else {
		horizon = (nheap && heap[0].at > c->now ? heap[0].at : c->now) + M.quantum;
	}
	fiber_run(t);
	if (t->state == T_RUN)
		arm(c, c->now);
	else
		reschedule(c, false);
}

/* True if a CPU has run. */
static bool run_by_priority(uint64_t until)
{
	uint64_t due = nheap ? heap[0].at : ~0ull, first;
	struct cpu *c;

	if (due <= one_time)
		return false;
	c = choose_by_priority(&first);
	if (!c) {
		one_time = first < due ? first : due;
		if (one_time > until || due <= one_time)
			return false;
		c = choose_by_priority(&first);
	}
	run_cpu(c, one_time);
	if (c->now > one_time)
		one_time = c->now;
	here = NULL;
	return true;
}

static bool anything_left(void)
{
	if (nheap > background)
		return true;
	for (int i = 0; schedule.by_priority && i < M.cpus; i++)
		if (armed[i])
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

int sim_run(uint64_t until)
{
	int left = 0;

	while (anything_left() && schedule.steps < SCHEDULE_MAX && !(chaos && results.violations) &&
	       (schedule.by_priority ? one_time : heap[0].at) < until) {
		struct event e;
		struct cpu *c;

		if (schedule.by_priority && run_by_priority(until))
			continue;
		e = next_event();
		c = &cpus[e.who % SIM_CPUS];
		switch (e.kind) {
		case E_CPU: run_cpu(c, e.at); break;
		case E_TIMER: sim_timer(e.who, e.arg, e.at); break;
		case E_START:
			here = &cpus[threads[e.who].cpu];
			if (here->now < e.at && idle(here))
				here->now = e.at;
			enqueue(here, &threads[e.who]);
			if (idle(here))
				arm(here, e.at);
			break;
		case E_KICK:
			c->kicked = false;
			for (int i = 0; c->queue && i < M.cpus; i++)
				if (idle(&cpus[i])) {
					arm(&cpus[i], e.at + M.idle_exit);
					break;
				}
			break;
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
