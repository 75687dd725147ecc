/* SPDX-License-Identifier: MIT */
/*
 * usema_down() and usema_up(), the fair ulocks: one atomic operation on a count, and for those that
 * must wait a semaphore in the kernel, which remembers wake-ups that come early.  The lock is
 * handed over: what was posted belongs to somebody who waits.  Franke, Russell, Kirkwood, OLS 2002,
 * section 3.
 *
 * The paper's count is 1 - busy.  Its semaphore is a word of tokens and a futex here.
 */
#include <errno.h>

#include "zoo/zoo.h"

static uint32_t *busy_of(struct zoo_mutex *m)
{
	return &m->s.u32[0]; /* the owner and all that wait */
}

/*
 * Tokens, and above them the threads that sleep or are about to: in one word, since a thread that
 * gives the lock away by a token may look at it no more.
 */
#define ONE_ASLEEP (1ull << 32)

static uint64_t *sema_of(struct zoo_mutex *m)
{
	return &m->s.u64[1];
}

/* The half with the tokens, on which they sleep. */
static uint32_t *tokens_of(struct zoo_mutex *m)
{
	return &m->s.u32[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 3];
}

static bool take_token(struct zoo_mutex *m)
{
	uint64_t sema = __atomic_load_n(sema_of(m), __ATOMIC_RELAXED);

	while ((uint32_t)sema)
		if (__atomic_compare_exchange_n(sema_of(m), &sema, sema - 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
	return false;
}

static bool sleep_for_token(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	int r = 0;

	while (!take_token(m)) {
		if (r == -ETIMEDOUT)
			return false;
		/* Either up() sees me, or the kernel sees its token. */
		__atomic_fetch_add(sema_of(m), ONE_ASLEEP, __ATOMIC_RELAXED);
		r = zoo_wait(m, tokens_of(m), 0, deadline);
		__atomic_fetch_sub(sema_of(m), ONE_ASLEEP, __ATOMIC_RELAXED);
	}
	return true;
}

/* False: I have been counted for a token already. */
static bool give_up(struct zoo_mutex *m)
{
	uint32_t busy = fg_load_relaxed(busy_of(m));

#ifdef FG_BROKEN_ZOO /* a test proves that the tests notice */
	fg_add_relaxed(busy_of(m), -1u);
	return true;
#endif
	while (busy > 1)
		if (fg_cas_relaxed(busy_of(m), &busy, busy - 1))
			return true;
	return false;
}

static bool trylock(struct zoo_mutex *m)
{
	uint32_t free = 0;

	return fg_cas_acquire(busy_of(m), &free, 1);
}

static bool down(struct zoo_mutex *m, const struct fg_deadline *deadline, bool spin)
{
	/* Acquire: pairs with up's, when it has left nobody. */
	if (!__atomic_fetch_add(busy_of(m), 1, __ATOMIC_ACQUIRE))
		return true;
	if (spin && zoo_spin_for(zoo_spin_ns_of(m), take_token(m)))
		return true;
	return sleep_for_token(m, deadline) || (!give_up(m) && sleep_for_token(m, NULL));
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	return down(m, deadline, false);
}

static bool lock_spinning(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	return down(m, deadline, true);
}

static void unlock(struct zoo_mutex *m)
{
	bool shared = zoo_is_shared(m);

	if (__atomic_fetch_sub(busy_of(m), 1, __ATOMIC_RELEASE) == 1)
		return;
	/* Spinners need no system call. */
	if (__atomic_fetch_add(sema_of(m), 1, __ATOMIC_RELEASE) >= ONE_ASLEEP)
		zoo_wake(tokens_of(m), 1, shared);
}

const struct zoo_lock zoo_usema = {.lock = lock, .trylock = trylock, .unlock = unlock};
const struct zoo_lock zoo_usemaspin = {
    .lock = lock_spinning, .trylock = trylock, .unlock = unlock, .spins = true};
