/* SPDX-License-Identifier: MIT */
#include "runtime/look.h"

#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/cpus.h"
#include "runtime/policy.h"
#include "sys/clock.h"
#include "sys/filter.h"
#include "sys/quota.h"

/* Of the time that passes, for looks in vain: 3 % of a CPU for each group.  Not varied. */
#define FG_BUDGET_PART 32

/* What a group may have saved up. */
#define GROUP_CAP_NS (64 * (int64_t)FG_LOOK_NS)

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

int64_t fg_budget_left(struct fg_budget *b, int64_t cap, uint64_t now)
{
	uint64_t at = fg_load_relaxed(&b->at_ns);
	int64_t have = fg_load_relaxed(&b->left_ns), more;

	/* Each unit of it is put in once: by whoever moves the time on. */
	if (now > at && now - at > 1000 * FG_BUDGET_PART &&
	    __atomic_compare_exchange_n(&b->at_ns, &at, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		more = (int64_t)((now - at) / FG_BUDGET_PART);
		have = more > cap - have ? cap : have + more;
		fg_store_relaxed(&b->left_ns, have);
	} else if (have > cap) {
		have = cap;
		fg_store_relaxed(&b->left_ns, have);
	}
	return have;
}

void fg_budget_add(struct fg_budget *b, int64_t ns)
{
	fg_add_relaxed(&b->left_ns, ns);
}

/*
 * Where time on the CPUs is rationed, looking eats what working needs.  As at the start: a quota
 * that comes later is not seen.
 */
static uint32_t quota = FG_QUOTA_NONE;

void fg_look_setup(void)
{
	fg_filter_setup(fg_policy_clock_changed);
	if (!fg_call_begins(0))
		return;
	quota = fg_quota_cpus();
	fg_call_ends(0);
}

static uint32_t cpus_for_us(void)
{
	uint32_t cpus = fg_cpus();

	return cpus < quota ? cpus : quota;
}

/* CPUs that are numbered in a row are in one group, or take turns in as many as are needed. */
static struct group *group_of(uint32_t cpu, uint32_t cpus, uint32_t *place)
{
	uint32_t n = (cpus + GROUP_CPUS - 1) / GROUP_CPUS;

	if (n > GROUPS)
		n = GROUPS;
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
	uint32_t others = 0;

	for (uint32_t i = 0; i < GROUP_CPUS; i++) {
		uint32_t mark = fg_load_relaxed(&g->mark[i]);

		others += mark >> MARK_TIME_BITS != cpu && is_fresh(mark, now);
	}
	return others + 1 >= (cpus < GROUP_CPUS ? cpus : GROUP_CPUS);
}

enum fg_look_room fg_look_may_begin(const struct fg_self *self, uint64_t most_ns, uint64_t now)
{
	uint32_t cpu = fg_load_relaxed(self->cpu), cpus = cpus_for_us(), place;
	struct group *g;

	/* Without rseq (valgrind, emulators) nobody knows the CPU. */
	if (cpu >= FG_MAX_CPUS || cpus < 2 || fg_load_relaxed(&fg_policy_now) == FG_POLICY_BLOCK ||
	    now < fg_load_relaxed(&no_looks_until_ns) || fg_displaces(self))
		return FG_LOOK_NO_ROOM;
	g = group_of(cpu, cpus, &place);
	if (fg_budget_left(&g->budget, GROUP_CAP_NS, now) < (int64_t)most_ns)
		return FG_LOOK_NO_BUDGET;
	if (is_crowded(g, cpu, cpus, now))
		return FG_LOOK_NO_ROOM;
	fg_store_relaxed(&g->mark[place], mark_of(cpu, now));
	return FG_LOOK;
}

static void yield(struct fg_look *l, const struct fg_self *self)
{
	if (!fg_call_begins(self->id))
		return;
	fg_syscall6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	fg_call_ends(self->id);
	l->yielded_ns = fg_now_ns();
}

bool fg_look_goes_on(struct fg_look *l, const struct fg_self *self, uint64_t now)
{
	uint32_t cpu = fg_load_relaxed(self->cpu), place;
	struct group *g;

	if (!l->clock_ns)
		l->clock_ns = l->began_ns = l->yielded_ns = now;
	if (now - l->clock_ns > AWAY_NS) {
		fg_store_relaxed(&no_looks_until_ns, now + (now - l->clock_ns) * AWAY_FACTOR);
		return false;
	}
	if (now - l->began_ns >= l->most_ns || fg_displaces(self) || cpu >= FG_MAX_CPUS)
		return false;
	l->clock_ns = now;
	g = group_of(cpu, cpus_for_us(), &place);
	fg_store_relaxed(&g->mark[place], mark_of(cpu, now));
	if (l->yields && now - l->yielded_ns >= YIELD_EVERY_NS)
		yield(l, self);
	return true;
}

void fg_look_earned(const struct fg_self *self, int64_t ns)
{
	uint32_t cpu = fg_load_relaxed(self->cpu), place;

	if (cpu < FG_MAX_CPUS)
		fg_budget_add(&group_of(cpu, cpus_for_us(), &place)->budget, ns);
}
