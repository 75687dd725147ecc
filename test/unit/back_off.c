/* SPDX-License-Identifier: MIT */
/*
 * Who goes to sleep for a lock whose line takes as long to come as from a row of dozens sleeps for
 * a time first, and does not touch the word meanwhile; as soon as the line comes at once it sleeps
 * for the lock.  Not with a deadline, nor where so long cannot be a row: with few CPUs.
 */
#include "../tools/check.h"

#include "lock/lock.h"
#include "runtime/decide.h"

static struct fg_lock l;
static uint32_t row_ns, cpus, sleeper, with_deadline;
static __thread uint64_t waits_at; /* on the waiter's own clock; 0: it does not wait */

/* Of the waiter each reading is late by a row (linked with --wrap). */
uint64_t __real_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void)
{
	return waits_at ? waits_at += LOAD(row_ns) : __real_fg_now_ns();
}

uint32_t __wrap_fg_cpus(void);
uint32_t __wrap_fg_cpus(void)
{
	return LOAD(cpus);
}

static void *wait_for_it(void *arg)
{
	struct fg_deadline deadline;

	STORE(sleeper, fg_self()->id);
	fg_deadline_in(&deadline, 3600000000000);
	waits_at = fg_now_ns();
	CHECK_EQ(_fg_lock_slow(&l, LOAD(with_deadline) ? &deadline : NULL), 0);
	waits_at = 0;
	_fg_unlock(&l);
	return arg;
}

static uint32_t sleeps(void)
{
	return fg_load_relaxed(&fg_slot_look(fg_id_index(LOAD(sleeper)))->stats[FG_SLOT_PARKS]);
}

static pthread_t waiter(uint32_t ns, uint32_t on, bool timed)
{
	STORE(sleeper, 0);
	STORE(row_ns, ns);
	STORE(cpus, on);
	STORE(with_deadline, timed);
	_fg_lock(&l);
	return start(wait_for_it, NULL);
}

static void sleeps_for_the_lock(pthread_t t)
{
	UNTIL(LOAD(l.word) & FG_WORD_WAITERS);
	_fg_unlock(&l);
	join(t);
	CHECK_EQ(l.word & FG_WORD_ID, 0);
}

int main(int argc, char **argv)
{
	uint32_t before;
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 20);
	fg_policy_set(FG_POLICY_BLOCK);

	t = waiter(20000, 512, false);
	UNTIL(LOAD(sleeper));
	before = sleeps();
	UNTIL(sleeps() - before >= 5);
	CHECK_EQ(LOAD(l.word) & FG_WORD_WAITERS, 0);
	STORE(row_ns, 0);
	sleeps_for_the_lock(t);

	sleeps_for_the_lock(waiter(20000, 2, false));
	sleeps_for_the_lock(waiter(20000, 512, true));
	sleeps_for_the_lock(waiter(200000, 512, false)); /* it has lost its CPU */
	sleeps_for_the_lock(waiter(100, 512, false));
	return 0;
}
