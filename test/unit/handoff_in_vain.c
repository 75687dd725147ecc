/* SPDX-License-Identifier: MIT */
/*
 * A head that has asked for the lock (HANDOFF) and does not come, here because it is in a signal
 * handler, or in the parent of a fork: those who come get the free lock all the same, trylock and
 * a deadline that has passed at once, and nobody is left with the flag.  The policy "spin": no
 * sleep helps.  With the policy "block" the promise makes nobody look like a sleeper.
 */
#include "../tools/check.h"

#include <signal.h>
#include <sys/wait.h>

#include "lock/lock.h"
#include "runtime/decide.h"

static struct fg_lock l;
static int in_handler, go_on;

static void handler(int signal)
{
	(void)signal;
	STORE(in_handler, 1);
	UNTIL(LOAD(go_on));
}

static void *head(void *arg)
{
	_fg_lock(&l);
	_fg_unlock(&l);
	return arg;
}

static bool asked_for(void)
{
	return LOAD(l.word) & FG_WORD_HANDOFF;
}

/* In the place of a head. */
static void ask_again(struct fg_lock *lock)
{
	__atomic_fetch_or(&lock->word, FG_WORD_HANDOFF, __ATOMIC_RELAXED);
}

/* What the head has asked for, a child of fork cannot give it. */
static void in_child(void)
{
	int status, child = fork();

	CHECK(child >= 0);
	if (!child) {
		check_begin("handoff_in_vain, child", 60);
		CHECK(asked_for());
		_fg_unlock(&l);
		_fg_lock(&l);
		CHECK(!asked_for());
		_fg_unlock(&l);
		CHECK_EQ(l.word, 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler};
	struct fg_deadline past;
	uint32_t wakes;
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_SPIN);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	_fg_lock(&l);
	t = start(head, NULL);
	UNTIL(asked_for());
	in_child();
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	UNTIL(LOAD(in_handler));
	CHECK(asked_for());
	_fg_unlock(&l);
	CHECK(asked_for()); /* free, and promised */
	CHECK(_fg_trylock(&l));
	_fg_unlock(&l);
	CHECK(asked_for());
	fg_deadline_in(&past, 0);
	CHECK_EQ(_fg_lock_slow(&l, &past), 0);
	_fg_unlock(&l);
	ask_again(&l);
	_fg_lock(&l);
	CHECK(!asked_for()); /* who has waited takes the promise back */
	_fg_unlock(&l);
	for (int i = 0; i < 1000; i++) { /* and nobody after it waits */
		_fg_lock(&l);
		CHECK(!asked_for());
		_fg_unlock(&l);
	}
	STORE(go_on, 1);
	join(t);
	CHECK_EQ(l.word, 0);
	CHECK_EQ(l.tail, 0);

	fg_policy_set(FG_POLICY_BLOCK);
	ask_again(&l);
	wakes = l.wakes;
	_fg_lock(&l);
	CHECK(!(l.word & (FG_WORD_WAITERS | FG_WORD_HANDOFF)));
	_fg_unlock(&l);
	CHECK_EQ(l.word, 0);
	CHECK_EQ(l.wakes, wakes);
	return 0;
}
