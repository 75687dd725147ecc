// SPDX-License-Identifier: MIT
/* Each clause of the critical test (struct fg_slot), and what is just beside it. */
#include <sched.h>
#include "harness.h"

static struct client c;
static struct actor a;

static void sleep_once(void)
{
	struct fg_slot *slot = actor_slot(&a);

	actor_tell(&a, ACT_BUSY);
	WAIT_FOR(slot->state == FG_STATE_ON);
	actor_tell(&a, ACT_SLEEP);
	WAIT_FOR(slot->state == FG_STATE_SLEEP);
}

/* Publish this, go to sleep, see whether that counts. */
static bool counts(uint32_t cs, uint64_t pending, uint32_t role, uint64_t node)
{
	struct fg_slot *slot = actor_slot(&a);
	uint64_t before;
	bool counted;

	actor_tell(&a, ACT_BUSY);
	WAIT_FOR(slot->state == FG_STATE_ON);
	slot->node = node;
	slot->role = role;
	slot->pending = pending;
	slot->cs = cs;
	before = __atomic_load_n(&slot->blocked, __ATOMIC_ACQUIRE);
	actor_tell(&a, ACT_SLEEP);
	WAIT_FOR(slot->state == FG_STATE_SLEEP);
	/* state is stored first, and the counts after it */
	usleep(1000);
	counted = slot->blocked > before;
	if (counted)
		WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	else
		CHECK(c.counters->dom[FG_DOMAIN_ALL].blocked == 0);
	slot->cs = 0;
	slot->pending = 0;
	slot->role = FG_ROLE_NONE;
	sleep_once();
	WAIT_FOR(all_zero(c.counters));
	return counted;
}

int main(void)
{
	struct monitor m;
	uint32_t word, node, incarnation;
	uint64_t w = (uintptr_t)&word, n = (uintptr_t)&node;

	test_begin();
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	actor_start(&a, &c, 6, -1, SCHED_OTHER);
	sleep_once();

	word = 0;
	CHECK(!counts(0, 0, FG_ROLE_NONE, 0));
	CHECK(!counts(0, w, FG_ROLE_NONE, 0)); /* free */
	word = 5;
	CHECK(!counts(0, w, FG_ROLE_NONE, 0)); /* somebody else's */
	CHECK(counts(1, w, FG_ROLE_NONE, 0));  /* but it holds another lock */
	CHECK(counts(3, 0, FG_ROLE_NONE, 0));
	word = 6;
	CHECK(counts(0, w, FG_ROLE_NONE, 0));
	word = 6 | FG_WORD_WAITERS;
	CHECK(counts(0, w, FG_ROLE_NONE, 0));
	word = 6 | FG_WORD_SPINNER;
	CHECK(counts(0, w, FG_ROLE_NONE, 0));
	word = 5;
	CHECK(counts(0, w, FG_ROLE_LINKING, 0));
	CHECK(counts(0, w, FG_ROLE_HEAD, 0));
	CHECK(!counts(0, w, 77, n));
	for (incarnation = 0; incarnation < 3; incarnation++) {
		node = incarnation << 3 | FG_NODE_FREE;
		CHECK(!counts(0, w, FG_ROLE_WAITING, n));
		node = incarnation << 3 | FG_NODE_WAITING;
		CHECK(!counts(0, w, FG_ROLE_WAITING, n));
		node = incarnation << 3 | FG_NODE_GRANTED;
		CHECK(counts(0, w, FG_ROLE_WAITING, n));
		CHECK(!counts(0, w, FG_ROLE_NONE, n)); /* node is valid in that role only */
		node = incarnation << 3 | FG_NODE_HEAD;
		CHECK(counts(0, w, FG_ROLE_WAITING, n));
		node = incarnation << 3 | FG_NODE_LEFT;
		CHECK(!counts(0, w, FG_ROLE_WAITING, n));
	}

	/* One that waits takes the word in another role, so it is not read. */
	word = 6;
	node = FG_NODE_WAITING;
	CHECK(!counts(0, w, FG_ROLE_WAITING, n));
	CHECK(counts(1, w, FG_ROLE_WAITING, n)); /* a signal handler's lock beside it */
	CHECK(counts(0, w, FG_ROLE_LINKING, n));

	/* Id 0 is nobody's, so a free word is not this thread's. */
	actor_slot(&a)->owner_id = 0;
	word = 0;
	CHECK(!counts(0, w, FG_ROLE_NONE, 0));
	actor_join(&a);
	monitor_stop(&m);
	return 0;
}
