/* SPDX-License-Identifier: MIT */
#include "runtime/policy.h"

#include "arch/arch.h"
#include "sys/atomic.h"
#include "sys/clock.h"
#include "sys/filter.h"

enum fg_policy fg_policy = FG_POLICY_DEFAULT;
enum fg_policy fg_policy_now = FG_POLICY_FALLBACK;
uint32_t fg_domain = FG_DOMAIN_ALL;
uint32_t fg_slices;
uint64_t fg_spin_ns = 3000; /* of the policy spin-then-park; not varied */

static const struct fg_counters no_counters;
const struct fg_counters *fg_counters = &no_counters;

/*
 * Our clock may not be the monitor's: a time namespace shifts it.  So what tells is how
 * far the heartbeat has fallen behind our clock since an earlier look.  Both as of
 * that look in one word, in units of 2^20 ns: clock << 32 | heartbeat.  0: not looked yet.
 */
static uint64_t looked;

static uint32_t unit(uint64_t ns)
{
	return (uint32_t)(ns >> 20);
}

/* `now` was read before, so that a thread that is held up in between takes nobody for dead. */
bool fg_policy_monitor_is_gone(uint64_t now)
{
	uint64_t then = fg_load_relaxed(&looked);
	uint64_t beat = fg_load_relaxed(&fg_counters->heartbeat_ns);
	int32_t late = (int32_t)(unit(now) - (uint32_t)(then >> 32) -
				 (unit(beat) - (uint32_t)then));

	if (!beat) /* an orderly end */
		return true;
	if (then && late > (int32_t)unit(FG_HEARTBEAT_STALE_NS))
		return true;
	/*
	 * The clock is read again, since it may not be earlier than the heartbeat that it goes
	 * with.
	 */
	if (!then || late < 0 || unit(beat) != (uint32_t)then)
		fg_store_relaxed(&looked, (uint64_t)unit(fg_now_ns()) << 32 | unit(beat));
	return false;
}

void fg_policy_set(enum fg_policy policy)
{
	fg_policy = policy;
	fg_policy_monitor(fg_counters == &no_counters ? NULL : fg_counters, fg_domain);
}

void fg_policy_monitor(const struct fg_counters *counters, uint32_t domain)
{
	bool wants_monitor = fg_policy == FG_POLICY_DEFAULT || fg_policy == FG_POLICY_PAPER;

	fg_store_relaxed(&looked, 0);
	fg_store_relaxed(&fg_domain, domain < FG_MAX_DOMAINS ? domain : FG_DOMAIN_ALL);
	fg_store_release(&fg_counters, counters ? counters : &no_counters);
	/* Without a clock to go by nobody spins (sys/filter.h). */
	if (fg_unlikely(fg_clock_is_coarse) && fg_policy != FG_POLICY_SPIN)
		fg_store_release(&fg_policy_now, FG_POLICY_BLOCK);
	else
		fg_store_release(&fg_policy_now,
				 wants_monitor && !counters ? FG_POLICY_FALLBACK : fg_policy);
}

bool fg_policy_has_monitor(void)
{
	return fg_load_relaxed(&fg_counters) != &no_counters;
}

bool fg_policy_anybody_preempted(void)
{
	const struct fg_counters *c = fg_load_relaxed(&fg_counters);
	uint32_t domain = c->domains_only ? fg_load_relaxed(&fg_domain) : FG_DOMAIN_ALL;
	bool anybody = fg_load_relaxed(&c->dom[domain].preempted) != 0;

	/* A domain counts threads with an affinity by the CPUs that they may use. */
	for (uint32_t g = 0; c->domains_only && !anybody && g < FG_CPU_GROUPS; g++)
		anybody = fg_load_relaxed(&c->usable[domain][g]) != 0;
	return anybody;
}

void fg_policy_clock_changed(void)
{
	fg_policy_set(fg_policy);
}
