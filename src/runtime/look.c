/* SPDX-License-Identifier: MIT */
#include "runtime/look.h"

#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/cpus.h"
#include "runtime/policy.h"
#include "sys/clock.h"
#include "sys/filter.h"

/* What a group may have saved up, and has at first.  Not varied. */
#define GROUP_CAP_NS   (64 * (int64_t)FG_LOOK_NS)
#define GROUP_FIRST_NS (2 * (int64_t)FG_LOOK_NS)

/*
 * Looks in vain may take this part of the process's CPU time.  It is read once a ms at the most,
 * less often where that takes long, for the kernel adds up all threads, and not before the process
 * can have used enough, if it goes on as since the last time.  Not varied.
 */
#define VAIN_PART     64u
#define READ_EVERY_NS 1000000u
#define READ_LAST_NS  (64 * (uint64_t)READ_EVERY_NS)
#define READ_PART     64u
#define READ_MOST_NS  200000u

#define GROUP_CPUS 16u
#define GROUPS	   (FG_MAX_CPUS / GROUP_CPUS)

/*
 * A looker renews its mark at each reading of the clock, some us apart; one that is older than this
 * belongs to a thread that has stopped looking or has been kept off its CPU.  Not varied.
 */
#define MARK_NS 16384u

/*
 * mark: CPU << 20 | time in units of 2^10 ns.  What is in it after the unit has wrapped around,
 * after a second, is taken for a looker with a chance of one in 64,000.
 */
#define MARK_TIME_BITS 20
static struct group {
	uint32_t mark[GROUP_CPUS];
	struct fg_budget budget;
} __attribute__((aligned(FG_CACHE_LINE))) groups[GROUPS];

/*
 * A thread that has looked and lost its CPU for AWAY_NS meanwhile had a CPU that others need: no
 * looks for so many times as long.  As in the prototype; not varied since.
 */
#define AWAY_NS	    20000u
#define AWAY_FACTOR 8u
static uint64_t no_looks_until_ns;

/* An event's thread may be queued on the looker's own CPU.  As in the prototype. */
#define YIELD_EVERY_NS 3000u

#ifdef FG_BROKEN_BUDGET /* to test what else keeps threads from looking */
#define IS_FREE true
#else
#define IS_FREE false
#endif

int64_t fg_budget_left(struct fg_budget *b, int64_t cap)
{
	int64_t have = fg_load_relaxed(&b->left_ns);

	if (have <= cap && have >= -FG_LOOK_COST_NS && !IS_FREE)
		return have;
	have = have < -FG_LOOK_COST_NS && !IS_FREE ? -FG_LOOK_COST_NS : cap;
	fg_store_relaxed(&b->left_ns, have);
	return have;
}

void fg_budget_add(struct fg_budget *b, int64_t ns)
{
	fg_add_relaxed(&b->left_ns, ns);
}

void fg_look_setup(void)
{
	fg_filter_setup(fg_policy_clock_changed);
	for (uint32_t i = 0; i < GROUPS; i++)
		groups[i].budget.left_ns = GROUP_FIRST_NS;
}

static uint64_t read_next_ns, read_last_ns, cpu_read_ns;

/* How long a process that has used `used` in `ns` takes to earn so much. */
static uint64_t time_to_earn(int64_t wanted, uint64_t used, uint64_t ns)
{
	uint64_t time;

	if (wanted <= 0)
		return 0;
	if (ns > READ_LAST_NS)
		ns = READ_LAST_NS;
	time = used ? (uint64_t)wanted * VAIN_PART * ns / used : READ_LAST_NS;
	return time < READ_LAST_NS ? time : READ_LAST_NS;
}

/*
 * What the process has used since the last time gives some to who asks, for the group: until it
 * has `wanted`.
 */
