/* SPDX-License-Identifier: MIT */
/*
 * The single-word reader-writer lock of the ulocks.  Franke, Russell, Kirkwood, OLS 2002, section
 * 3:
 *
 *	bit  31      a writer has it
 *	bits 16..30  writers that wait
 *	bits 0..15   readers: those that wait while a writer has it, else those that have it
 *
 * and two semaphores to wait on, which remember posts.  A waiter is let in by a thread that leaves,
 * which counts it as an owner before it posts.  65,536 readers, or 32,768 waiting writers, are too
 * many: EAGAIN.
 */
#include <errno.h>

#include "zoo/rwlock.h"

#define WRITER	0x80000000u
#define WAITS	0x00010000u
#define WRITERS 0x7fff0000u
#define READERS 0x0000ffffu

static uint32_t *word_of(struct zoo_rwlock *l)
{
	return &l->s[0];
}

/* Tokens: for readers, for writers. */
static uint32_t *read_tokens(struct zoo_rwlock *l)
{
	return &l->s[1];
}

static uint32_t *write_tokens(struct zoo_rwlock *l)
{
	return &l->s[2];
}

static bool take_token(struct zoo_rwlock *l, uint32_t *tokens, const struct fg_deadline *deadline)
{
	uint32_t n;

	for (;;) {
		n = fg_load_relaxed(tokens);
		while (n)
			if (fg_cas_acquire(tokens, &n, n - 1))
				return true;
		if (zoo_rwlock_wait(l, tokens, 0, deadline) == -ETIMEDOUT)
			return false;
	}
}

static void post(uint32_t *tokens, uint32_t n, bool shared)
{
	fg_add_release(tokens, n);
	zoo_rwlock_wake(tokens, (int)n, shared);
}

static bool tryrd(struct zoo_rwlock *l)
{
	uint32_t word = fg_load_relaxed(word_of(l));

	while (!(word & WRITER) && (word & READERS) != READERS)
		if (fg_cas_acquire(word_of(l), &word, word + 1))
			return true;
	return false;
}

static bool rdlock(struct zoo_rwlock *l, const struct fg_deadline *deadline)
{
	uint32_t word = fg_load_relaxed(word_of(l));

	do {
		if ((word & READERS) == READERS)
			return zoo_rwlock_too_many();
	} while (!fg_cas_acquire(word_of(l), &word, word + 1));
	if (!(word & WRITER) || take_token(l, read_tokens(l), deadline))
		return true;
	/* Once I have been let in, no writer has it before I leave. */
	word = fg_load_relaxed(word_of(l));
	while (word & WRITER)
		if (fg_cas_relaxed(word_of(l), &word, word - 1))
			return false;
	return take_token(l, read_tokens(l), NULL);
}

/* Acquire: the last of the readers lets a writer in, which comes after all of them. */
static void rdunlock(struct zoo_rwlock *l)
{
	uint32_t word = fg_load_relaxed(word_of(l)), want;
	bool shared = zoo_rwlock_is_shared(l);

	do {
		want = word - 1;
		if (!(want & READERS) && want & WRITERS)
			want = (want - WAITS) | WRITER;
	} while (!fg_cas_acq_rel(word_of(l), &word, want));
	if (want & WRITER)
		post(write_tokens(l), 1, shared);
}

static bool trywr(struct zoo_rwlock *l)
{
	uint32_t free = 0;

	return fg_cas_acquire(word_of(l), &free, WRITER);
}

static bool wrlock(struct zoo_rwlock *l, const struct fg_deadline *deadline)
{
	uint32_t word = fg_load_relaxed(word_of(l)), want;

	do {
		if ((word & WRITERS) == WRITERS)
			return zoo_rwlock_too_many();
		want = word & (WRITER | READERS) ? word + WAITS : word | WRITER;
	} while (!fg_cas_acquire(word_of(l), &word, want));
	if (!(word & (WRITER | READERS)) || take_token(l, write_tokens(l), deadline))
		return true;
	/* Those that wait are all alike: while one is counted, it may as well be me. */
	word = fg_load_relaxed(word_of(l));
	while (word & WRITERS)
		if (fg_cas_relaxed(word_of(l), &word, word - WAITS))
			return false;
	return take_token(l, write_tokens(l), NULL);
}

static void wrunlock(struct zoo_rwlock *l)
{
	uint32_t word = fg_load_relaxed(word_of(l)), want;
	bool shared = zoo_rwlock_is_shared(l);

	do {
		want = word & READERS ? word & ~WRITER : word & WRITERS ? word - WAITS : 0;
	} while (!fg_cas_release(word_of(l), &word, want));
	if (word & READERS)
		post(read_tokens(l), word & READERS, shared);
	else if (word & WRITERS)
		post(write_tokens(l), 1, shared);
}

const struct zoo_rwlock_ops zoo_ulockrw = {rdlock, tryrd, rdunlock, wrlock, trywr, wrunlock};
