/* SPDX-License-Identifier: MIT */
/* The machines, and one that is set up as the command line says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/rseq.h>
#include <time.h>
#include <unistd.h>

#include "lock/offer.h"
#include "runtime/cpus.h"
#include "runtime/decide.h"
#include "runtime/thread.h"
#include "runtime/thread_id.h"
#include "sys/asymmetric.h"
#include "sys/libc.h"
#include "abi/options.h"
#include "runtime/count.h"
#include "runtime/monitor_client.h"
#include "check.h"
#include "objects/objects.h"
#include "options.h"
#include "report.h"
#include "kernel.h"

/* In the place of monitor_client.c: there is a monitor from the start, or none. */
uint64_t fg_monitor_retry_ns = UINT64_MAX;
void fg_monitor_register(void)
{
}
void fg_monitor_forget(void)
{
}
void fg_monitor_retry(uint64_t now)
{
	(void)now;
}
void fg_monitor_missed(uint64_t now)
{
	(void)now;
}
uint64_t fg_monitor_grow_ns = UINT64_MAX;
void fg_monitor_grow(uint64_t now)
{
	(void)now;
}

/*
 * Distances between caches as core-to-core latency measurements of such machines give them; docs in
 * README.  clusters: caches of the last level a socket; smt: threads a core; then ns, of a pause
 * and of a line from the sibling, the cluster, the socket, the other socket.
 */
#define MACHINE(name_, cpus_, sockets_, clusters_, smt_, pause_, sibling_, cluster_, socket_, \
		remote_, idle_exit_, ...)                                                     \
	{.name = name_,                                                                       \
	 .cpus = cpus_,                                                                       \
	 .sockets = sockets_,                                                                 \
	 .clusters = clusters_,                                                               \
	 .smt = smt_,                                                                         \
	 .pause = pause_ * NS,                                                                \
	 .sibling = sibling_ * NS,                                                            \
	 .cluster = cluster_ * NS,                                                            \
	 .socket = socket_ * NS,                                                              \
	 .remote = remote_ * NS,                                                              \
	 .idle_exit = idle_exit_,                                                             \
	 .hit = 400,                                                                          \
	 .store = 400,                                                                        \
	 .rmw = 8 * NS,                                                                       \
	 .clock = 20 * NS,                                                                    \
	 .syscall = 300 * NS,                                                                 \
	 .futex = 400 * NS,                                                                   \
	 .wake = 1500 * NS,                                                                   \
	 .cswitch = 1500 * NS,                                                                \
	 .interrupt = 1500 * NS,                                                              \
	 .slice = 3 * MS,                                                                     \
	 .wakeup_preemption = true,                                                           \
	 .tick = 4 * MS,                                                                      \
	 .quantum = 20 * NS,                                                                  \
	 __VA_ARGS__}
static const struct model models[] = {
    /* two Xeon Gold 5320, 26 cores with 2 threads each */
    MACHINE("intel104", 104, 2, 1, 2, 60, 12, 60, 60, 135, 5 * US),
    /* two EPYC 9754, 16 caches of 8 cores with 2 threads each a socket */
    MACHINE("amd512", 512, 2, 16, 2, 25, 12, 28, 120, 230, 5 * US),
    /*
     * The 2-CPU Intel machine of bench/results/2026-11-21-2cpu: costly interrupts.  Linux 6.18
     * there: slices are 0.7 ms * (1 + log2(CPUs, 8 at most)), kernel/sched/fair.c.  What an access
     * costs is fitted to one thread's loops, a line's journey to MCS with two (simulator.md).
     */
    MACHINE("vm2", 2, 1, 1, 1, 45, 30, 55, 55, 130, 50 * US, .slice = 1400 * US, .rmw = 5500,
	    .hit = 150, .store = 150),
    /*
     * A virtual machine of 16 cores of one Xeon of 2023 (model 207), Linux 6.18.  What an access
     * costs is fitted to one thread's loop, a line's journey (86 ns from CPU to CPU there) to MCS
     * with 16 threads; the rest is what costs measured (simulator.md).
     */
    MACHINE("vm16", 16, 1, 1, 1, 20, 26, 74, 74, 130, 20 * US, .slice = 2800 * US, .rmw = 5500,
	    .hit = 150, .store = 150, .clock = 35 * NS, .syscall = 145 * NS, .futex = 185 * NS,
	    .wake = 1430 * NS, .cswitch = 950 * NS),
    MACHINE("one", 16, 1, 1, 1, 45, 12, 55, 55, 130, 5 * US), /* one socket */
    /* the same as a guest on a busy host: each virtual CPU is off for 3 ms in 15, about */
    MACHINE("guest16", 16, 1, 1, 1, 45, 12, 55, 55, 130, 50 * US, .steal = 12 * MS,
	    .steal_len = 3 * MS),
    /* four fast cores and four that take 2.5 times as long (big.LITTLE), a cache for each four */
    MACHINE("big4little4", 8, 1, 2, 1, 45, 12, 40, 90, 130, 20 * US, .little = 4, .pace = 25),
};
static uint32_t not_forked = 1; /* random schedules run in children of their own */
struct model M;
bool skew_tick, smt_slow, random_lines, untold;

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE 2 /* asm/hwcap2.h */
#endif

