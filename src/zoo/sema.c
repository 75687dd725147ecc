/* SPDX-License-Identifier: MIT */
/*
 * sema.h.  The kernel's semaphore of 2002, which remembers wake-ups that come early, is a word of
 * tokens and a futex, as in usema.c and ulock.c.
 */
#include "zoo/sema.h"

#include <errno.h>

#include "zoo/zoo.h"

enum { SHARED = 1, FAIR = 2 };

#define NONE	   0x80000000u /* fair: no unit is to be had, and nobody waits */
#define ONE_WAITER 0x00010000u
#define UNITS	   0x0000ffffu

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int zoo_sema_init(struct zoo_sema *s, uint32_t units, bool fair, bool shared)
{
	if (units > ZOO_SEMA_MAX)
		return EINVAL;
	*s = (struct zoo_sema){.word = fair ? NONE + units : units,
			       .flags = (fair ? FAIR : 0u) | (shared ? SHARED : 0u)};
	return 0;
}

static void take_token(struct zoo_sema *s)
{
	uint32_t tokens;

	for (;;) {
		tokens = fg_load_relaxed(&s->tokens);
		while (tokens)
			/* Acquire: pairs with post's. */
			if (fg_cas_acquire(&s->tokens, &tokens, tokens - 1))
				return;
		fg_count(fg_self(), FG_STAT_PARKS, 1);
		if (s->flags & SHARED)
			fg_futex_wait_shared(&s->tokens, 0, NULL);
		else
			fg_futex_wait(&s->tokens, 0, FG_FUTEX_ANY, NULL);
	}
}

static void post_token(struct zoo_sema *s)
{
	bool shared = s->flags & SHARED;

	fg_add_release(&s->tokens, 1);
	fg_count(fg_self(), FG_STAT_WAKEUPS, 1);
	if (shared)
		fg_futex_wake_shared(&s->tokens, 1);
	else
		fg_futex_wake(&s->tokens, 1, FG_FUTEX_ANY);
}

/* A unit, or I am one more that waits: in one step, or an up in between would not see me. */
static bool take_or_queue(struct zoo_sema *s)
{
	uint32_t word = fg_load_relaxed(&s->word);

	while (!fg_cas_acquire(&s->word, &word, word & UNITS ? word - 1 : word + ONE_WAITER))
		;
	return word & UNITS;
}

EXPORTED void zoo_sema_down(struct zoo_sema *s)
{
	if (!(s->flags & FAIR)) {
		while (!take_or_queue(s))
			take_token(s);
		return;
	}
	if (__atomic_fetch_sub(&s->word, 1, __ATOMIC_ACQUIRE) <= NONE)
		take_token(s); /* which is a unit */
}

EXPORTED bool zoo_sema_trydown(struct zoo_sema *s)
{
	uint32_t word = fg_load_relaxed(&s->word);

	while (s->flags & FAIR ? word > NONE : word & UNITS)
		if (fg_cas_acquire(&s->word, &word, word - 1))
			return true;
	return false;
}

EXPORTED void zoo_sema_up(struct zoo_sema *s)
{
	uint32_t word = fg_load_relaxed(&s->word), want;

	if (s->flags & FAIR) {
		if (__atomic_fetch_add(&s->word, 1, __ATOMIC_RELEASE) < NONE)
			post_token(s);
		return;
	}
	do {
		want = word + 1 - (word >= ONE_WAITER ? ONE_WAITER : 0);
	} while (!fg_cas_release(&s->word, &word, want));
	if (word >= ONE_WAITER)
		post_token(s);
}
