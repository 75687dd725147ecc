/* SPDX-License-Identifier: MIT */
/*
 * FLEXGUARD_HYBRID=threads=5: the lock is switched when the fifth thread has come, and those count
 * that never had to wait; not those that have ended, nor in a child of fork those of its parent.
 *
 * The library's own objects are part of this program.
 */
#include "../tools/check.h"

#include <sched.h>
#include <sys/wait.h>

#include "lock/mutex.h"
#include "zoo/hybrid.h"

#define AWAKE_NS 20000000 /* on a CPU: a hundred times what a waiter needs to look */

static struct zoo_mutex m;
static bool end;

static void lock_it(void)
{
	CHECK_EQ(_fg_mutex_lock_untraced((struct fg_mutex *)&m, NULL), 0);
}

static void unlock_it(void)
{
	CHECK_EQ(_fg_mutex_unlock((struct fg_mutex *)&m), 0);
}

static bool blocks(void)
{
	return curr_of(LOAD(*state_of(&m))) == BLOCK;
}

/* Has it once, when nobody else wants it, and lives on. */
static void *has_been_here(void *done)
{
	lock_it();
	unlock_it();
	STORE(*(int *)done, 1);
	while (!LOAD(end))
		sched_yield();
	return NULL;
}

static pthread_t one_more(void)
{
	int done = 0;
	pthread_t thread = start(has_been_here, &done);

	while (!LOAD(done))
		sched_yield();
	return thread;
}

static void *waits(void *unused)
{
	lock_it();
	unlock_it();
	return unused;
}

static void let_it_in(pthread_t waiter)
{
	unlock_it();
	join(waiter);
}

/* It has one thread of four, and a second one comes. */
static void in_the_child(void)
{
	pthread_t waiter;

	lock_it();
	waiter = start(waits, NULL);
	while (thread_cpu_ns(waiter) < AWAKE_NS)
		CHECK(!blocks());
	CHECK(!blocks());
	let_it_in(waiter);
}

static void try_a_child(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		in_the_child();
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	pthread_t thread[3], waiter;

	check_begin(argv[0], 60);
	thread[0] = one_more();
	thread[1] = one_more();
	lock_it();
	for (int i = 0; i < 2; i++) { /* the fourth, and when that has ended again the fourth */
		waiter = start(waits, NULL);
		while (thread_cpu_ns(waiter) < AWAKE_NS)
			CHECK(!blocks());
		CHECK(!blocks());
		let_it_in(waiter);
		lock_it();
	}
	unlock_it();
	thread[2] = one_more();
	try_a_child();
	lock_it();
	waiter = start(waits, NULL);
	while (!blocks())
		sched_yield();
	let_it_in(waiter);
	STORE(end, true);
	for (int i = 0; i < 3; i++)
		join(thread[i]);
	return 0;
}
