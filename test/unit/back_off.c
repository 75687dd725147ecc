/* SPDX-License-Identifier: MIT */
/*
 * Who goes to sleep for a lock whose line takes as long to come as from a row of dozens sleeps for
 * a time first, some times, before it sets anything in the word.  Not with a deadline, nor where so
 * long cannot be a row: with few CPUs, or because it is longer than that of all.
 */
#include "../tools/check.h"

#include "lock/lock.h"
#include "runtime/decide.h"

#define ROWS_MOST 8 /* lock_wait.c */

static struct fg_lock l;
static struct fg_counters counters = {.heartbeat_ns = UINT64_MAX};
static uint32_t row_ns, with_deadline;
static int slept_before;	   /* how often, when it has said in the word that it sleeps */
static __thread uint64_t waits_at; /* on the waiter's own clock; 0: it does not wait */
static __thread uint32_t had;	   /* sleeps of threads that had its slot before */

/* Of the waiter each reading is late by a row (linked with --wrap). */
uint64_t __real_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void)
{
	if (!waits_at)
		return __real_fg_now_ns();
	if (LOAD(slept_before) < 0 && LOAD(l.word) & FG_WORD_WAITERS)
		STORE(slept_before, (int)(fg_self()->slot->stats[FG_SLOT_PARKS] - had));
	return waits_at += LOAD(row_ns);
}

static void *wait_for_it(void *arg)
{
	struct fg_deadline deadline;

	fg_deadline_in(&deadline, 3600000000000);
	had = fg_self()->slot->stats[FG_SLOT_PARKS];
	waits_at = fg_now_ns();
	CHECK_EQ(_fg_lock_slow(&l, LOAD(with_deadline) ? &deadline : NULL), 0);
	waits_at = 0;
	_fg_unlock(&l);
	return arg;
}

/* How often a waiter has slept for a time when it sleeps for the lock. */
static int backs_off(uint32_t ns, uint32_t cpus, bool timed)
{
	pthread_t t;

	row_ns = ns;
	counters.online_cpus = cpus;
	with_deadline = timed;
	slept_before = -1;
	_fg_lock(&l);
	t = start(wait_for_it, NULL);
	UNTIL(LOAD(slept_before) >= 0);
	_fg_unlock(&l);
	join(t);
	CHECK_EQ(l.word & FG_WORD_ID, 0);
	return slept_before;
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 20);
	fg_policy_set(FG_POLICY_BLOCK);
	fg_policy_monitor(&counters, 1);

	CHECK_EQ(backs_off(20000, 512, false), ROWS_MOST);
	CHECK_EQ(backs_off(20000, 32, false), 0);
	CHECK_EQ(backs_off(20000, 512, true), 0);   /* with a deadline */
	CHECK_EQ(backs_off(200000, 512, false), 0); /* it has lost its CPU */
	CHECK_EQ(backs_off(100, 512, false), 0);    /* the line comes at once */
	return 0;
}
