/* SPDX-License-Identifier: MIT */
/*
 * The semaphore of one process: never more are in than it had, no post is lost, a post touches
 * nothing that another may have by then.
 */
#include "objects/objects.h"

#include <pthread.h>
#include <string.h>

#include "lock/gate.h"
#include "lock/sem.h"

#define ONE_SLEEPER (1ull << 32)

static uint64_t room __attribute__((aligned(64))); /* so many may be in */
/* one of these, so that both semaphores have the same gate, or not */
static struct {
	uint64_t sem;
} others[1024] __attribute__((aligned(64)));
static unsigned second;
#define items (others[second].sem)
static struct {
	uint64_t sem;
} once[CHECK_THREADS / 2] __attribute__((aligned(64))); /* of a thread: its neighbour posts it */
static int most, inside, expected;
static uint64_t data[8] __attribute__((aligned(64))); /* guarded where one may be in */

static UNSEEN void choose_second(void)
{
	bool shares = load.checks && one_in(2);

	for (second = 0; second < sizeof(others) / sizeof(*others) - 1; second++)
		if ((_fg_gate(&items) == _fg_gate(&room)) == shares)
			break;
}

static UNSEEN void reset(void)
{
	choose_second();
	most = load.checks ? 1 + (int)(rng() % 2) : 1;
	inside = 0;
	expected = 0;
	room = (uint64_t)most;
	items = 0;
	for (unsigned i = 0; i < sizeof(once) / sizeof(*once); i++)
		once[i].sem = 0;
	weak_watch(data);
	mem_class(&room, sizeof(room), C_LOCK);
	mem_class(_fg_gate(&room), 64, C_NODE);
}

static UNSEEN void enter(void)
{
	if (++inside > most)
		violation("more have passed the semaphore than it had");
}

static UNSEEN void leave(void)
{
	inside--;
}

static void op(struct thread *t)
{
	uint64_t from = begins(t), got;

	_fg_sem_wait(&room, NULL);
	got = gets(t);
	work_inside();
	_fg_sem_post(&room);
	record(t, from, got);
}

static void let_go(void *arg)
{
	(void)arg;
	leave();
	_fg_sem_post(&room);
}

/* Of preload/sem.c, where a wait is a cancellation point. */
int preloaded_wait(sem_t *sem) __asm__("fg__sem_wait");
int preloaded_clockwait(sem_t *sem, clockid_t clock,
			const struct timespec *at) __asm__("fg__sem_clockwait");

static bool wait_for(uint64_t *sem, const struct fg_deadline *d)
{
	sem_t *theirs = (sem_t *)sem;

	if (!load.cancels)
		return !_fg_sem_wait(sem, d);
	return !(d ? preloaded_clockwait(theirs, d->clock, &d->at) : preloaded_wait(theirs));
}

static bool wait_somehow(uint64_t *sem)
{
	struct fg_deadline d;

	switch (rng() % 8) {
	case 0: return _fg_sem_trywait(sem);
	case 1:
		fg_deadline_in(&d, some_ns());
		if (wait_for(sem, &d))
			return true;
		time_was_over(&d);
		return false;
	}
	return wait_for(sem, NULL);
}

static UNSEEN void count_item(int more)
{
	expected += more;
}

static void be_in(struct thread *t)
{
	uint64_t from = now(), got;

	if (!wait_somehow(&room))
		return;
	got = now();
	enter();
	/* Long enough that some sleep, to be cancelled there. */
	sim_work(rng() % (load.cancels && one_in(4) ? 200 * US : 2 * US));
	if (most == 1)
		data[0]++;
	if (load.forks)
		fork_sometimes(t, let_go, NULL);
	leave();
	if (_fg_sem_post(&room))
		violation("a post was refused");
	record(t, from, got);
}

/* It has nothing when it is cancelled, since only its waits are cancellation points. */
static void go_on_until_cancelled(struct thread *t)
{
	sim_cancel_in(t, rng() % (400 * US));
	for (;;) {
		be_in(t);
		some_work();
		if (wait_somehow(&items))
			_fg_sem_post(&items);
	}
}

static void check(struct thread *t)
{
	bool produces = t->role % 2 == 0, paired = (t->role ^ 1) < load.threads;

	if (load.cancels && t->role % 4 == 1)
		go_on_until_cancelled(t);
	for (int i = 0; i < load.rounds; i++) {
		be_in(t);
		some_work();
		if (!paired)
			continue;
		if (produces) {
			count_item(1);
			_fg_sem_post(&items);
		} else if (one_in(2) && wait_somehow(&items)) {
			count_item(-1);
		}
	}
	if (!paired)
		return;
	/* Handed over: whoever has waited may use the memory again at once. */
	if (produces) {
		_fg_sem_post(&once[t->role / 2].sem);
	} else {
		wait_for(&once[t->role / 2].sem, NULL);
		mem_retire(&once[t->role / 2], sizeof(once[0]),
			   "a semaphore that its waiter had given up");
	}
}

/* Those that had been in are gone with what they had, and sleepers are counted for good. */
static UNSEEN void renew(void)
{
	inside = 1;
	most = 1 + (int)(uint32_t)room;
	expected = (int)(uint32_t)items;
	memset(once, 0, sizeof(once));
}

static UNSEEN void after(void)
{
	nothing_is_said();
	if (load.forking) {
		room = (uint32_t)room;
		items = (uint32_t)items;
	}
	if (room != (uint64_t)most)
		violation("the semaphore's value is not what it was, or it counts a sleeper");
	if ((uint32_t)items != (uint32_t)expected || items >= ONE_SLEEPER)
		violation("a post was lost, or a sleeper is counted that is gone");
	if (_fg_gate(&room)->word || _fg_gate(&room)->tail || _fg_gate(&items)->word ||
	    _fg_gate(&items)->tail)
		violation("somebody is left at a gate");
}

const struct object object_sem = {
    .name = "sem", .reset = reset, .op = op, .check = check, .after = after, .renew = renew};
