/* SPDX-License-Identifier: MIT */
/*
 * Which threads of the published lock count when they are taken off their CPU: of the text, the
 * owner and the head of the queue; as built, the owner and those behind the head
 * (docs/design/zoo.md).  When their monitor dies, or there is none, they sleep.
 *
 * The library's own objects are part of this program, which plays the monitor: it keeps the
 * counters, and judges the slots by the rule in abi/protocol.h.
 */
#include "plays_monitor.h"
#include "zoo/zoo.h"

static bool critical(const struct fg_slot *s)
{
	uint32_t role = LOAD(s->role);
	const uint32_t *node = (const uint32_t *)(uintptr_t)LOAD(s->node);

	return LOAD(s->cs) || LOAD(s->sections) || role == FG_ROLE_LINKING ||
	       role == FG_ROLE_HEAD || (role == FG_ROLE_WAITING && LOAD(*node) == FG_NODE_GRANTED);
}

struct user {
	const struct zoo_lock *z;
	struct zoo_mutex *m;
	struct fg_slot *slot; /* when it is about to lock */
	int locked, release, unlocked, stay;
	pthread_t thread;
};

static void *use(void *arg)
{
	struct user *u = arg;

	STORE(u->slot, fg_self()->slot);
	u->z->lock(u->m, NULL);
	STORE(u->locked, 1);
	while (!LOAD(u->release))
		sched_yield();
	u->z->unlock(u->m);
	STORE(u->unlocked, 1);
	while (LOAD(u->stay))
		sched_yield();
	return NULL;
}

static void begin(struct user *u, const struct zoo_lock *z, struct zoo_mutex *m)
{
	*u = (struct user){.z = z, .m = m};
	u->thread = start(use, u);
	AWAIT(LOAD(u->slot));
}

static void *tail(struct zoo_mutex *m)
{
	return LOAD(m->s.p[1]);
}

static void end(struct user *u)
{
	STORE(u->release, 1);
	join(u->thread);
}

/* Owner, head, and one behind. */
static void who_counts(const struct zoo_lock *z, bool head, bool behind)
{
	struct zoo_mutex m = {0};
	struct user a, b, c;
	void *first;

	monitor(true);
	begin(&a, z, &m);
	AWAIT(LOAD(a.locked));
	CHECK(critical(a.slot));
	begin(&b, z, &m);
	AWAIT((first = tail(&m)));
	AWAIT(critical(b.slot) == head);
	begin(&c, z, &m);
	AWAIT(tail(&m) != first);
	AWAIT(critical(c.slot) == behind);
	/* And so it stays. */
	for (int i = 0; i < 1000; i++) {
		beat();
		CHECK(critical(a.slot));
		CHECK_EQ(critical(b.slot), head);
		CHECK_EQ(critical(c.slot), behind);
	}
	STORE(a.release, 1);
	AWAIT(LOAD(b.locked));
	AWAIT(critical(b.slot) && critical(c.slot) == head); /* the one behind is the head now */
	AWAIT(!critical(a.slot));
	join(a.thread);
	STORE(b.release, 1);
	AWAIT(LOAD(c.locked));
	AWAIT(!critical(b.slot) && critical(c.slot));
	join(b.thread);
	end(&c);
	CHECK(!LOAD(m.s.u32[0]) && !tail(&m));
}

static bool sleeps(const struct user *u)
{
	return LOAD(u->slot->stats[FG_SLOT_PARKS]) != 0;
}

/* Its counter says for ever that nobody is off a CPU. */
static void monitor_dies(const struct zoo_lock *z)
{
	struct zoo_mutex m = {0};
	struct user a, b, c;
	uint32_t parks;
	void *first;

	monitor(true);
	begin(&a, z, &m);
	AWAIT(LOAD(a.locked));
	begin(&b, z, &m);
	AWAIT((first = tail(&m)));
	begin(&c, z, &m);
	AWAIT(tail(&m) != first);
	parks = LOAD(b.slot->stats[FG_SLOT_PARKS]);
	alive = false;
	AWAIT(LOAD(b.slot->stats[FG_SLOT_PARKS]) != parks);
	AWAIT(sleeps(&c));
	CHECK(!LOAD(b.locked) && !LOAD(c.locked));
	STORE(a.release, 1);
	STORE(b.release, 1);
	STORE(c.release, 1);
	join(a.thread);
	join(b.thread);
	join(c.thread);
}

static void no_monitor(const struct zoo_lock *z)
{
	struct zoo_mutex m = {0};
	struct user a, b;
	uint32_t parks;

	monitor(false);
	begin(&a, z, &m);
	AWAIT(LOAD(a.locked));
	begin(&b, z, &m);
	parks = LOAD(b.slot->stats[FG_SLOT_PARKS]);
	AWAIT(LOAD(b.slot->stats[FG_SLOT_PARKS]) != parks || LOAD(m.s.u32[0]) == 2);
	CHECK(!tail(&m));
	STORE(a.release, 1);
	join(a.thread);
	end(&b);
}

/*
 * A counter a lock: others' owners are off their CPUs, and so is one that was the head, and has
 * nothing to do with the lock any more.
 */
static void former_head_sleeps(const struct zoo_lock *z)
{
	struct zoo_mutex m = {0};
	struct user a, b, c;

	monitor(true);
	begin(&a, z, &m);
	AWAIT(LOAD(a.locked));
	begin(&b, z, &m);
	STORE(b.stay, 1);
	AWAIT(tail(&m) && critical(b.slot));
	end(&a);
	STORE(b.release, 1);
	AWAIT(LOAD(b.unlocked));
	STORE(b.slot->state, FG_STATE_SLEEP);
	STORE(counters.dom[FG_DOMAIN_ALL].preempted, 1);
	begin(&a, z, &m);
	AWAIT(LOAD(a.locked));
	begin(&c, z, &m);
	AWAIT(tail(&m) || LOAD(m.s.u32[0]) == 2); /* it waits, or is about to sleep */
	CHECK(tail(&m));
	end(&a);
	end(&c);
	STORE(counters.dom[FG_DOMAIN_ALL].preempted, 0);
	STORE(b.slot->state, FG_STATE_ON);
	STORE(b.stay, 0);
	join(b.thread);
}

int main(int argc, char **argv)
{
	static const struct zoo_lock *const locks[] = {&zoo_paper, &zoo_paperperlock,
						       &zoo_paperbuilt, &zoo_paperblockingexit};

	check_begin(argv[0], 60);
	for (int i = 0; i < 4; i++) {
		who_counts(locks[i], i < 2, i >= 2);
		monitor_dies(locks[i]);
		no_monitor(locks[i]);
	}
	former_head_sleeps(&zoo_paperperlock);
	return 0;
}
