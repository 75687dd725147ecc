/* SPDX-License-Identifier: MIT */
/*
 * A waiter behind the head looks at the lock rarely.  The owner that it saw last has released the
 * lock since, and is off its CPU, outside its section: the waiter looks again before it believes
 * that the critical path is off its CPU, and spins on.  The head is in a signal handler, so that
 * the lock goes to a third thread past both.  Also where the clock is slow (SLOW_CLOCK): a
 * device's, or a system call.
 */
#include "../tools/check.h"

#include <signal.h>

#include "arch/arch.h"
#include "lock/lock.h"
#include "runtime/decide.h"

/* A waiter that can lose its own CPU in between: what is counted is what it does in most rounds. */
#define ROUNDS 20

/* Grace for an owner off its CPU is 20 us; 64 questions take some 3. */
#define SPINS_ON_NS 300000

#ifdef SLOW_CLOCK
#define CLOCK_NS 2000

uint64_t __real_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void); /* by the linker: what the library calls */

uint64_t __wrap_fg_now_ns(void)
{
	uint64_t began = __real_fg_now_ns(), now;

	do
		now = __real_fg_now_ns();
	while (now - began < CLOCK_NS);
	return now;
}
#endif

static struct fg_counters counters;
static struct fg_lock l;
static int in_handler, go_on;
static uint32_t former, at_head, waiting; /* ids */

static void handler(int signal)
{
	(void)signal;
	STORE(in_handler, 1);
	UNTIL(LOAD(go_on));
}

/* Takes the lock, has it released by another, and stays about. */
static void *former_owner(void *arg)
{
	_fg_lock(&l);
	STORE(former, fg_self()->id);
	UNTIL(LOAD(go_on));
	return arg;
}

static void *wait_for_it(void *id)
{
	__atomic_store_n((uint32_t *)id, fg_self()->id, __ATOMIC_RELEASE);
	_fg_lock(&l);
	_fg_unlock(&l);
	return NULL;
}

static bool has_role(uint32_t id, enum fg_role role)
{
	return fg_load_relaxed(&fg_slot_look(fg_id_index(id))->role) == role;
}

/* Not for ever: it may have lost its CPU for long, and sleep by now. */
static void wait_for_role(uint32_t id, enum fg_role role)
{
	for (int i = 0; i < 100000 && !has_role(id, role); i++)
		fg_pause();
}

static uint32_t gave_up(void)
{
	return fg_load_relaxed(&fg_slot_look(fg_id_index(waiting))->stats[FG_SLOT_PREEMPTIONS]);
}

enum result { VOID, SPINS_ON, SLEEPS };

/* This thread has the lock, so the waiter stays, asleep or not. */
static enum result judge(pthread_t waiter)
{
	struct fg_slot *slot = (struct fg_slot *)fg_slot_look(fg_id_index(former));
	uint32_t before = gave_up();
	enum result r = VOID;
	long long began;

	if (!has_role(waiting, FG_ROLE_WAITING))
		return VOID;
	began = thread_cpu_ns(waiter);
	/* As the monitor says it of one that sleeps. */
	fg_store_relaxed(&slot->state, FG_STATE_SLEEP);
	while (r == VOID && has_role(waiting, FG_ROLE_WAITING))
		if (thread_cpu_ns(waiter) - began > SPINS_ON_NS)
			r = SPINS_ON;
	fg_store_relaxed(&slot->state, FG_STATE_ON);
	return gave_up() != before ? SLEEPS : r;
}

static enum result round_of_all(void)
{
	enum result r = VOID;
	pthread_t t[3];

	former = at_head = waiting = 0;
	in_handler = go_on = 0;
	counters.heartbeat_ns = fg_now_ns();
	fg_policy_monitor(&counters, FG_DOMAIN_ALL);
	fg_slots_seen = FG_PIECE;
	t[0] = start(former_owner, NULL);
	UNTIL(LOAD(former));
	t[1] = start(wait_for_it, &at_head);
	UNTIL(LOAD(at_head));
	wait_for_role(at_head, FG_ROLE_HEAD);
	CHECK_EQ(pthread_kill(t[1], SIGUSR1), 0);
	UNTIL(LOAD(in_handler));
	t[2] = start(wait_for_it, &waiting);
	UNTIL(LOAD(waiting));
	wait_for_role(waiting, FG_ROLE_WAITING);
	_fg_unlock(&l);
	if (_fg_trylock(&l)) {
		if (has_role(at_head, FG_ROLE_HEAD))
			r = judge(t[2]);
		_fg_unlock(&l);
	}
	STORE(go_on, 1);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	CHECK_EQ(l.word & FG_WORD_ID, 0);
	return r;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler};
	int count[3] = {0};

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_DEFAULT);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	while (count[SPINS_ON] + count[SLEEPS] < ROUNDS)
		count[round_of_all()]++;
	printf("spins on in %d rounds, sleeps in %d; %d say nothing\n", count[SPINS_ON],
	       count[SLEEPS], count[VOID]);
	CHECK(count[SPINS_ON] > count[SLEEPS]);
	return 0;
}
