/* SPDX-License-Identifier: MIT */
/*
 * The limit of a sleep for a lock grows by the time that a thread has slept, and not by how often
 * it has been woken: one that others have woken in vain ten times within some ms still finds a lock
 * that was freed without a wake-up by its first check, and not seconds later.
 */
#include "../tools/check.h"

#include "lock/lock_paths.h"
#include "runtime/decide.h"

#define IN_VAIN	 10
#define FIRST_NS 8000000u /* PERIODIC_NS */

static struct fg_lock l;
static unsigned sleeps;
static uint64_t longest;

void __real_fg_deadline_in(struct fg_deadline *deadline, uint64_t ns);
void __wrap_fg_deadline_in(struct fg_deadline *deadline, uint64_t ns);
void __wrap_fg_deadline_in(struct fg_deadline *deadline, uint64_t ns)
{
	if (ns > LOAD(longest))
		STORE(longest, ns);
	__real_fg_deadline_in(deadline, ns);
	ADD(sleeps, 1);
}

static void *sleep_for_it(void *arg)
{
	_fg_lock(&l);
	_fg_unlock(&l);
	return arg;
}

int main(int argc, char **argv)
{
	uint64_t began, limit;
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 20);
	fg_policy_set(FG_POLICY_BLOCK);
	_fg_lock(&l);
	began = fg_now_ns();
	t = start(sleep_for_it, NULL);
	for (unsigned i = 1; i <= IN_VAIN; i++) {
		/* It is on its way to sleep: a release, and another lock of the same thread. */
		UNTIL(LOAD(sleeps) >= i);
		__atomic_add_fetch(&l.wakes, 1, __ATOMIC_SEQ_CST);
		fg_futex_wake(&l.wakes, 1, FG_FUTEX_ANY);
	}
	UNTIL(LOAD(sleeps) > IN_VAIN);
	/* On a slow machine its own checks have come in between, for which it has slept. */
	limit = LOAD(longest);
	CHECK(limit <= FIRST_NS || limit <= 4 * (fg_now_ns() - began));
	_fg_unlock(&l);
	join(t);
	return 0;
}
