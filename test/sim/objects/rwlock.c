/* SPDX-License-Identifier: MIT */
/*
 * Reader-writer locks, the product's and those of the zoo: a writer is alone, readers see what
 * writers have done as a whole; a thread that reads may read again.
 */
#include "objects/objects.h"

#include <errno.h>
#include <string.h>

#include "lock/rwlock_paths.h"
#include "zoo/rwlock.h"

/* Of two columns of the table, if it has so many: a thread may read both. */
#define LOCKS 2

static struct place {
	union {
		struct fg_rwlock fg;
		struct zoo_rwlock zoo;
	} lock __attribute__((aligned(64)));
	uint64_t data[8] __attribute__((aligned(64)));
	uint64_t unused[8 * 61], second[8];
} place[LOCKS] __attribute__((aligned(4096)));
static struct {
	int readers, writers;
} inside[LOCKS];
static struct {
	struct about all, writers;
} about[LOCKS];
static int owed[LOCKS]; /* read locks that whoever comes next releases */
static const struct zoo_rwlock_ops *zoo;

static bool choose(const char *name)
{
	if (!strcmp(name, "flexguard"))
		return true;
#define ZOO(id, name_, ...)         \
	if (!strcmp(name, name_)) { \
		zoo = &zoo_##id;    \
		return true;        \
	}
	ZOO_RWLOCK_TABLE(ZOO)
#undef ZOO
	return false;
}

static UNSEEN void reset(void)
{
	memset(place, 0, sizeof(place));
	memset(inside, 0, sizeof(inside));
	memset(about, 0, sizeof(about));
	memset(owed, 0, sizeof(owed));
	for (int i = 0; i < LOCKS; i++) {
		weak_watch(place[i].data);
		weak_watch(place[i].second);
		if (one_in(4))
			place[i].lock.fg.kind = FG_RW_WRITERS_FIRST;
		/* as after many readers, or a few */
		place[i].lock.fg.bias = (uint32_t)(rng() % 3); /* enum fg_rw_bias */
		place[i].lock.fg.table = place[i].lock.fg.bias ? FG_RW_TABLE_OWN : FG_RW_TABLE_OLD;
		place[i].lock.fg.inhibit = place[i].lock.fg.bias || one_in(2) ? 0 : -FG_RW_FIRST_NS;
		mem_class(&place[i].lock, sizeof(place[i].lock), C_LOCK);
		mem_class(place[i].data, sizeof(place[i].data), C_DATA);
		mem_class(place[i].second, sizeof(place[i].second), C_DATA);
	}
	if (zoo)
		for (int i = 0; i < LOCKS; i++)
			memset(&place[i].lock, 0, sizeof(place[i].lock));
	mem_class(_fg_visible, sizeof(_fg_visible), C_NODE);
	fg_asymmetric = one_in(4) ? FG_SYMMETRIC : FG_ASYMMETRIC;
}

/* As a reader makes a lock that has been read for long. */
static void becomes_asymmetric(struct fg_rwlock *rw)
{
	uint32_t bias = FG_RW_BIASED;

	if (one_in(8) && __atomic_load_n(&fg_asymmetric, __ATOMIC_RELAXED) == FG_ASYMMETRIC)
		fg_cas_acq_rel(&rw->bias, &bias, FG_RW_ASYMMETRIC);
}

static UNSEEN void enter(int which, bool write)
{
	if (inside[which].writers || (write && inside[which].readers))
		violation("somebody else is in beside the writer");
	if (write)
		inside[which].writers++;
	else
		inside[which].readers++;
}

static UNSEEN void leave(int which, bool write)
{
	if (write)
		inside[which].writers--;
	else
		inside[which].readers--;
}

static UNSEEN int comes(int which, bool write)
{
	int looked = come(&about[which].all);

	return write ? (come(&about[which].writers), looked) : look_about(&about[which].writers);
}

static UNSEEN void has_left(int which, bool write)
{
	gone(&about[which].all);
	if (write)
		gone(&about[which].writers);
}

static UNSEEN void gave_up(int which, bool write, int looked)
{
	if (!zoo && !in_the_way(write ? &about[which].all : &about[which].writers, looked))
		violation(write ? "a writer gave up though nobody was about" :
				  "a reader gave up though no writer was about");
	has_left(which, write);
}

static bool lock(struct place *p, bool write, const struct fg_deadline *d)
{
	int which = (int)(p - place), looked = comes(which, write), r;

	if (zoo)
		r = (write ? zoo->wrlock(&p->lock.zoo, d) : zoo->rdlock(&p->lock.zoo, d)) ?
			0 :
			ETIMEDOUT;
	else
		r = write ? _fg_rwlock_wrlock_untraced(&p->lock.fg, d) :
			    _fg_rwlock_rdlock_untraced(&p->lock.fg, d);
	if (r && (!d || r != ETIMEDOUT))
		violation("a reader-writer lock was refused");
	if (r && d)
		time_was_over(d);
	if (r)
		gave_up(which, write, looked);
	return !r;
}