static const char *policies[] = {
#define X(id, name, help) [FG_POLICY_##id] = name,
    FG_POLICY_TABLE(X)
#undef X
};

static struct fg_stats counts;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const struct object *const objects[] = {&object_mutex,	&object_rwlock, &object_cond,
					       &object_barrier, &object_sem,	&object_spin};

/* False, with a sentence: it cannot run here. */
static bool has_what_it_needs(char **argv)
{
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)) {
		fputs(
		    "skipped: needs the instructions wrfsbase and rdfsbase (Linux 5.9, and a CPU that has them)\n",
		    stderr);
		return false;
	}
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) { /* the same addresses in every run */
		if (personality(ADDR_NO_RANDOMIZE) < 0 ||
		    !(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
			fputs(
			    "skipped: may not switch off the randomization of addresses (personality(2))\n",
			    stderr);
			return false;
		}
		execv("/proc/self/exe", argv);
	}
	return true;
}

static int policy_of(const char *name)
{
	for (int p = 0; p < FG_POLICY_COUNT; p++)
		if (!strcmp(policies[p], name))
			return p;
	refuse("no policy '%s'", name);
}

/*
 * Of the time in which nobody gets anything: while others do, a wait may be as long as the program,
 * since whoever comes may take what is free, or what a waiter has just been told of.  After the
 * designated waiter's check, which is within 4 ms (lock/lock_wait.c), and long before the first
 * periodic one, after 8: others may go on for a while after a wake-up is lost.
 */
static uint64_t bound_ms(void)
{
	/*
	 * In a child one that finds the parent's designated waiter sleeps for 100 ms.  Who releases
	 * a lock for a thread whose signal handler wants what that one has in hand looks 1,000
	 * times, every 100 us and what timers and idle CPUs add, 50 us each (lock/offer.c).
	 */
	if (load.forking || (load.handlers && load.foreign))
		return 250;
	/*
	 * Who has a spinlock in hand, and waits for another behind those that want the first, goes
	 * around their gate after 8 ms, or up to four times as long (lock/gate.c).
	 */
	if (load.object == &object_spin && load.locks > 1)
		return 100;
	/*
	 * One CPU after the other may be taken away that has to go on, each for 1.5 times steal_len
	 * at most: before the second periodic check.
	 */
	return M.steal ? 40 : 5;
}

/* What random schedules have no room for, or do not look at. */
static void choose_schedules(void)
{
	/* as many again in the child of a fork; weak.c has seen what so many have */
	int most = !weak ? CHECK_THREADS : load.forking ? WEAK_THREADS / 2 : WEAK_THREADS;

	if (!opt.check.schedules) {
		if (opt.of_schedules)
			refuse("--%s: of random schedules only, -x N", opt.of_schedules);
		return;
	}
	if (opt.profile || opt.where || opt.looks || figures.show_runnable)
		refuse("-P, --where, --looks, --runnable: not of random schedules, -x N");
	if (!opt.check.bound)
		opt.check.bound = bound_ms() * MS;
	if (opt.threads < 2 || opt.threads > most)
		refuse("-t %d: random schedules are of 2 to %d threads here", opt.threads, most);
	if (load.forking && (!load.object->renew || load.locks > 1))
		refuse("--fork: not of a %s%s", opt.object,
		       load.object->renew ? " beside others" : "");
	if ((load.handlers || load.foreign) && (load.forking || strcmp(opt.lock, "flexguard")))
		refuse("--handlers, --foreign: of FlexGuard's locks, without --fork");
	if (load.foreign && load.object != &object_mutex)
		refuse("--foreign: not of a %s", opt.object);
	if (load.foreign && opt.check.changes >= 0)
		refuse("--foreign: not by priorities: who releases for others does not sleep");
	if (load.cancels && load.object != &object_cond && load.object != &object_sem)
		refuse("--cancel: of condition variables and semaphores only, -O cond, -O sem");
	if (load.busy || load.others || load.registered)
		refuse("other processes are not in random schedules");
}

