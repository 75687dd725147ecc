/* SPDX-License-Identifier: MIT */
/* What the tests of the companion scheduler share; they skip where the kernel has no sched_ext. */
#ifndef FG_TEST_SCHED_COMMON_H
#define FG_TEST_SCHED_COMMON_H

#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include "harness.h"
#include "monitor/scheduler.h"

static const struct fg_sched_calls *const calls = &fg_sched_module_calls;

static inline bool sched_is(const char *state)
{
	char line[32] = "";
	FILE *f = fopen("/sys/kernel/sched_ext/state", "re");

	CHECK(f && fgets(line, sizeof(line), f));
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return !strcmp(line, state);
}

static inline struct fg_sched *sched_open_or_skip(pid_t monitor)
{
	struct fg_sched_config cfg = {.monitor = monitor, .extension_ns = FG_SCHED_EXTENSION_NS};
	char why[600] = "";
	uint64_t until = fg_now_ns() + DEADLINE_S * 1000000000ull;
	struct fg_sched *s;
	int err;

	/* One that has just ended is there for a moment longer. */
	while ((err = calls->open(&s, &cfg, why, sizeof(why))) == -EBUSY && fg_now_ns() < until)
		usleep(100000);
	if (err == -EPERM || err == -ENOTSUP || err == -ENOSYS) {
		CHECK(*why && !strchr(why, '\n'));
		/* What is there and does not load is a failure. */
		if (fg_sched_preflight(why, sizeof(why)))
			skip("%s", why);
	}
	if (err)
		fail("open: %s: %s", strerror(-err), why);
	CHECK(sched_is("enabled"));
	return s;
}

/*
 * It has not ended by itself.  An emulated machine that was stopped for a minute, because its host
 * measures, finds its watchdogs late, and says so.
 */
static inline void check_alive(const struct fg_sched *s)
{
	struct fg_sched_end end;
	bool over = calls->ended(s, &end);

	if (over && (strstr(end.message, "watchdog failed to check in") ||
		     strstr(end.message, "soft lockup")))
		skip("the machine stood still: %s", end.message);
	if (over)
		fail("the kernel has ended it: %s: %s", end.reason, end.message);
	CHECK(sched_is("enabled"));
}

static inline struct fg_sched_counts counts_of(const struct fg_sched *s)
{
	struct fg_sched_counts c;

	calls->counts(s, &c);
	return c;
}

static inline double seconds_of(clockid_t clock)
{
	struct timespec t;

	CHECK(!clock_gettime(clock, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
