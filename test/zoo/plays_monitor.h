/* SPDX-License-Identifier: MIT */
/*
 * For programs that have the library's own objects in them and play its monitor: one that lives
 * beats for as long as something is waited for.
 */
#ifndef ZOO_PLAYS_MONITOR_H
#define ZOO_PLAYS_MONITOR_H

#include "../tools/check.h"

#include <sched.h>

#include "runtime/policy.h"
#include "runtime/thread.h"
#include "sys/clock.h"

static struct fg_counters counters;
static bool alive;

static void monitor(bool lives)
{
	alive = lives;
	STORE(counters.heartbeat_ns, fg_now_ns());
	fg_policy_monitor(lives ? &counters : NULL, 1);
}

static void beat(void)
{
	if (alive)
		STORE(counters.heartbeat_ns, fg_now_ns());
	sched_yield();
}

#define AWAIT(what)     \
	do {            \
		beat(); \
	} while (!(what))

#endif