static bool try_lock(struct place *p, bool write)
{
	int which = (int)(p - place), looked = comes(which, write);
	bool got;

	if (zoo)
		got = write ? zoo->trywr(&p->lock.zoo) : zoo->tryrd(&p->lock.zoo);
	else
		got = !(write ? _fg_rwlock_trywrlock(&p->lock.fg) :
				_fg_rwlock_tryrdlock(&p->lock.fg));
	if (!got)
		gave_up(which, write, looked);
	return got;
}

static void unlock(struct place *p, bool write)
{
	if (!zoo)
		_fg_rwlock_unlock(&p->lock.fg);
	else if (write)
		zoo->wrunlock(&p->lock.zoo);
	else
		zoo->rdunlock(&p->lock.zoo);
	has_left((int)(p - place), write);
}

/* As a writer has whose time was over: the next one that comes finds it so. */
static void is_wanted(void)
{
	struct fg_visible_line *line = fg_visible_mine(&fg_self_tls);

	if (line)
		fg_or_acq_rel(&line->notice, FG_NOTICE_WANTED);
}

static bool leaves_to_another(struct place *p)
{
	if (!load.checks || zoo || load.handlers || !one_in(6))
		return false;
	__atomic_fetch_add(&owed[p - place], 1, __ATOMIC_RELEASE);
	return true;
}

static bool is_owed(int which)
{
	/* the newest, since it waits for it otherwise */
	int have = __atomic_fetch_add(&owed[which], 0, __ATOMIC_RELAXED);

	while (have > 0)
		if (__atomic_compare_exchange_n(&owed[which], &have, have - 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* For others, before it may have to wait for what they have left. */
static void release_what_is_owed(void)
{
	for (int i = 0; i < LOCKS; i++)
		while (is_owed(i)) {
			fg_section_enter(fg_self()); /* as the other has left it */
			unlock(&place[i], false);
		}
}

static void section(struct thread *t, struct place *p, bool write, uint64_t from)
{
	int which = (int)(p - place);
	uint64_t got = gets(t);

	enter(which, write);
	if (write) {
		p->data[0]++;
		work_inside();
		p->second[0]++;
	} else {
		uint64_t seen = p->data[0];

		if (load.checks && !zoo && one_in(4))
			is_wanted();
		work_inside();
		if (seen != p->second[0])
			violation("a reader saw half of what a writer did");
	}
	leave(which, write);
	if (!write && leaves_to_another(p))
		fg_section_leave(fg_self()); /* also if it is back by now */
	else
		unlock(p, write);
	record(t, from, got);
}

static void op(struct thread *t)
{
	bool write = load.writes && one_in((uint32_t)load.writes);
	uint64_t from = begins(t);

	lock(&place[0], write, NULL);
	section(t, &place[0], write, from);
}

/* Or tries to, or for some time only. */
static bool lock_somehow(struct place *p, bool write)
{
	struct fg_deadline d;

	switch (rng() % 8) {
	case 0: return try_lock(p, write);
	case 1:
	case 2: fg_deadline_in(&d, some_ns()); return lock(p, write, &d);
	}
	return lock(p, write, NULL);
}

/* With a read lock of the first; never the other way round. */
static void take_the_second(struct thread *t)
{
	bool write = one_in(4);
	uint64_t from = now();

	enter(0, false);
	if (lock_somehow(&place[1], write))
		section(t, &place[1], write, from);
	leave(0, false);
}

static void check(struct thread *t)
{
	for (int i = 0; i < load.rounds; i++) {
		int which = one_in(4);
		struct place *p = &place[which];
		bool write = one_in(3), again;
		uint64_t from = now();

		if (load.checks && !zoo && one_in(30))
			fg_asymmetric_ends();
		if (load.checks && !zoo)
			becomes_asymmetric(&p->lock.fg);
		release_what_is_owed();
		if (lock_somehow(p, write)) {
			again = !zoo && !write && p->lock.fg.kind != FG_RW_WRITERS_FIRST &&
				one_in(4);
			if (again) {
				enter(which, false);
				if (one_in(2)) {
					lock(p, false, NULL);
				} else {
					again = try_lock(p, false);
				}
				leave(which, false);
			}
			if (!write && !which && one_in(3))
				take_the_second(t);
			if (again)
				unlock(p, false);
			section(t, p, write, from);
		}
		some_work();
	}
	release_what_is_owed();
}

static UNSEEN void after(void)
{
	if (!zoo)
		nothing_is_said();
	for (int i = 0; i < LOCKS; i++) {
		struct fg_rwlock *rw = &place[i].lock.fg;

		if (inside[i].readers || inside[i].writers)
			violation("a reader-writer lock is held by nobody");
		if (place[i].data[0] != place[i].second[0])
			violation("a writer's section was done by half");
		if (zoo)
			continue;
		if ((rw->readers & COUNT) || (rw->gate.word & FG_WORD_ID))
			violation("a free reader-writer lock counts somebody");
		if ((rw->readers & DRAINER_SLEEPS) || rw->gate.word || rw->gate.tail)
			violation("a free reader-writer lock says that somebody waits");
		for (int line = 0; line < FG_VISIBLE_LINES; line++)
			if (fg_visible_reads(&_fg_visible[line], rw))
				violation("the table has a reader of a free reader-writer lock");
	}
}

const struct object object_rwlock = {
    .name = "rwlock", .lock = choose, .reset = reset, .op = op, .check = check, .after = after};
