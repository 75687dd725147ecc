/* SPDX-License-Identifier: MIT */
/*
 * When a thread gives way to another process: if the owner that it waits for shares its CPU as
 * well, is there, and has come later or at the same time (then one of the two does); soon after it
 * has come itself, and once (fg_give_way).  And which waits may do so at all (_fg_gives_way).
 */
#include "../tools/check.h"

#include "lock/give_way.h"
#include "lock/rounds.h"
#include "runtime/policy.h"

#define MS (1000000 >> FG_SHARES_LOG2)

/* So often, since this thread may lose its CPU at any time, and be too late then. */
#define TIMES 100

static struct fg_counters counters;
static uint32_t owner, end;

/* Of three readings of the clock the second is late: a line has been on its way. */
uint64_t __real_fg_now_ns(void);
uint64_t __wrap_fg_now_ns(void);
static uint64_t late_ns, journey_ns;
static int readings;

uint64_t __wrap_fg_now_ns(void)
{
	if (!journey_ns)
		return __real_fg_now_ns() + late_ns;
	readings = readings % 3 + 1;
	if (readings == 2)
		late_ns += journey_ns;
	return late_ns;
}

static void *be_owner(void *arg)
{
	STORE(owner, fg_self()->id);
	UNTIL(LOAD(end));
	return arg;
}

static uint32_t units(void)
{
	return (uint32_t)(fg_now_ns() >> FG_SHARES_LOG2);
}

static struct fg_slot *slot_of_owner(void)
{
	return (struct fg_slot *)fg_slot_look(fg_id_index(owner));
}

struct at {
	uint32_t me, it; /* how long ago I have come, and the owner */
	uint32_t turn;	 /* the owner's */
	enum fg_state state;
	int odd; /* of two that come at the same time, which one? */
};

static bool gives_way(uint32_t waiter, struct at at)
{
	struct fg_slot mine = {.state = FG_STATE_ON}, *its = slot_of_owner();
	struct fg_self self = *fg_self();
	uint64_t slept;

	self.id = waiter;
	self.slot = &mine;
	for (int i = 0; i < TIMES; i++) {
		uint32_t now = units();

		while (((now - at.me + now - at.it) >> 2 & 1) != (uint32_t)at.odd)
			now = units();
		mine.shares_since = now - at.me;
		its->shares_since = now - at.it;
		its->turn = at.turn;
		its->state = at.state;
		slept = fg_give_way(&self, owner);
		CHECK_EQ(slept != 0, mine.shares_since == 0);
		if (slept) {
			CHECK(units() + 1 - (now - at.it) >= at.turn - at.turn / 4);
			return true;
		}
	}
	return false;
}

static void check_turns(void)
{
	uint32_t lower = owner - 1, higher = owner + 1;

	for (int odd = 0; odd < 2; odd++) {
		struct at same = {0, 0, MS, FG_STATE_ON, odd}, at = same;

		CHECK(gives_way(higher, at) == (odd == 1));
		CHECK(gives_way(lower, at) == (odd == 0));
		at.me = MS; /* the owner has come later */
		CHECK(gives_way(higher, at) && gives_way(lower, at));
		at.state = FG_STATE_RUNNABLE;
		CHECK(!gives_way(higher, at) && !gives_way(lower, at));
		at.state = FG_STATE_ON;
		at.turn = 0; /* not known */
		CHECK(!gives_way(higher, at));
		at.turn = 20 * MS;
		CHECK(!gives_way(higher, at));
		at.turn = MS;
		at.me = 3 * MS;
		CHECK(!gives_way(higher, at));
		at = same;
		at.it = MS; /* earlier */
		at.turn = 8 * MS;
		CHECK(!gives_way(higher, at) && !gives_way(lower, at));
		at.me = 2 * MS - MS / 4;
		at.turn = MS; /* it is over */
		CHECK(!gives_way(higher, at) && !gives_way(lower, at));
	}
}

static void check_that_both_share(void)
{
	struct fg_slot mine = {.state = FG_STATE_ON}, *its = slot_of_owner();
	struct fg_self self = *fg_self();

	self.slot = &mine;
	its->state = FG_STATE_ON;
	its->turn = MS;
	for (int i = 0; i < TIMES; i++) {
		mine.shares_since = 0;
		its->shares_since = units() | 1;
		fg_give_way(&self, owner);
		CHECK(!mine.shares_since);
		mine.shares_since = its->shares_since - MS;
		its->shares_since = 0;
		fg_give_way(&self, owner);
		CHECK(mine.shares_since);
	}
}

