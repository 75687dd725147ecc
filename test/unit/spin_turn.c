/* SPDX-License-Identifier: MIT */
/*
 * Who keeps a spinlock busy wakes a sleeper once a turn, and not at each release; and who was left
 * asleep gets the lock although nobody releases it any more.
 */
#include "../tools/check.h"

#include "lock/spin.h"
#include "lock/gate.h"
#include "runtime/policy.h"
#include "sys/clock.h"

/* Half of BUSY_NS: a gap that this test does not see as one may still be one to the lock. */
enum { BURSTS = 20, RELEASES = 2000, GAP_NS = 25000, TURN_NS = 1000000, THREADS = 2 };

static int32_t lock_ = FG_SPIN_FREE;
static long taken;

static void *wait_for_it(void *arg)
{
	_fg_spin_lock(&lock_, NULL);
	ADD(taken, 1);
	_fg_spin_unlock(&lock_);
	return arg;
}

static uint32_t wakes(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FG_SPIN_WAYS; i++)
		n += LOAD(_fg_spin_bucket(&lock_)->way[i].wakes);
	return n;
}

static bool all_sleep(void)
{
	return (LOAD(_fg_spin_bucket(&lock_)->sleepers) & FG_SPIN_SLEEPERS) == THREADS;
}

/*
 * Returns how many wake-ups the lock may have made: one each turn, and one while the sleeper that
 * watches is awake, which it is about as often.
 */
static uint64_t burst(void)
{
	uint64_t began = fg_now_ns(), last = began, now = began, gaps = 0;

	for (int i = 0; i < RELEASES && !LOAD(taken); i++) {
		_fg_spin_unlock(&lock_);
		_fg_spin_lock(&lock_, NULL);
		/* mostly held: whom it wakes finds it so, and sleeps again */
		for (int k = 0; k < 20; k++)
			now = fg_now_ns();
		gaps += now - last > GAP_NS;
		last = now;
	}
	return 3 + gaps + 2 * ((now - began) / TURN_NS);
}

int main(int argc, char **argv)
{
	long bursts = 0;

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_BLOCK);
	/* another lock's: all wait by the lock itself */
	_fg_gate(&lock_)->tag = ~_fg_gate_tag(&lock_);
	_fg_lock(_fg_gate(&lock_));
	for (int i = 0; i < BURSTS || (!bursts && i < 50 * BURSTS); i++) {
		pthread_t t[THREADS];
		uint32_t before;
		uint64_t most;

		STORE(taken, 0);
		_fg_spin_lock(&lock_, NULL);
		for (int k = 0; k < THREADS; k++)
			t[k] = start(wait_for_it, NULL);
		while (!all_sleep())
			sleep_us(100);
		sleep_us(200);
		before = wakes();
		most = burst();
		if (!LOAD(taken)) { /* else others released it, too */
			bursts++;
			CHECK(wakes() - before <= most);
		}
		_fg_spin_unlock(&lock_);
		for (int k = 0; k < THREADS; k++)
			join(t[k]);
	}
	CHECK(bursts > 0);
	printf("%ld bursts of %d had nobody else\n", bursts, RELEASES);
	return 0;
}
