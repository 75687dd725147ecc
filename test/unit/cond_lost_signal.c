/* SPDX-License-Identifier: MIT */
/*
 * A waiter that goes to sleep after one that came later still gets its signal.
 *
 * The ticket condition variable of the BPF Hybrid Lock (Laforet, Lozi, Lawall, 2023, section
 * III) loses it: tickets are served in the order in which waiters came, futex
 * wakes in the order in which they fell asleep.  Its authors knew of the case and
 * had not seen it; this schedule brings it about each time, by a signal handler
 * that keeps the first waiter from sleeping until the second one sleeps.  The
 * repaired one (src/zoo/ticketcond.h) and ours do not.
 */
#include "../tools/check.h"
#include "zoo/ticketcond.h"

#include <limits.h>
#include <linux/futex.h>

static long futex(unsigned *word, int op, unsigned value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* ---- as published, in blocking mode; the mutex is pthread's ------------------- */

struct ticket_cond {
	unsigned target, seq;
};

static struct ticket_cond tickets;
static int woken; /* by futex, whether it was their turn or not */

static void ticket_wait(struct ticket_cond *c, pthread_mutex_t *m)
{
	unsigned target = ++c->target, seq = LOAD(c->seq);

	unlock(m);
	while (target > seq) {
		if (!futex(&c->seq, FUTEX_WAIT, seq))
			ADD(woken, 1);
		seq = LOAD(c->seq);
	}
	lock(m);
}

static void ticket_signal(struct ticket_cond *c)
{
	ADD(c->seq, 1);
	futex(&c->seq, FUTEX_WAKE, 1);
}

/* ---- the schedule --------------------------------------------------------------- */

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static enum { OURS, PUBLISHED, REPAIRED } which;
static struct zoo_ticket_cond repaired;
static int waiting, returned, held_up, go_on, tid[2];

static void hold_up(int sig)
{
	(void)sig;
	STORE(held_up, 1);
	while (!LOAD(go_on)) /* no sleep: a sleeper sleeps in the condition variable */
		;
}

static void *wait_once(void *arg)
{
	int me = (int)(intptr_t)arg;

	STORE(tid[me], (int)syscall(SYS_gettid));
	lock(&m);
	waiting++;
	if (which == PUBLISHED) {
		ticket_wait(&tickets, &m);
	} else if (which == REPAIRED) {
		static const volatile bool spin = false;
		uint32_t number = zoo_ticket_draw(&repaired);

		unlock(&m);
		zoo_ticket_await(&repaired, number, &spin);
		lock(&m);
	} else {
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	}
	returned++;
	unlock(&m);
	return NULL;
}

static void send_signal(void)
{
	lock(&m);
	if (which == PUBLISHED)
		ticket_signal(&tickets);
	else if (which == REPAIRED)
		zoo_ticket_signal(&repaired);
	else
		CHECK_EQ(pthread_cond_signal(&c), 0);
	unlock(&m);
}

static int number(const int *guarded)
{
	int n;

	lock(&m);
	n = *guarded;
	unlock(&m);
	return n;
}

static int sleeps(int who)
{
	char path[64], line[512], *state = NULL;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", LOAD(tid[who]));
	f = fopen(path, "r");
	CHECK(f);
	if (fgets(line, sizeof line, f))
		state = strrchr(line, ')');
	fclose(f);
	CHECK(state);
	return state[2] == 'S';
}

/* Both wait; the one that came first fell asleep last. */
static void two_waiters(pthread_t *t)
{
	STORE(go_on, 0);
	STORE(held_up, 0);
	waiting = returned = 0;
	t[0] = start(wait_once, (void *)0);
	UNTIL(number(&waiting) == 1);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), tid[0], SIGUSR1), 0);
	UNTIL(LOAD(held_up));
	t[1] = start(wait_once, (void *)1);
	UNTIL(number(&waiting) == 2);
	UNTIL(sleeps(1));
	STORE(go_on, 1);
	UNTIL(sleeps(0));
}

int main(int argc, char **argv)
{
	struct sigaction sa;
	pthread_t t[2];

	check_begin(argv[0], 30);
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = hold_up;
	sigaction(SIGUSR1, &sa, NULL);

	which = PUBLISHED;
	two_waiters(t);
	send_signal();
	/* the wrong one; it has looked and sleeps again */
	UNTIL(LOAD(woken) == 1 && sleeps(0) && sleeps(1));
	/* one signal, two waiters, and nobody has it */
	CHECK_EQ(returned, 0);
	CHECK_EQ(futex(&tickets.seq, FUTEX_WAKE, INT_MAX), 2);
	join(t[0]);
	send_signal();
	join(t[1]);

	for (int i = 0; i < 200; i++) {
		which = i % 2 ? REPAIRED : OURS;
		two_waiters(t);
		send_signal();
		UNTIL(number(&returned) == 1);
		send_signal();
		join(t[0]);
		join(t[1]);
		CHECK_EQ(returned, 2);
		zoo_ticket_signal(&repaired); /* for nobody: not stored */
	}
	which = REPAIRED;
	two_waiters(t);
	zoo_ticket_broadcast(&repaired);
	join(t[0]);
	join(t[1]);
	return 0;
}
