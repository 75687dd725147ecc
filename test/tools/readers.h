/* SPDX-License-Identifier: MIT */
/*
 * Two threads that read a lock in turn, until its readers are where those of a lock are that is
 * only read.  One thread that reads by itself has nothing to gain there, and may stay elsewhere.
 */
#ifndef READERS_H
#define READERS_H

#include <stdbool.h>

#include "futex.h"

/* So that they have lost by it what the table of readers may have cost a writer. */
enum { READERS_TURNS = 700 };

static struct {
	pthread_t partner;
	pthread_rwlock_t *lock;
	uint32_t turn; /* odd: the partner's */
	bool ended;
} readers;

static inline void readers_read(void)
{
	CHECK_EQ(pthread_rwlock_rdlock(readers.lock), 0);
	CHECK_EQ(pthread_rwlock_unlock(readers.lock), 0);
}

static inline void readers_next(void)
{
	STORE(readers.turn, LOAD(readers.turn) + 1);
	futex_wake(&readers.turn, 1);
}

static inline void readers_await(uint32_t odd)
{
	uint32_t now;

	while (((now = LOAD(readers.turn)) & 1) != odd)
		futex_wait(&readers.turn, now);
}

static inline void *readers_partner(void *arg)
{
	for (;;) {
		readers_await(1);
		if (readers.ended)
			return arg;
		readers_read();
		readers_next();
	}
}

/* The partner is the same thread until readers_end(): none comes and goes with a lock's readers. */
static inline void readers_begin(pthread_rwlock_t *lock)
{
	readers.lock = lock;
	readers.ended = false;
	readers.turn = 0;
	readers.partner = start(readers_partner, NULL);
}

static inline void read_by_turns(int turns)
{
	for (int i = 0; i < turns; i++) {
		readers_read();
		readers_next();
		readers_await(0);
	}
}

static inline void read_in_turn(void)
{
	read_by_turns(READERS_TURNS);
}

static inline void readers_end(void)
{
	readers.ended = true;
	readers_next();
	join(readers.partner);
}

/* ---- a thread that reads the lock, and leaves, when it is told to ----------- */

enum reader_errand { READER_NONE, READER_READS, READER_LEAVES, READER_ENDS };
struct reader_helper {
	pthread_t thread;
	uint32_t errand; /* READER_NONE: done */
};

static inline void reader_errand(struct reader_helper *h, enum reader_errand e)
{
	STORE(h->errand, e);
	futex_wake(&h->errand, 1);
	for (uint32_t now; (now = LOAD(h->errand)) != READER_NONE;)
		futex_wait(&h->errand, now);
}

static inline void *reader_runs_errands(void *arg)
{
	struct reader_helper *h = arg;

	for (;;) {
		uint32_t e;

		while ((e = LOAD(h->errand)) == READER_NONE)
			futex_wait(&h->errand, READER_NONE);
		if (e == READER_READS)
			CHECK_EQ(pthread_rwlock_rdlock(readers.lock), 0);
		if (e == READER_LEAVES)
			CHECK_EQ(pthread_rwlock_unlock(readers.lock), 0);
		STORE(h->errand, READER_NONE);
		futex_wake(&h->errand, 1);
		if (e == READER_ENDS)
			return NULL;
	}
}

static inline void reader_begin(struct reader_helper *h)
{
	h->thread = start(reader_runs_errands, h);
}

static inline void reader_end(struct reader_helper *h)
{
	reader_errand(h, READER_ENDS);
	join(h->thread);
}

#endif
