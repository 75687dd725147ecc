// SPDX-License-Identifier: MIT
/*
 * The companion scheduler: the turn of an owner that others wait for is extended, that of one that
 * nobody waits for is not; one that loses its CPU goes on first, never twice for one turn; a
 * spinning waiter of its process makes room; who is not critical, or with --plain, gets nothing.
 */
#include <sched.h>
#include "sched_common.h"

static struct client c;
static struct actor owner, hog[2], waiter;
static uint32_t lock[2]; /* the word, and the tail of the queue */
static uint32_t node = 8 | FG_NODE_WAITING;

static void check_nothing(const struct fg_sched *s)
{
	struct fg_sched_counts counts;
	uint64_t turns = actor_slot(&owner)->involuntary;

	WAIT_FOR(actor_slot(&owner)->involuntary >= turns + 10);
	counts = counts_of(s);
	CHECK(!counts.extended && !counts.preempted && !counts.first && !counts.yielded);
	check_alive(s);
}

int main(void)
{
	struct fg_sched_counts before, counts;
	struct fg_slot *slot;
	struct fg_sched *s;
	struct monitor m;
	int cpu;

	test_begin();
	monitor_start(&m, NULL);
	usable_cpus(&cpu, 1);
	client_join(&c, m.name, 8);
	s = sched_open_or_skip(0);
	actor_start(&owner, &c, 1, cpu, SCHED_OTHER);
	slot = actor_slot(&owner);
	for (int i = 0; i < 2; i++) {
		actor_start(&hog[i], NULL, 0, cpu, SCHED_OTHER);
		actor_tell(&hog[i], ACT_BUSY);
	}
	actor_tell(&owner, ACT_BUSY);

	/* Plain: as if nobody owned anything. */
	slot->pending = (uintptr_t)lock;
	lock[0] = slot->owner_id | FG_WORD_WAITERS;
	check_nothing(s);
	calls->close(s);
	CHECK(sched_is("disabled"));

	/* With the monitor's knowledge, of a thread that owns nothing. */
	lock[0] = 7;
	s = sched_open_or_skip(m.pid);
	check_nothing(s);

	/* An owner that nobody waits for: preempted, and first, but not extended. */
	lock[0] = slot->owner_id;
	WAIT_FOR(counts_of(s).preempted >= 10 && counts_of(s).first >= 5);
	CHECK(!counts_of(s).extended);

	/* Others wait, says the word, or the queue. */
	before = counts_of(s);
	lock[0] = slot->owner_id | FG_WORD_WAITERS;
	WAIT_FOR(counts_of(s).extended >= before.extended + 5);
	lock[0] = slot->owner_id;
	lock[1] = 1;
	before = counts_of(s);
	WAIT_FOR(counts_of(s).extended >= before.extended + 5);
	/* Extended once, it loses its CPU all the same, and is first, once an ordinary turn. */
	WAIT_FOR(counts_of(s).first >= before.first + 5);
	counts = counts_of(s);
	CHECK(counts.first <= counts.preempted && !counts.yielded);

	/* Within its turn it releases, now and then: what it does not need is given back. */
	before = counts_of(s);
	while (counts_of(s).released < before.released + 3) {
		check_alive(s);
		before.extended = counts_of(s).extended;
		WAIT_FOR(counts_of(s).extended > before.extended);
		lock[0] = 0;
		usleep(20000);
		lock[0] = slot->owner_id;
	}

	/* A waiter that spins on the same CPU makes room. */
	actor_start(&waiter, &c, 2, cpu, SCHED_OTHER);
	actor_slot(&waiter)->node = (uintptr_t)&node;
	actor_slot(&waiter)->role = FG_ROLE_WAITING;
	actor_tell(&waiter, ACT_BUSY);
	WAIT_FOR(counts_of(s).yielded >= 3);
	check_alive(s);

	actor_join(&waiter);
	actor_join(&owner);
	for (int i = 0; i < 2; i++)
		actor_join(&hog[i]);
	monitor_stop(&m);
	/* The maps of a monitor that has gone are as good as none. */
	usleep(10000);
	check_alive(s);
	calls->close(s);
	CHECK(sched_is("disabled"));
	return 0;
}