static void put_in(struct fg_budget *b, const struct fg_self *self, uint64_t now, int64_t wanted)
{
	uint64_t next = fg_load_relaxed(&read_next_ns), had, used, wait, took;
	struct timespec t;
	int err;

	if (now < next ||
	    !__atomic_compare_exchange_n(&read_next_ns, &next, now + READ_EVERY_NS, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
	    !fg_call_begins(self->id))
		return;
	err = fg_clock_read(CLOCK_PROCESS_CPUTIME_ID, &t);
	fg_call_ends(self->id);
	if (err)
		return;
	had = fg_load_relaxed(&cpu_read_ns);
	used = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	fg_store_relaxed(&cpu_read_ns, used);
	if (used >= had) /* else it is the child of fork, which begins at 0 */
		used -= had;
	fg_budget_add(b, used < VAIN_PART * (uint64_t)GROUP_CAP_NS ? (int64_t)(used / VAIN_PART) :
								     GROUP_CAP_NS);
	wait = time_to_earn(wanted - fg_load_relaxed(&b->left_ns), used,
			    now - fg_load_relaxed(&read_last_ns));
	fg_store_relaxed(&read_last_ns, now);
	took = fg_now_ns() - now;
	if (took > READ_MOST_NS)
		took = READ_MOST_NS;
	if (wait < took * READ_PART)
		wait = took * READ_PART;
	if (wait > READ_EVERY_NS)
		fg_store_relaxed(&read_next_ns, now + wait);
}

static uint32_t nr_groups(uint32_t cpus)
{
	uint32_t n = (cpus + GROUP_CPUS - 1) / GROUP_CPUS;

	return n < GROUPS ? n : GROUPS;
}

/* CPUs that are numbered in a row are in one group, or take turns in as many as are needed. */
static struct group *group_of(uint32_t cpu, uint32_t cpus, uint32_t *place)
{
	uint32_t n = nr_groups(cpus);

	*place = cpu / n % GROUP_CPUS;
	return &groups[cpu % n];
}

static uint32_t mark_of(uint32_t cpu, uint64_t now)
{
	return cpu << MARK_TIME_BITS | ((uint32_t)(now >> 10) & ((1u << MARK_TIME_BITS) - 1));
}

static bool is_fresh(uint32_t mark, uint64_t now)
{
	uint32_t age = (mark_of(0, now) - mark) & ((1u << MARK_TIME_BITS) - 1);

	return mark && age < MARK_NS >> 10;
}

/* Do so many CPUs of the group look that, with this one, all would?  Then none works. */
static bool is_crowded(const struct group *g, uint32_t cpu, uint32_t cpus, uint64_t now)
{
	uint32_t others = 0, all = cpus / nr_groups(cpus);

	for (uint32_t i = 0; i < GROUP_CPUS; i++) {
		uint32_t mark = fg_load_relaxed(&g->mark[i]);

		others += mark >> MARK_TIME_BITS != cpu && is_fresh(mark, now);
	}
	return others + 1 >= (all < GROUP_CPUS ? all : GROUP_CPUS);
}

enum fg_look_room fg_look_may_begin(struct fg_look *l, const struct fg_self *self, uint64_t now)
{
	uint32_t cpu = fg_load_relaxed(self->cpu), cpus = fg_cpus_allotted(), place;
	struct group *g;

	/* Without rseq (valgrind, emulators) nobody knows the CPU. */
	if (cpu >= FG_MAX_CPUS || cpus < 2 || fg_load_relaxed(&fg_policy_now) == FG_POLICY_BLOCK ||
	    now < fg_load_relaxed(&no_looks_until_ns) || fg_displaces(self))
		return FG_LOOK_NO_ROOM;
	g = group_of(cpu, cpus, &place);
	if (fg_budget_left(&g->budget, GROUP_CAP_NS) < (int64_t)l->most_ns) {
		put_in(&g->budget, self, now, (int64_t)l->most_ns);
		if (fg_budget_left(&g->budget, GROUP_CAP_NS) < (int64_t)l->most_ns)
			return FG_LOOK_NO_BUDGET;
	}
	l->mark = &g->mark[place];
	l->late = is_crowded(g, cpu, cpus, now);
	if (!l->late)
		fg_store_relaxed(l->mark, mark_of(cpu, now));
	return FG_LOOK;
}

static void yield(struct fg_look *l, const struct fg_self *self)
{
	if (!fg_call_begins(self->id))
		return;
	fg_syscall6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	fg_call_ends(self->id);
	l->has_yielded = true;
	l->yielded_ns = fg_now_ns();
}

bool fg_look_goes_on(struct fg_look *l, const struct fg_self *self, uint64_t now)
{
	uint32_t cpu = fg_load_relaxed(self->cpu), cpus = fg_cpus_allotted(), place;
	struct group *g;
	uint64_t away;

	if (!l->clock_ns)
		l->clock_ns = l->began_ns = l->yielded_ns = now;
	away = now - l->clock_ns;
	if (away > AWAY_NS) {
		if (away > FG_AWAY_MOST_NS)
			away = FG_AWAY_MOST_NS;
		fg_store_relaxed(&no_looks_until_ns, now + away * AWAY_FACTOR);
		return false;
	}
	if (now - l->began_ns >= l->most_ns || fg_displaces(self) || cpu >= FG_MAX_CPUS)
		return false;
	l->clock_ns = now;
	g = group_of(cpu, cpus, &place);
	/*
	 * Two that hand something to each other may both look for a moment: one has not seen yet
	 * what the other has done.
	 */
	if (l->late && now > l->began_ns) {
		if (is_crowded(g, cpu, cpus, now))
			return false;
		l->late = false;
	}
	l->mark = &g->mark[place];
	if (!l->late)
		fg_store_relaxed(l->mark, mark_of(cpu, now));
	if (l->yields && now - l->yielded_ns >= YIELD_EVERY_NS)
		yield(l, self);
	return true;
}

/* A mark of the CPU that the thread was on before stays till it is old. */
void fg_look_ends(struct fg_look *l)
{
	if (!l->late)
		fg_store_relaxed(l->mark, 0);
}

void fg_look_earned(const struct fg_self *self, int64_t ns)
{
	uint32_t cpu = fg_load_relaxed(self->cpu), place;

	if (cpu < FG_MAX_CPUS)
		fg_budget_add(&group_of(cpu, fg_cpus_allotted(), &place)->budget, ns);
}

/* ---- what a sleep costs ------------------------------------------------------------ */

/*
 * The waiter's half of a sleep, smoothed.  At first, and at the least and the most, what was
 * seen on 2-CPU VMs and is thinkable elsewhere.
 */
#define SLEEP_FIRST_NS 1500u
#define SLEEP_LEAST_NS 500u
#define SLEEP_MOST_NS  6000u
#define SMOOTH	       8

static uint32_t sleep_ns = SLEEP_FIRST_NS;

/*
 * With what it costs the waker, by the CPU time of hand-overs whose threads sleep.  Taken for twice
 * as long, rings of four threads cost 10 to 14 % of CPU time more (docs/design/experiments.md).
 */
static uint32_t whole_sleep(uint32_t waiters_half_ns)
{
	return waiters_half_ns * 13 / 10;
}

uint32_t fg_look_saves(void)
{
	return whole_sleep(fg_load_relaxed(&sleep_ns));
}

uint32_t fg_look_slept(uint64_t cpu_ns, bool woken)
{
	uint32_t had = fg_load_relaxed(&sleep_ns), ns;

	ns = cpu_ns > SLEEP_MOST_NS ? SLEEP_MOST_NS : (uint32_t)cpu_ns;
	if (!woken)
		return ns;
	if (ns < SLEEP_LEAST_NS)
		ns = SLEEP_LEAST_NS;
	fg_store_relaxed(&sleep_ns, (had * (SMOOTH - 1) + ns) / SMOOTH);
	return whole_sleep(ns);
}
