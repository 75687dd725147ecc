/* SPDX-License-Identifier: MIT */
/*
 * A thread that sleeps in its section and takes the lock again right after its release: the thread
 * that it wakes comes too late each time, and gets the lock all the same after some sections.
 * Counted, not timed; and by its attempts: beside other work it may come in one section of many.
 * It does sleep, since whoever waits for its turn on a busy CPU comes when it is long too late.
 */
#include "../tools/check.h"

#include "lock/lock.h"
#include "runtime/decide.h"

#define WAY_NS 50000u /* from the wake-up to the lock */
#define ENOUGH 2000   /* attempts; some 15 are usual */

static struct fg_lock l;
static int got, attempts;

static bool behind_owner(uint32_t flags)
{
	uint32_t w = fg_load_relaxed(&l.word);

	while (w & FG_WORD_ID)
		if (fg_cas_acq_rel(&l.word, &w, w | flags))
			return true;
	return false;
}

/* What a sleeper leaves in the word and does when it is woken. */
static void *waiter(void *arg)
{
	uint32_t flags = *(uint32_t *)arg, wakes = fg_load_acquire(&l.wakes);
	uint64_t since;

	for (;; wakes = fg_load_acquire(&l.wakes)) {
		if (behind_owner(flags))
			while (fg_load_acquire(&l.wakes) == wakes)
				fg_futex_wait(&l.wakes, wakes, FG_FUTEX_ANY, NULL);
		since = fg_now_ns();
		while (fg_now_ns() - since < WAY_NS)
			;
		if (_fg_trylock(&l))
			break;
		ADD(attempts, 1);
	}
	STORE(got, 1);
	/* the rest goes with the release */
	__atomic_fetch_and(&l.word, ~FG_WORD_DESIGNATED, __ATOMIC_RELAXED);
	_fg_unlock(&l);
	return NULL;
}

static void comes_in_the_end(uint32_t flags)
{
	pthread_t t;

	STORE(got, 0);
	STORE(attempts, 0);
	_fg_lock(&l);
	t = start(waiter, &flags);
	UNTIL(fg_load_relaxed(&l.word) & FG_WORD_WAITERS);
	while (!LOAD(got) && LOAD(attempts) < ENOUGH) {
		sleep_us(300);
		_fg_unlock(&l);
		_fg_lock(&l);
	}
	CHECK(LOAD(got));
	_fg_unlock(&l);
	join(t);
	CHECK_EQ(l.word, 0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_DEFAULT);
	comes_in_the_end(FG_WORD_WAITERS);
	comes_in_the_end(FG_WORD_WAITERS | FG_WORD_DESIGNATED);
	comes_in_the_end(FG_WORD_WAITERS | FG_WORD_DESIGNATED | FG_WORD_SPINNER);
	return 0;
}
