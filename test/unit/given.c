/* SPDX-License-Identifier: MIT */
/*
 * A lock that its owner gives to the head of the queue (src/lock/offer.h).  The word names the
 * former owner then.  So the one that has it: releases it; has it released by that former owner, or
 * by a third thread; ends, and leaves it behind, also where a filter has come and it may block no
 * signals for that; has freed it, and the memory is another's or nobody's when it ends, forks, or
 * waits for another lock; forks, and the child releases it; takes part in the rest as any owner
 * does: others find it held, and a signal with it in hand does not wait for the former owner's
 * release.  The child of a raw clone() gives nothing to a thread of its parent.  A signal handler
 * on top of the wait may want the same lock.  For a movable mutex nobody makes an offer.
 */
#include "../tools/check.h"

#include <sys/mman.h>

#include "arch/arch.h"
#include "lock/held.h"
#include "lock/mutex.h"
#include "runtime/decide.h"
#include "sys/filter.h"

enum {
	RELEASES,
	RELEASED_BY_FORMER,
	RELEASED_BY_THIRD,
	ENDS,
	ENDS_FILTERED,
	FREES,
	UNMAPS,
	UNMAPS_AND_WAITS,
	FREES_AND_WAITS,
	IN_HANDLER,
	FORKS,
	WAYS
};

/* The waiter has to keep its CPU until it is the head. */
#define ENOUGH	 20
#define LIMIT_NS 10000000000

static struct fg_counters counters;
static struct fg_mutex *m, another; /* in a page of its own */
#define l    (&m->lock)
#define SIZE 4096
#define ELSE 0x11	/* what the page is used for later */
static uint32_t waiter; /* id */
static int got, go_on, in_handler;

static bool is_untouched(void)
{
	for (size_t i = 0; i < sizeof(*m); i++)
		if (((unsigned char *)m)[i] != ELSE)
			return false;
	return true;
}

static void fork_without_it(bool mapped)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(mapped && !is_untouched());
	check_child(pid);
}

/* The child has it, too: it releases it, and has nothing then. */
static void fork_with_it(void)
{
	const struct fg_self *t = fg_self();
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		_fg_mutex_unlock(m);
		_exit((m->lock.word & FG_WORD_ID) || pending_of(t) || has_several(t) ||
		      t->slot->cs || fg_thread_mine(t)->nodes_used);
	}
	check_child(pid);
}

/* Beside another one, which the child releases; and its child releases this one. */
static void fork_twice_with_it(void)
{
	pid_t pid;

	_fg_mutex_lock(&another, NULL, NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		_fg_mutex_unlock(&another);
		fork_with_it();
		_exit(0);
	}
	check_child(pid);
	_fg_mutex_unlock(&another);
}

static void wait_for_another(void)
{
	_fg_mutex_lock(&another, NULL, NULL);
	_fg_mutex_unlock(&another);
}

static void *wait_for_it(void *way)
{
	fg_self()->times_head = 1; /* one that does not settle the word */
	STORE(waiter, fg_self()->id);
	_fg_mutex_lock(m, NULL, NULL);
	STORE(got, 1);
	UNTIL(LOAD(go_on));
	switch (*(int *)way) {
	case FORKS:
		fork_with_it();
		fork_twice_with_it();
		/* fall through */
	case RELEASES:
	case IN_HANDLER: _fg_mutex_unlock(m); break;
	case ENDS: break;
	case ENDS_FILTERED: fg_filter_comes(); break;
	case FREES:
		memset(m, ELSE, sizeof(*m));
		fork_without_it(true);
		break;
	case FREES_AND_WAITS:
		memset(m, ELSE, sizeof(*m));
		wait_for_another();
		break;
	case UNMAPS:
		munmap(m, SIZE);
		fork_without_it(false);
		break;
	case UNMAPS_AND_WAITS:
		munmap(m, SIZE);
		wait_for_another();
		break;
	default: /* released for it: it holds nothing, and says so when it next locks */
		_fg_mutex_lock(&another, NULL, NULL);
		CHECK_EQ(fg_self()->slot->cs, 0);
		_fg_mutex_unlock(&another);
		CHECK_EQ(fg_self()->slot->pending, 0);
	}
	return NULL;
}

static void *release_it(void *arg)
{
	_fg_mutex_unlock(m);
	return arg;
}

static uint64_t offer_of(uint32_t id)
{
	return LOAD(fg_thread_of(fg_id_index(id))->offer);
}

/* Not for long: it may have lost its CPU, and sleep by now. */
static bool offers(void)
{
	for (int i = 0; i < 200000; i++) {
		if (LOAD(waiter) && offer_of(LOAD(waiter)) == (address(l) | FG_OFFER_MADE))
			return true;
		fg_pause();
	}
	return false;
}

/* As if it had granted it the role of the head. */
static void promise_to(uint32_t id)
{
	struct fg_self *t = fg_self();

	t->only |= FG_ONLY_SLOWLY;
	fg_thread_mine(t)->sleepers = 0;
	fg_thread_mine(t)->notifies = (uint16_t)fg_id_index(id);
	fg_thread_mine(t)->notifies_of = part_of_address(address(l));
}