/* In a wait for `l`, in the last of so many in a row, in turns of the same two. */
static bool shares;
static bool waits(struct fg_lock *l, const struct fg_deadline *deadline, uint32_t its, int in_a_row)
{
	struct fg_self *t = fg_self();
	struct attempt a = {.deadline = deadline};
	uint64_t prev = announce(l, t);
	bool way = false;

	/* In turns that are others each time; of a few waits, in one. */
	for (uint32_t tries = in_a_row < 16 ? TIMES - 1 : 0; !way && tries < TIMES; tries++) {
		t->slot->shares_since = shares ? (units() - MS - 4 * tries) | 1 : 0;
		slot_of_owner()->shares_since = units() | 1;
		slot_of_owner()->turn = MS;
		for (int i = 0; !way && i < in_a_row; i++)
			way = _fg_gives_way(l, t, &a, its);
		CHECK_EQ(t->slot->pending, (uint64_t)(uintptr_t)l);
	}
	CHECK_EQ(a.slept, way);
	not_acquired(t, prev);
	return way;
}

static void check_waits(void)
{
	const struct fg_deadline deadline = {0};
	struct fg_self *t = fg_self();
	struct fg_lock l = {0}, other = {0};

	counters.heartbeat_ns = UINT64_MAX;
	shares = true;
	t->slot->shares_since = 1;
	slot_of_owner()->state = FG_STATE_ON;
	slot_of_owner()->pending = 4096;
	journey_ns = 100;
	for (int i = 0; i < 64; i++)
		_fg_time_journey(t, owner);
	CHECK_EQ(_fg_journeys_ns(12), 1200);
	journey_ns = 0;
	_fg_section_took(t, 0);
	_fg_was_away(t, 0);
	CHECK(!waits(&l, NULL, owner, 100)); /* no monitor */
	fg_policy_monitor(&counters, 1);
	CHECK(!waits(&l, NULL, owner, 2));
	CHECK(waits(&l, NULL, owner, 100));
	CHECK(waits(&l, NULL, owner | FG_WORD_WAITERS, 100));

	CHECK(!waits(&l, &deadline, owner, 100));
	CHECK(!waits(&l, NULL, 0, 100));
	CHECK(!waits(&l, NULL, FG_ID_NO_SLOT | 7, 100));
	l.tail = 1;
	CHECK(!waits(&l, NULL, owner, 100));
	l.tail = 0;
	_fg_lock(&other);
	CHECK(!waits(&l, NULL, owner, 100));
	_fg_unlock(&other);
	fg_sections = 1;
	CHECK(!waits(&l, NULL, owner, 100));
	fg_sections = 0;
	/* One that has left a barrier, now, and long ago as seen from there. */
	t->slot->participant = 1;
	CHECK(waits(&l, NULL, owner, 100));
	fg_participants_are_late();
	CHECK(!waits(&l, NULL, owner, 100));
	t->slot->participant = 0;
	CHECK(waits(&l, NULL, owner, 100));
	t->slot->participant = 1;
	late_ns += 200000000;
	CHECK(waits(&l, NULL, owner, 100));
	t->slot->participant = 0;
	t->role = FG_ROLE_LINKING;
	CHECK(!waits(&l, NULL, owner, 100));
	t->role = FG_ROLE_NONE;
	fg_policy_set(FG_POLICY_PAPER);
	CHECK(!waits(&l, NULL, owner, 100));
	fg_policy_set(FG_POLICY_DEFAULT);
	shares = false;
	CHECK(!waits(&l, NULL, owner, 100));
	shares = true;
	CHECK(waits(&l, NULL, owner, 100));
	t->slot->shares_since = 1;
	for (int i = 0; i < 32; i++)
		_fg_section_took(t, 100000); /* longer than any journeys */
	CHECK(!waits(&l, NULL, owner, 100));
	t->slot->shares_since = 0;
}

int main(int argc, char **argv)
{
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 20);
	t = start(be_owner, NULL);
	UNTIL(LOAD(owner));
	check_turns();
	check_that_both_share();
	check_waits();
	slot_of_owner()->shares_since = 0;
	slot_of_owner()->pending = 0;
	STORE(end, 1);
	join(t);
	return 0;
}
