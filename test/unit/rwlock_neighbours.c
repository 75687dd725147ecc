/* SPDX-License-Identifier: MIT */
/*
 * More readers than a table of readers may have places: after each instruction in turn of
 * an unlock 140 others read and leave, and after each one of a read lock they leave while a
 * writer waits.  Each that shares a place with the thread that is stopped meets it in every
 * state.  In the end nobody reads.
 */
#include "../tools/readers.h"
#include "../tools/step.h"

#include <linux/futex.h>
#include <stdbool.h>

#ifdef STEP_SUPPORTED
enum { HELPERS = 140, POSITIONS = 96 };
enum errand { NONE, READ, LEAVE, READ_AND_LEAVE, END };

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
static struct helper {
	pthread_t thread;
	uint32_t errand; /* NONE: done */
} __attribute__((aligned(64))) helper[HELPERS];

static void run_errand(struct helper *h, enum errand e)
{
	STORE(h->errand, e);
	syscall(SYS_futex, &h->errand, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	for (uint32_t now; (now = LOAD(h->errand)) != NONE;)
		syscall(SYS_futex, &h->errand, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

static void all(enum errand e)
{
	for (int i = 0; i < HELPERS; i++)
		run_errand(&helper[i], e);
}

static void *help(void *arg)
{
	struct helper *h = arg;

	for (;;) {
		uint32_t e;

		while ((e = LOAD(h->errand)) == NONE)
			syscall(SYS_futex, &h->errand, FUTEX_WAIT_PRIVATE, NONE, NULL, NULL, 0);
		if (e == READ || e == READ_AND_LEAVE)
			CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
		if (e == LEAVE || e == READ_AND_LEAVE)
			CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
		STORE(h->errand, NONE);
		syscall(SYS_futex, &h->errand, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		if (e == END)
			return NULL;
	}
}

static void *write_once(void *arg)
{
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return arg;
}

static int position, came; /* at the position */
static pthread_t writer;

static bool here(void)
{
	if (step_count != position)
		return false;
	came = step_ending = 1;
	return true;
}

static void others_read(void)
{
	if (here())
		all(READ_AND_LEAVE);
}

static void writer_comes(void)
{
	if (!here())
		return;
	writer = start(write_once, NULL);
	usleep(1000); /* it waits for readers now */
	all(LEAVE);
}

static void unlock_at(void)
{
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	step_begin(others_read);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	step_end();
}

static void rdlock_at(void)
{
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	all(READ);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	step_begin(writer_comes);
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	step_end();
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	if (came)
		join(writer);
	else
		all(LEAVE);
}

/* After each instruction, as far as there are so many. */
static void each(void (*run)(void))
{
	for (position = came = 1; came && position <= POSITIONS; position++) {
		read_in_turn();
		came = 0;
		run();
		CHECK_EQ(pthread_rwlock_trywrlock(&lock_), 0);
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 60);
	for (int i = 0; i < HELPERS; i++)
		helper[i].thread = start(help, &helper[i]);

	readers_begin(&lock_);
	each(unlock_at);
	each(rdlock_at);
	readers_end();
	all(END);
	for (int i = 0; i < HELPERS; i++)
		join(helper[i].thread);
	return 0;
}
#endif