/* In the child of a raw clone() there is nobody to give it to, though it looks so. */
static void release_in_child(void)
{
	int status;
	pid_t child = check_clone();

	CHECK(child >= 0);
	if (!child) {
		_fg_mutex_unlock(m);
		_exit(l->word & FG_WORD_ID ? 1 : 0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/*
 * Until the waiter's handler waits: what the interrupted wait has offered it cannot come for.  What
 * it is given before is its thread's, as if the signal had come right after it.  The handler's wait
 * may offer as well, in a node of its own.
 */
static void interrupt(pthread_t t)
{
	const struct fg_slot *slot = fg_slot_look(fg_id_index(LOAD(waiter)));
	uint64_t node = LOAD(slot->node);

	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	UNTIL(LOAD(in_handler));
	UNTIL(!offer_of(LOAD(waiter)) || LOAD(slot->node) != node);
}

static void lock_in_handler(int sig)
{
	(void)sig;
	STORE(in_handler, 1);
	_fg_mutex_lock(m, NULL, NULL);
	_fg_mutex_unlock(m);
}

static void map(void)
{
	m = mmap(m, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (m ? MAP_FIXED : 0),
		 -1, 0);
	CHECK(m != MAP_FAILED);
}

static bool is_freed(int way)
{
	return way == FREES || way == UNMAPS || way == FREES_AND_WAITS || way == UNMAPS_AND_WAITS;
}

/* It was given, and its owner has ended without a release, and freed it. */
static void check_that_nobody_touched_it(int way)
{
	CHECK((way != FREES && way != FREES_AND_WAITS) || is_untouched());
	map();
}

/* Until it has put away what it had of the first one, as who waits does. */
static void keep_another_from_it(void)
{
	_fg_mutex_lock(&another, NULL, NULL);
	STORE(go_on, 1);
	UNTIL(!((volatile struct fg_thread *)fg_thread_of(fg_id_index(waiter)))->kept);
	_fg_mutex_unlock(&another);
}

static bool given_once(int way)
{
	bool given = false;
	pthread_t t;

	waiter = 0;
	got = in_handler = 0;
	go_on = way == IN_HANDLER;
	counters.heartbeat_ns = fg_now_ns();
	_fg_mutex_lock(m, NULL, NULL);
	t = start(wait_for_it, &way);
	if (offers()) {
		if (way == IN_HANDLER)
			interrupt(t);
		promise_to(LOAD(waiter));
		if (way == RELEASES)
			release_in_child();
		_fg_mutex_unlock(m);
		given = offer_of(LOAD(waiter)) == (address(l) | FG_OFFER_GIVEN);
		CHECK_EQ(fg_self()->slot->pending, 0);
	} else {
		_fg_mutex_unlock(m);
	}
	if (way == IN_HANDLER) {
		join(t);
		return in_handler;
	}
	UNTIL(LOAD(got));
	if (is_freed(way) && !given)
		way = RELEASES;
	if (given) {
		CHECK_EQ(LOAD(l->word) & FG_WORD_ID, fg_self()->id);
		CHECK_EQ(_fg_mutex_trylock(m), EBUSY);
		CHECK(!_fg_mutex_wakes_at_release(m)); /* not by this thread */
		CHECK_EQ(fg_slot_look(fg_id_index(waiter))->cs, 1);
	}
	if (way == RELEASED_BY_FORMER)
		_fg_mutex_unlock(m);
	if (way == RELEASED_BY_THIRD)
		join(start(release_it, NULL));
	if (way == FREES_AND_WAITS || way == UNMAPS_AND_WAITS)
		keep_another_from_it();
	STORE(go_on, 1);
	join(t);
	if (is_freed(way)) {
		check_that_nobody_touched_it(way);
		return true;
	}
	if (way == ENDS || way == ENDS_FILTERED) {
		CHECK_EQ(LOAD(l->word) & FG_WORD_ID, waiter);
		CHECK_EQ(offer_of(waiter), 0);
		_fg_mutex_unlock(m);
		if (way == ENDS_FILTERED)
			fg_filter_failed();
	}
	CHECK_EQ(l->word, 0);
	CHECK_EQ(l->tail, 0);
	CHECK_EQ(fg_self()->only & ~(uint64_t)FG_ONLY_SLOWLY, 0);
	CHECK_EQ(offer_of(fg_self()->id), 0);
	return given;
}

static void check_that_nobody_offers_for_a_movable_one(void)
{
	int way = RELEASES;
	pthread_t t;

	m->lock.tag = FG_KIND_MOVABLE;
	waiter = 0;
	got = 0;
	go_on = 1;
	counters.heartbeat_ns = fg_now_ns();
	_fg_mutex_lock(m, NULL, NULL);
	t = start(wait_for_it, &way);
	CHECK(!offers());
	CHECK(!LOAD(got));
	_fg_mutex_unlock(m);
	join(t);
	m->lock.tag = FG_KIND_NORMAL;
}

int main(int argc, char **argv)
{
	uint64_t until = fg_now_ns() + LIMIT_NS;
	int given[WAYS] = {0};

	(void)argc;
	check_begin(argv[0], 60);
	signal(SIGUSR1, lock_in_handler);
	map();
	fg_policy_set(FG_POLICY_SPIN);
	fg_policy_monitor(&counters, 1);
	fg_slots_seen = FG_PIECE;
	for (int way = 0; way < WAYS; way++)
		while (given[way] < ENOUGH && fg_now_ns() < until)
			given[way] += given_once(way);
	for (int i = 0; i < 5; i++)
		check_that_nobody_offers_for_a_movable_one();
	printf(
	    "given: %d released, %d by the former owner, %d by a third thread, %d left behind, "
	    "%d behind a filter, %d freed, %d unmapped, %d and %d before another wait, %d wanted "
	    "in a handler, %d in a child\n",
	    given[RELEASES], given[RELEASED_BY_FORMER], given[RELEASED_BY_THIRD], given[ENDS],
	    given[ENDS_FILTERED], given[FREES], given[UNMAPS], given[UNMAPS_AND_WAITS],
	    given[FREES_AND_WAITS], given[IN_HANDLER], given[FORKS]);
	fflush(stdout);
	for (int way = 0; way < WAYS; way++)
		if (!given[way])
			check_skip("too busy a machine: no waiter kept its CPU");
	return 0;
}
