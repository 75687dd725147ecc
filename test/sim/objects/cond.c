/* SPDX-License-Identifier: MIT */
/*
 * The condition variable, with the product's mutex: a buffer that some fill and others empty.  No
 * signal is lost, not to a waiter that times out or is cancelled either; nobody touches a
 * condition variable that has been destroyed, nor a mutex that its waiter has given up.
 */
#include "objects/objects.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lock/cond.h"

static struct fg_mutex mutex __attribute__((aligned(64)));
static struct fg_cond not_empty __attribute__((aligned(64))), not_full __attribute__((aligned(64)));
/* guarded by the mutex */
static struct {
	uint64_t capacity, have, put, taken;
	int done, workers;
	bool over;
} buffer __attribute__((aligned(64)));
/* The last to come tells all, and destroys it. */
static struct fg_cond bye __attribute__((aligned(64)));
/* Of two threads: one waits, and gives its mutex up. */
static struct {
	struct fg_mutex mutex;
	struct fg_cond told;
	bool flag;
} pair[CHECK_THREADS / 2] __attribute__((aligned(64)));
static int inside;
static int64_t in_buffer; /* put and not taken, as a load counts */

/* A consumer that somebody cancels; it may be done by then. */
static UNSEEN bool is_victim(const struct thread *t)
{
	return load.cancels && t->role % 3 == 2;
}

static UNSEEN void reset(void)
{
	memset(&mutex, 0, sizeof(mutex));
	memset(&not_empty, 0, sizeof(not_empty));
	memset(&not_full, 0, sizeof(not_full));
	memset(&bye, 0, sizeof(bye));
	memset(&buffer, 0, sizeof(buffer));
	memset(pair, 0, sizeof(pair));
	inside = 0;
	in_buffer = 0;
	buffer.capacity = load.checks ? 1 + rng() % 2 : 8;
	for (int i = 0; load.checks && i < load.threads; i++)
		buffer.workers += !(load.cancels && i % 3 == 2);
	weak_watch(&buffer);
	mem_class(&mutex, sizeof(mutex), C_LOCK);
	mem_class(&not_empty, sizeof(not_empty), C_NODE);
	mem_class(&not_full, sizeof(not_full), C_NODE);
	mem_class(&buffer, sizeof(buffer), C_DATA);
}

static UNSEEN void enter(void)
{
	gets_on();
	if (inside++)
		violation("two threads have the mutex of a condition variable");
}

static UNSEEN void leave(void)
{
	inside--;
}

static void let_go(void *arg)
{
	(void)arg;
	leave();
	_fg_mutex_unlock(&mutex);
}

static void lock(void)
{
	_fg_mutex_lock_untraced(&mutex, NULL);
	enter();
}

static void unlock(void)
{
	leave();
	_fg_mutex_unlock(&mutex);
}

static int release_mutex(void *m)
{
	return _fg_mutex_unlock(m);
}

static int take_mutex(void *m)
{
	return _fg_mutex_lock_untraced(m, NULL);
}

/* With the mutex, before and after; also where it is cancelled. */
static void wait_on(struct fg_cond *c, struct fg_mutex *m, uint64_t ns)
{
	struct fg_cond_mutex callers = {release_mutex, take_mutex, m, m};
	struct fg_deadline d;
	int r;

	if (ns)
		fg_deadline_in(&d, ns);
	r = _fg_cond_wait(c, &callers, ns ? &d : NULL);
	if (r && (r != ETIMEDOUT || !ns))
		violation("a wait on a condition variable failed");
	if (r && ns)
		time_was_over(&d);
}

static void wait_somehow(struct fg_cond *c)
{
	leave();
	wait_on(c, &mutex, load.checks && one_in(4) ? some_ns() : 0);
	enter();
}

/* Before or after the release. */
static void tell_and_unlock(struct fg_cond *c)
{
	bool first = one_in(2), all = load.checks && one_in(8);

	if (!first)
		unlock();
	if (all)
		_fg_cond_broadcast(c);
	else
		_fg_cond_signal(c);
	if (first)
		unlock();
}

static UNSEEN void moved(int n)
{
	in_buffer += n;
}

static uint64_t rounds_of[SIM_THREADS]; /* of a load with broadcasts, by thread */

/* The others: not_empty; the leader, thread 0: not_full. */
static void broadcast_round(struct thread *t)
{
	uint64_t from = begins(t), others = (uint64_t)load.threads - 1, got;

	lock();
	if (t->id == 0) {
		while (buffer.have != others && buffer.put)
			wait_somehow(&not_full);
		got = gets(t);
		buffer.have = 0;
		buffer.put++;
		_fg_cond_broadcast(&not_empty);
		unlock();
	} else {
		while (buffer.put == rounds_of[t->id])
			wait_somehow(&not_empty);
		got = gets(t);
		if (buffer.put != ++rounds_of[t->id])
			violation("a leader has not waited for all");
		if (++buffer.have == others)
			_fg_cond_signal(&not_full);
		unlock();
	}
	record(t, from, got);
}

static void op(struct thread *t)
{
	uint64_t from = begins(t), got;

	if (load.broadcasts) {
		broadcast_round(t);
		return;
	}
	lock();
	if (t->id % 2 == 0) {
		while (buffer.have == buffer.capacity)
			wait_somehow(&not_full);
		got = gets(t);
		buffer.have++;
		moved(1);
		tell_and_unlock(&not_empty);
	} else {
		while (!buffer.have)
			wait_somehow(&not_empty);
		got = gets(t);
		buffer.have--;
		moved(-1);
		tell_and_unlock(&not_full);
	}
	record(t, from, got);
}

