/* SPDX-License-Identifier: MIT */
/*
 * A reader that waits behind a writer passes it after 10 ms, since that one may wait for a reader
 * that waits for this one.  Not while writers come and go: then it waits for its turn, and its
 * patience grows.  Once the same writer stays, it passes, and the next reader is as impatient as
 * ever.  Writers' ids are put into the gate's word by hand; policy "block", so nobody spins.
 */
#include "../tools/check.h"

#include "lock/rwlock_paths.h"
#include "runtime/decide.h"

#define TRIES_NS 30000000000ll

static struct fg_rwlock rw;
static int in;

static void *reader(void *arg)
{
	CHECK_EQ(_fg_rwlock_rdlock(&rw, NULL, NULL), 0);
	STORE(in, 1);
	CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	return arg;
}

/* The flags are the sleepers'. */
static void writer_is(uint32_t n)
{
	uint32_t w = fg_load_relaxed(&rw.gate.word), id = n ? FG_ID_NO_SLOT | n : 0;

	while (!fg_cas_relaxed(&rw.gate.word, &w, (w & ~FG_WORD_ID) | id))
		;
}

/* False: this thread was kept off its CPU, one writer stayed for long, and the reader passed it. */
static bool patience_grows(void)
{
	static uint32_t n;
	long long last, now, longest = 0;
	pthread_t t;
	bool grew;

	STORE(in, 0);
	writer_is(++n);
	last = clock_ns(CLOCK_MONOTONIC);
	t = start(reader, NULL);
	while (!LOAD(rw.patience) && !LOAD(in)) {
		writer_is(++n);
		now = clock_ns(CLOCK_MONOTONIC);
		longest = now - last > longest ? now - last : longest;
		last = now;
		sleep_us(50);
	}
	grew = LOAD(rw.patience);
	now = clock_ns(CLOCK_MONOTONIC);
	CHECK(grew || !LOAD(in) || longest >= FG_RW_PATIENCE_NS || now - last >= FG_RW_PATIENCE_NS);
	/* The last one stays. */
	UNTIL(LOAD(in));
	join(t);
	CHECK_EQ(LOAD(rw.patience), 0);
	return grew;
}

/* Beyond the limit, as long as some that were counted have not found out: nothing runs over. */
static void too_many(void)
{
	struct fg_rwlock full = {.readers = 0x0f800001};

	CHECK_EQ(_fg_rwlock_tryrdlock(&full), EAGAIN);
	CHECK_EQ(_fg_rwlock_rdlock_untraced(&full, NULL), EAGAIN);
	CHECK_EQ(full.readers, 0x0f800001);
	CHECK_EQ(_fg_rwlock_trywrlock(&full), EBUSY);
}

int main(int argc, char **argv)
{
	long long began = clock_ns(CLOCK_MONOTONIC);
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 60);
	too_many();
	fg_policy_set(FG_POLICY_BLOCK);
	set_tag(&rw, 0, WRITES); /* of whoever has the gate */
	while (!patience_grows())
		if (clock_ns(CLOCK_MONOTONIC) - began > TRIES_NS)
			check_skip("this thread was kept off its CPU each time");
	STORE(in, 0);
	t = start(reader, NULL);
	UNTIL(LOAD(in));
	join(t);
	CHECK_EQ(LOAD(rw.patience), 0);
	CHECK_EQ(rw.readers, 0);
	return 0;
}
