/* SPDX-License-Identifier: MIT */
/*
 * When CPU time is rationed (fg_is_rationed): where the process has used up what its quota gives,
 * and not after a burst that the quota has room for, nor because whoever looked was kept off its
 * CPU in the middle of that, at whichever step.  And policy spin spins all the same.
 */
#include "../tools/check.h"

#include "lock/lock.h"
#include "runtime/cpus.h"
#include "runtime/decide.h"
#include "runtime/policy.h"
#include "sys/clock.h"
#include "sys/quota.h"

#define MS 1000000u

/* Linked with --wrap. */
static uint32_t quota = FG_QUOTA_CPU;
uint32_t __wrap_fg_quota(void);
uint32_t __wrap_fg_quota(void)
{
	return quota;
}

/*
 * The clock, and what the process has used; before the latter is read, or after, its reader is kept
 * off its CPU for so long.
 */
static uint64_t now_ns, used_ns, before_ns, after_ns;

uint64_t __real_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void)
{
	return now_ns ? now_ns : __real_fg_now_ns();
}

static void pass(uint64_t ns, uint64_t used)
{
	now_ns += ns;
	used_ns += used;
}

int __real_fg_clock_read(clockid_t clock, struct timespec *now);
int __wrap_fg_clock_read(clockid_t clock, struct timespec *now);
int __wrap_fg_clock_read(clockid_t clock, struct timespec *now)
{
	if (clock != CLOCK_PROCESS_CPUTIME_ID || !now_ns)
		return __real_fg_clock_read(clock, now);
	pass(before_ns, before_ns / 2);
	*now = (struct timespec){(time_t)(used_ns / 1000000000), (long)(used_ns % 1000000000)};
	pass(after_ns, after_ns / 2);
	return 0;
}

static uint32_t end;

static void *be_there(void *arg)
{
	fg_self();
	UNTIL(LOAD(end));
	return arg;
}

/* So many ms, in each of which so much is used; was it rationed in one of them? */
static bool rationed_in(uint32_t ms, uint64_t used)
{
	bool rationed = false;

	for (uint32_t i = 0; i < ms; i++) {
		pass(MS, used);
		rationed |= fg_is_rationed();
	}
	return rationed;
}

/* No rationing is left from before. */
static void begin(void)
{
	pass(100ull * 1000 * MS, 0);
	CHECK(!fg_is_rationed());
	CHECK(!rationed_in(200, 0));
}

/* A thread that waits in the queue, spinning. */
static bool spins(enum fg_policy policy)
{
	struct fg_wait w = {.self = fg_self(), .follows = true};

	fg_policy_set(policy);
	return fg_decide(&w) == FG_SPIN;
}

int main(int argc, char **argv)
{
	pthread_t threads[3];

	(void)argc;
	check_begin(argv[0], 20);
	if (fg_cpus() < 2)
		check_skip("one CPU");
	fg_self();
	for (int i = 0; i < 3; i++)
		threads[i] = start(be_there, NULL);
	UNTIL(fg_threads_now() >= 4);
	now_ns = fg_now_ns();
	used_ns = MS;

	/* All of it, and more where it is not held back yet. */
	begin();
	CHECK(rationed_in(250, MS));
	begin();
	CHECK(rationed_in(50, 4 * (uint64_t)MS));
	CHECK(spins(FG_POLICY_SPIN));
	CHECK(!spins(FG_POLICY_DEFAULT));
	fg_policy_set(FG_POLICY_DEFAULT);

	/* Half of it; also if it comes in bursts. */
	begin();
	CHECK(!rationed_in(1000, MS / 2));
	begin();
	for (int i = 0; i < 20; i++) {
		CHECK(!rationed_in(10, 4 * (uint64_t)MS));
		CHECK(!rationed_in(90, 0));
	}

	/* Half of it, by who is kept off its CPU at each look. */
	for (int after = 0; after < 2; after++) {
		begin();
		*(after ? &after_ns : &before_ns) = 400 * MS;
		CHECK(!rationed_in(1000, MS / 2));
		before_ns = after_ns = 0;
	}

	/* All of a quarter of a CPU, and half of two but for a little. */
	quota = FG_QUOTA_CPU / 4;
	fg_cpus_setup();
	begin();
	CHECK(rationed_in(250, MS / 4));
	quota = 2 * FG_QUOTA_CPU - 1;
	fg_cpus_setup();
	begin();
	CHECK(!rationed_in(1000, MS));

	now_ns = 0;
	STORE(end, 1);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
