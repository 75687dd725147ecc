/* SPDX-License-Identifier: MIT */
/*
 * The futex paper's ulocks with convoy avoidance ("regular"): a release makes the lock available to
 * anybody and wakes one waiter, which competes again.  Franke, Russell, Kirkwood, OLS 2002, section
 * 3.
 *
 * The word counts the waiters that no release has posted for yet, so that a release without any
 * needs no system call; the tokens are the paper's semaphore, which remembers wake-ups that come
 * early.
 */
#include <errno.h>

#include "zoo/zoo.h"

#define HELD   1u
#define WAITER 2u

static uint32_t *word_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static uint32_t *tokens_of(struct zoo_mutex *m)
{
	return &m->s.u32[1];
}

static bool trylock(struct zoo_mutex *m)
{
	uint32_t word = fg_load_relaxed(word_of(m));

	while (!(word & HELD))
		if (fg_cas_acquire(word_of(m), &word, word | HELD))
			return true;
	return false;
}

/* Takes it, or is one more waiter: in one step, or a release in between would not see me. */
static bool take_or_queue(struct zoo_mutex *m)
{
	uint32_t word = fg_load_relaxed(word_of(m)), want;

	do {
		want = word & HELD ? word + WAITER : word | HELD;
	} while (!fg_cas_acquire(word_of(m), &word, want));
	return !(word & HELD);
}

static bool sleep_for_token(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	uint32_t tokens;

	for (;;) {
		tokens = fg_load_relaxed(tokens_of(m));
		while (tokens)
			if (fg_cas_acquire(tokens_of(m), &tokens, tokens - 1))
				return true;
		if (zoo_wait(m, tokens_of(m), 0, deadline) == -ETIMEDOUT)
			return false;
	}
}

/* False: a release has counted on me; its token comes, and the lock may be free. */
static bool give_up(struct zoo_mutex *m)
{
	uint32_t word = fg_load_relaxed(word_of(m));

	while (word >= WAITER)
		if (fg_cas_relaxed(word_of(m), &word, word - WAITER))
			return true;
	return false;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	while (!take_or_queue(m)) {
		if (sleep_for_token(m, deadline))
			continue;
		if (give_up(m))
			return false;
		sleep_for_token(m, NULL);
		return trylock(m);
	}
	return true;
}

static bool lock_spinning(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	return zoo_spin_for(zoo_spin_ns_of(m), trylock(m)) || lock(m, deadline);
}

static void unlock(struct zoo_mutex *m)
{
	uint32_t word = fg_load_relaxed(word_of(m)), want;
	bool shared = zoo_is_shared(m);

	do {
		want = word & ~HELD;
		want -= want >= WAITER ? WAITER : 0;
	} while (!fg_cas_release(word_of(m), &word, want));
	if (word < WAITER)
		return;
	fg_add_release(tokens_of(m), 1);
	zoo_wake(tokens_of(m), 1, shared);
}

const struct zoo_lock zoo_ulock = {.lock = lock, .trylock = trylock, .unlock = unlock};
const struct zoo_lock zoo_ulockspin = {
    .lock = lock_spinning, .trylock = trylock, .unlock = unlock, .spins = true};