/* The machine and the object that were asked for. */
static void choose(void)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
		if (!strcmp(models[i].name, opt.machine))
			M = models[i];
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++)
		if (!strcmp(objects[i]->name, opt.object))
			load.object = objects[i];
	if (!M.cpus)
		refuse("no machine '%s'", opt.machine);
	if (!load.object)
		refuse("no object '%s'", opt.object);
	if (!(load.object->lock ? load.object->lock(opt.lock) : !strcmp(opt.lock, "flexguard")))
		refuse("no lock '%s' for a %s here", opt.lock, opt.object);
	if (opt.cpus)
		M.cpus = opt.cpus;
	if (M.cpus / M.smt < M.sockets)
		M.sockets = M.smt = 1;
	if (opt.quantum)
		M.quantum = opt.quantum - 1;
	if (opt.idle_exit)
		M.idle_exit = opt.idle_exit;
	M.noise = opt.noise;
	M.noise_len = 20 * US;
	if (!opt.threads)
		opt.threads = M.cpus;
	if (opt.threads + load.busy + load.others + load.registered > SIM_THREADS)
		refuse("more than %d threads in all", SIM_THREADS);
	choose_schedules();
}

/* The library and the eBPF program, as programs find them. */
static void start_runtime(void)
{
	int n = opt.threads, p = policy_of(opt.policy);
	uint64_t size;

	rng_state = opt.check.seed * 0x9E3779B97F4A7C15ull | 1;
	monitor_on = p == FG_POLICY_DEFAULT || p == FG_POLICY_PAPER;
	chaos = opt.check.schedules != 0;
	opt.check.threads = n;
	fg_libc_setup();
	fg_asymmetric_setup();
	fg_threads_setup(_fg_lock_thread_ends);
	fg_not_forked = &not_forked;
	fg_self(); /* reserves the tables */
	fg_cpus_setup();
	fg_ids_of_process((uint32_t)sim_pid()); /* from here on */
	mon_setup(chaos ? 2 * n : n, M.cpus,
		  (char *)&fg_self_tls.bind - ((char *)__builtin_thread_pointer() + __rseq_offset));
	/* as many again in the child of a fork */
	sim_setup(chaos ? 2 * n : n + load.busy + load.others + load.registered);
	fg_policy_set((enum fg_policy)p);
	fg_policy_monitor(monitor_on ? mon_counters(&size) : NULL, 1);
	if (monitor_on)
		/* as if it had given all of them (monitor.c) */
		fg_slots_seen = FG_PIECES * FG_PIECE;
}

/* Who gets nothing any more has no others. */
static void count_waits_under_way(int n, uint64_t end)
{
	for (int i = 0; i < n; i++) {
		struct thread *t = &threads[i];

		if (t->waits_from && t->waits_from + t->max_wait < end)
			t->max_wait = end - t->waits_from;
	}
}

static void measure(double t0)
{
	uint64_t from = 0, all = 0, size;
	int n = opt.threads;

	load.threads = n;
	if (opt.looks) {
		fg_stats = figures.counts = &counts;
		mem_unseen(&counts, sizeof(counts));
	}
	load_reset();
	if (monitor_on)
		mem_class(mon_counters(&size), size, C_COUNTER);
	sim_restart();
	for (int i = 0; i < n; i++)
		sim_spawn(i, load_body, (uint64_t)i * 100 * NS);
	neighbours_begin(n);
	while (results.started < n)
		sim_run(from += 100 * US);
	figures.started = from;
	sim_run(from += opt.warm_up);
	memset(&mem_stats, 0, sizeof(mem_stats));
	memset(&kernel_stats, 0, sizeof(kernel_stats));
	memset(results.wait_hist, 0, sizeof(results.wait_hist));
	memset(sites, 0, sizeof(sites));
	memset(&counts, 0, sizeof(counts));
	for (int i = 0; i < n; i++)
		threads[i].ops = threads[i].sum_wait = threads[i].max_wait = 0;
	sim_run(from + opt.time);
	count_waits_under_way(n, from + opt.time);
	if (load.object->sum)
		load.object->sum();
	report(opt.lock, n, opt.time, seconds() - t0);
	for (int i = 0; i < n; i++)
		all += threads[i].ops;
	if (opt.profile)
		report_sites(all);
	if (opt.where)
		report_places(n);
}

int main(int argc, char **argv)
{
	double t0;

	parse_options(argc, argv);
	if (!has_what_it_needs(argv))
		return 77;
	choose();
	start_runtime();
	t0 = seconds();
	if (chaos)
		return check_run(&opt.check, opt.lock);
	measure(t0);
	fflush(stdout);
	_exit(results.violations != 0);
}
