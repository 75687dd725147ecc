/* SPDX-License-Identifier: MIT */
/*
 * After each instruction of a read lock, and of its unlock, something happens to the lock: a signal
 * handler reads, or keeps what it has read, or leaves for its thread; another thread leaves for a
 * third one that reads, by which it may be the stopped thread's place that goes; a writer comes.
 * Afterwards nobody reads, and no writer has been in beside a reader.
 */
#include "../tools/readers.h"
#include "../tools/step.h"

#include <stdbool.h>

#ifdef STEP_SUPPORTED
enum { POSITIONS = 300, LOCKS = 8 }; /* so many locks meet in the table, whatever it looks like */

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER, others[LOCKS];
static int position, came; /* at the position */

static bool here(void)
{
	if (step_count != position)
		return false;
	came = step_ending = 1;
	return true;
}

static struct reader_helper reader, third;

static uint32_t writing; /* 1: in */
static pthread_t writer;

static void *write_for_a_while(void *arg)
{
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	STORE(writing, 1);
	sleep_us(500);
	STORE(writing, 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return arg;
}

/* ---- what happens ------------------------------------------------------------- */

static void handler_reads(void)
{
	if (!here())
		return;
	readers_read();
	for (int i = 0; i < LOCKS; i++) {
		CHECK_EQ(pthread_rwlock_rdlock(&others[i]), 0);
		CHECK_EQ(pthread_rwlock_unlock(&others[i]), 0);
	}
}

static void handler_stays(void)
{
	if (here())
		CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
}

static void handler_leaves(void)
{
	if (here())
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
}

static void third_leaves(void)
{
	if (here())
		reader_errand(&third, READER_LEAVES);
}

static void writer_comes(void)
{
	if (!here())
		return;
	writer = start(write_for_a_while, NULL);
	sleep_us(200); /* it is in now, or waits */
}

static const struct event {
	void (*happens)(void);
	int reads_before, reads_less; /* read locks that this thread has; that the event takes */
	bool reader, writer;	      /* takes part */
} events[] = {
    {handler_reads, 0, 0, false, false},  {handler_stays, 0, -1, false, false},
    {handler_leaves, 1, 1, false, false}, {third_leaves, 0, 0, true, false},
    {third_leaves, 1, 0, true, false},	  {writer_comes, 0, 0, false, true},
};

/* ---- where ---------------------------------------------------------------------- */

static void read_here(bool stepped, const struct event *e)
{
	if (stepped)
		step_begin(e->happens);
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	if (stepped)
		step_end();
	CHECK_EQ(LOAD(writing), 0);
}

static void leave_here(bool stepped, const struct event *e)
{
	CHECK_EQ(LOAD(writing), 0);
	if (stepped)
		step_begin(e->happens);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	if (stepped)
		step_end();
}

static void once(const struct event *e, bool at_lock)
{
	int reads = e->reads_before;

	if (e->reader)
		reader_errand(&reader, READER_READS);
	for (int i = 0; i < reads; i++)
		CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	read_here(at_lock, e);
	leave_here(!at_lock, e);
	if (came)
		reads -= e->reads_less;
	while (reads-- > 0)
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	if (e->reader && !came)
		reader_errand(&third, READER_LEAVES);
	if (e->writer && came)
		join(writer);
}

/* After each instruction, as far as there are so many. */
static void each(const struct event *e, bool at_lock)
{
	for (position = came = 1; came && position <= POSITIONS; position++) {
		read_in_turn();
		came = 0;
		once(e, at_lock);
		CHECK_EQ(pthread_rwlock_trywrlock(&lock_), 0);
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	}
	CHECK(!came);
}

static void read_often(pthread_rwlock_t *lock)
{
	for (int i = 0; i < 5000; i++) {
		CHECK_EQ(pthread_rwlock_rdlock(lock), 0);
		CHECK_EQ(pthread_rwlock_unlock(lock), 0);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 100);
	reader_begin(&reader);
	reader_begin(&third);
	for (int i = 0; i < LOCKS; i++)
		read_often(&others[i]); /* its readers are where those of a lock are that is read */

	readers_begin(&lock_);
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		each(&events[i], true);
		each(&events[i], false);
	}
	readers_end();
	reader_end(&reader);
	reader_end(&third);
	return 0;
}
#endif