static UNSEEN void sum(void)
{
	if (load.broadcasts)
		return;
	/* One may be between the two. */
	if (buffer.have > buffer.capacity || in_buffer + 1 < (int64_t)buffer.have ||
	    in_buffer > (int64_t)buffer.have + 1)
		violation("the buffer does not have what was put and not taken");
}

static bool produces(const struct thread *t)
{
	return t->role % 3 == 0;
}

static uint64_t all_items(void)
{
	return (uint64_t)(load.threads + 2) / 3 * (uint64_t)load.rounds;
}

static void produce(struct thread *t)
{
	for (int i = 0; i < load.rounds; i++) {
		uint64_t from = now();

		lock();
		while (buffer.have == buffer.capacity)
			wait_somehow(&not_full);
		if (load.forks)
			fork_sometimes(t, let_go, NULL);
		buffer.have++;
		buffer.put++;
		record(t, from, now());
		tell_and_unlock(&not_empty);
		some_work();
	}
}

static void consume(struct thread *t)
{
	for (;;) {
		uint64_t from = now();

		lock();
		while (!buffer.have && buffer.taken < all_items())
			wait_somehow(&not_empty);
		record(t, from, now());
		if (!buffer.have) {
			unlock();
			return;
		}
		buffer.have--;
		if (++buffer.taken == all_items())
			_fg_cond_broadcast(&not_empty);
		tell_and_unlock(&not_full);
		some_work();
	}
}

static void cancelled(void *arg)
{
	(void)arg;
	enter(); /* the wait has taken it back */
	unlock();
}

static void consume_until_cancelled(struct thread *t)
{
	sim_cancel_in(t, rng() % (200 * US));
	pthread_cleanup_push(cancelled, NULL);
	consume(t);
	pthread_cleanup_pop(0);
}

/* Together, or one by one, of whom all but the last have to leave before it is destroyed. */
static void tell_all(struct fg_cond *c)
{
	if (one_in(2))
		_fg_cond_broadcast(c);
	else
		for (int i = 1; i < buffer.workers; i++)
			_fg_cond_signal(c);
}

static void destroy_bye(void)
{
	_fg_cond_destroy(&bye);
	mem_retire(&bye, sizeof(bye), "a condition variable after it was destroyed");
}

/* All have come: the last one tells them and destroys what they waited on, now or later. */
static void say_goodbye(void)
{
	bool last, now = one_in(2);

	lock();
	last = ++buffer.done == buffer.workers;
	if (last) {
		buffer.over = true;
		tell_all(&bye);
		if (now)
			destroy_bye();
	}
	while (!buffer.over)
		wait_somehow(&bye);
	unlock();
	if (last && !now)
		destroy_bye();
}

/* One tells the other, which gives up the mutex that it has waited with. */
static void meet(struct thread *t)
{
	int i = t->role / 2;

	_fg_mutex_lock_untraced(&pair[i].mutex, NULL);
	if (t->role % 2) {
		pair[i].flag = true;
		_fg_mutex_unlock(&pair[i].mutex);
		_fg_cond_signal(&pair[i].told);
		return;
	}
	while (!pair[i].flag)
		wait_on(&pair[i].told, &pair[i].mutex, 0);
	_fg_mutex_unlock(&pair[i].mutex);
	mem_retire(&pair[i].mutex, sizeof(pair[i].mutex),
		   "a mutex that its last user had given up");
}

static void check(struct thread *t)
{
	if (produces(t)) {
		produce(t);
	} else if (is_victim(t)) {
		consume_until_cancelled(t);
		return;
	} else {
		consume(t);
	}
	say_goodbye();
	if ((t->role ^ 1) < load.threads && t->role % 6 < 2)
		meet(t);
}

/* The condition variables and the mutex stay as they are, with waiters that are gone. */
static UNSEEN void renew(void)
{
	uint64_t capacity = buffer.capacity;

	memset(&buffer, 0, sizeof(buffer));
	memset(pair, 0, sizeof(pair));
	buffer.capacity = capacity;
	for (int i = 0; i < load.threads; i++)
		buffer.workers += !(load.cancels && i % 3 == 2);
}

static UNSEEN void after(void)
{
	nothing_is_said();
	if (inside || (mutex.lock.word & FG_WORD_ID))
		violation("the mutex of a condition variable is held by nobody");
	if (!load.forking && (mutex.lock.word || mutex.lock.tail))
		violation("the mutex of a condition variable says that somebody waits");
	if (buffer.put != all_items() || buffer.taken != buffer.put || buffer.have)
		violation("what was put into the buffer is not what was taken out");
	if (not_empty.first || not_full.first)
		violation("a condition variable has a waiter that is gone");
	if (!load.forking && (not_empty.lock.tag || not_full.lock.tag))
		violation("a condition variable waits for a waiter that is gone");
	if (mutex.lock.tag >> FG_KIND_WAITERS && !load.forking)
		violation("a mutex counts a waiter that is gone");
}

const struct object object_cond = {.name = "cond",
				   .reset = reset,
				   .op = op,
				   .sum = sum,
				   .check = check,
				   .after = after,
				   .renew = renew};
