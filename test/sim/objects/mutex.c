/* SPDX-License-Identifier: MIT */
/* Mutexes, the product's and those of the zoo: nobody else is in the section. */
#include "objects/objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lock/held.h"
#include "lock/offer.h"
#include "lock/queue.h"
#include "zoo/zoo.h"

static struct place {
	union {
		struct fg_lock fg;
		struct zoo_mutex zoo;
	} lock __attribute__((aligned(64)));
	uint64_t data[8] __attribute__((aligned(64)));
	uint64_t unused[8], second[8];
} __attribute__((aligned(64))) * place;
static uint8_t *inside; /* of no cache line: see enter() */
static struct about *about;
static uint64_t counted; /* in all of them */
static const struct zoo_lock *zoo;
static unsigned zoo_can;

static const struct {
	const char *name;
	const struct zoo_lock *zoo;
	unsigned can;
} table[] = {{"flexguard", NULL, 0},
#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	{name, &zoo_##id, can},
	     ZOO_TABLE(ZOO)
#undef ZOO
};

static bool choose(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, name)) {
			zoo = table[i].zoo;
			zoo_can = table[i].can;
			/* Not here: glibc's, and what is in the kernel. */
			return !zoo || (zoo->lock && zoo != &zoo_sysv && zoo != &zoo_fcntl);
		}
	return false;
}

/* Of millions of locks most are never touched. */
static UNSEEN void *zeroes(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/*
 * What its owners have left to thread 0 to release, in the order of that.  How it hears of that is
 * the program's affair, and orders what the owner has done before: `told_by`.
 */
static uint32_t told_by;
static struct left {
	int owners; /* threads that go on */
	int n;
	int which[CHECK_THREADS];
	uint32_t owner[CHECK_THREADS];
} left;

static UNSEEN void reset(void)
{
	size_t n = (size_t)load.locks;

	if (place) {
		memset(place, 0, n * sizeof(*place));
		memset(inside, 0, n * sizeof(*inside));
		memset(about, 0, n * sizeof(*about));
	} else {
		place = zeroes(n * sizeof(*place));
		inside = zeroes(n * sizeof(*inside));
		about = zeroes(n * sizeof(*about));
	}
	counted = 0;
	left = (struct left){.owners = load.threads - 1};
	for (int i = 0; i < load.locks && i < 4; i++) {
		weak_watch(place[i].data);
		weak_watch(place[i].second);
	}
	mem_class_each(&place->lock, sizeof(place->lock), sizeof(*place), n, C_LOCK);
	mem_class_each(place->data, sizeof(place->data) + 128, sizeof(*place), n, C_DATA);
}

/* True: it changes what the mutex guards. */
static UNSEEN bool enter(struct thread *t, int which)
{
	bool changes = !load.half_look || t->ops % 2;

	if (inside[which]++)
		violation("two threads have the mutex");
	counted += changes;
	return changes;
}

static UNSEEN void leave(int which)
{
	inside[which]--;
}

/* As zoo/mutex.c does.  False: its time was over. */
static bool lock_until(struct place *p, const struct fg_deadline *d)
{
	if (!zoo)
		return _fg_lock_fast(&p->lock.fg) || !_fg_lock_slow_any(&p->lock.fg, d);
	return (!zoo->untried && (zoo->first ? zoo->first : zoo->trylock)(&p->lock.zoo)) ||
	       zoo->lock(&p->lock.zoo, d);
}

static void lock(struct place *p)
{
	lock_until(p, NULL);
}

static void unlock(struct place *p)
{
	if (zoo)
		zoo->unlock(&p->lock.zoo);
	else
		_fg_unlock(&p->lock.fg);
}

static void release(void *arg)
{
	struct place *p = arg;

	leave((int)(p - place));
	unlock(p);
}

static void inside_of(struct thread *t, struct place *p)
{
	if (enter(t, (int)(p - place))) {
		p->data[0]++;
		p->second[0]++;
	} else if (p->data[0] != p->second[0]) {
		violation("a section saw half of another");
	}
	work_inside();
}

static void section(struct thread *t, struct place *p, uint64_t from)
{
	int which = (int)(p - place);
	uint64_t got = gets(t);

	inside_of(t, p);
	if (load.forks)
		fork_sometimes(t, release, p);
	leave(which);
	unlock(p);
	record(t, from, got);
}

/* Hand over hand, from the first one to another. */
static void op_coupled(struct thread *t)
{
	struct place *p = &place[1 + rng() % (uint32_t)(load.locks - 1)];
	uint64_t from = begins(t);

	lock(place);
	inside_of(t, place);
	lock(p);
	leave(0);
	unlock(place);
	section(t, p, from);
}

static void op_nested(struct thread *t)
{
	struct place *own = &place[1 + t->id % (load.locks - 1)];
	uint64_t from;

	lock(own);
	from = begins(t);
	lock(place);
	section(t, place, from);
	unlock(own);
}

static void op(struct thread *t)
{
	struct place *p = &place[load_which()];
	uint64_t from = begins(t);

	lock(p);
	section(t, p, from);
}

static UNSEEN void op_of_load(struct thread *t)
{
	if (load.coupled && load.locks > 1)
		op_coupled(t);
	else if (load.nested && load.locks > 1)
		op_nested(t);
	else
		op(t);
	for (int i = 1; i < load.sections; i++) {
		sim_work(100 * NS);
		op(t);
	}
}

static UNSEEN void sum(void)
{
	uint64_t n = 0;

	for (int i = 0; i < load.locks; i++)
		n += place[i].second[0];
	if (n > counted || n + (uint64_t)load.threads < counted)
		violation("what the sections counted does not add up");
}

/* Or tries to, or for some time only. */
static bool lock_somehow(struct place *p)
{
	struct fg_deadline d;

	switch (rng() % 8) {
	case 0:
		if (zoo && !(zoo_can & ZOO_TIMED))
			break;
		fg_deadline_in(&d, some_ns());
		if (lock_until(p, &d))
			return true;
		time_was_over(&d);
		return false;
	case 1: return zoo ? zoo->trylock(&p->lock.zoo) : _fg_trylock(&p->lock.fg);
	}
	lock(p);
	return true;
}

/* Another one as well, of a higher number, so that none waits in a circle; then goes the first. */
static void take_the_next(struct thread *t, int which)
{
	int next = which + 1;
	uint64_t from = now();

	inside_of(t, &place[which]);
	come(&about[next]);
	lock(&place[next]);
	inside_of(t, &place[next]);
	if (one_in(2)) {
		leave(next);
		unlock(&place[next]);
		leave(which);
		unlock(&place[which]);
	} else {
		leave(which);
		unlock(&place[which]);
		leave(next);
		unlock(&place[next]);
	}
	gone(&about[next]);
	record(t, from, now());
}

/*
 * What a thread has seen of its rounds, and whether it keeps a lock busy, are hints: anything goes.
 * A schedule is too short for its threads to find out.
 */
static UNSEEN void think_anything(const struct place *p)
{
	struct fg_self *t = &fg_self_tls;

	if (zoo || !fg_id_has_slot(t->id) || !one_in(4))
		return;
	t->short_rounds = rng() & 3;
	fg_thread_mine(t)->in_vain = rng() & 3;
	t->keeps_busy = one_in(2);
	t->busy_releases = rng() & 15;
	fg_thread_mine(t)->kept_busy = (uint32_t)(uintptr_t)p;
}

static UNSEEN void handler_has(int which)
{
	if (inside[which]++)
		violation("a signal handler has the mutex of another thread");
	counted++;
}

/* One that its thread may be at; and another, before it or beside it, and released in any order. */
static void handle_one_of_all(void)
{
	int which = (int)(rng() % (uint64_t)load.locks);
	struct place *p = &place[which];
	bool other = one_in(4);

	come(&about[which]);
	if (other)
		handlers_enter();
	if (_fg_trylock(&p->lock.fg)) {
		handlers_see_owner();
		handler_has(which);
		p->data[0]++;
		p->second[0]++;
		if (!other && one_in(4)) {
			other = true;
			handlers_enter();
		}
		if (other && one_in(2)) {
			other = false;
			handlers_leave();
			handlers_see_owner();
		}
		leave(which);
		unlock(p);
	}
	gone(&about[which]);
	if (other)
		handlers_leave();
}

static UNSEEN void leave_to_another(int which)
{
	leave(which);
	left.which[left.n] = which;
	left.owner[left.n++] = fg_id_index(fg_self_tls.id);
}

static UNSEEN bool is_left(int *which, uint32_t *owner)
{
	if (!left.n)
		return false;
	*which = left.which[0];
	*owner = left.owner[0];
	left.n--;
	memmove(left.which, left.which + 1, (size_t)left.n * sizeof(*left.which));
	memmove(left.owner, left.owner + 1, (size_t)left.n * sizeof(*left.owner));
	return true;
}

static UNSEEN uint32_t told(uint32_t index)
{
	return fg_chunks[0] ? fg_chunks[0]->thread[index].released & FG_RELEASED_COUNT : 0;
}

static UNSEEN void are_told(uint32_t *of)
{
	for (uint32_t i = 1; i < FG_PIECE; i++)
		of[i] = told(i);
}

static UNSEEN void nobody_else_is_told(const uint32_t *before, uint32_t owner)
{
	for (uint32_t i = 1; i < FG_PIECE; i++)
		if (i != owner && told(i) > before[i])
			violation("another thread is told of the release");
}

static UNSEEN bool others_go_on(void)
{
	return left.owners || left.n;
}

/*
 * Who releases for others has a mutex at times, too: the word says so for longer, if it is given
 * on.  Not for ever, as what is left nobody else releases.
 */
static void has_it_too(struct thread *t)
{
	struct place *p = &place[load_which()];
	struct fg_deadline d;
	uint64_t from = now();

	fg_deadline_in(&d, some_ns());
	if (lock_until(p, &d))
		section(t, p, from);
	else
		time_was_over(&d);
}

static void release_for_others(struct thread *t)
{
	uint32_t before[FG_PIECE], owner;
	int which;

	while (others_go_on()) {
		if (is_left(&which, &owner)) {
			__atomic_fetch_add(&told_by, 0, __ATOMIC_ACQUIRE);
			are_told(before);
			unlock(&place[which]);
			nobody_else_is_told(before, owner);
		} else if (one_in(8)) {
			has_it_too(t);
		} else {
			some_work();
		}
	}
}

static UNSEEN void ends(struct thread *t)
{
	t->interrupt = 0;
	if (load.foreign)
		left.owners--;
}

static void check(struct thread *t)
{
	if (load.foreign && t->role == 0) {
		release_for_others(t);
		return;
	}
	handlers_arm(t);
	for (int i = 0; i < load.rounds; i++) {
		int which = load_which(), looked = come(&about[which]);
		uint64_t from = now();

		think_anything(&place[which]);
		if (lock_somehow(&place[which])) {
			if (load.handlers)
				handlers_see_owner();
			if (which + 1 < load.locks && !load.forks && one_in(2)) {
				take_the_next(t, which);
			} else if (load.foreign && one_in(2)) {
				inside_of(t, &place[which]);
				__atomic_fetch_add(&told_by, 1, __ATOMIC_RELEASE);
				leave_to_another(which);
			} else {
				section(t, &place[which], from);
			}
		} else if (!zoo && !load.foreign && !in_the_way(&about[which], looked)) {
			violation("a thread gave up though nobody was about");
		}
		gone(&about[which]);
		some_work();
	}
	ends(t);
	if (load.foreign && fg_has_slot(&fg_self_tls)) { /* _fg_lock_thread_ends() */
		_fg_queue_thread_ends(&fg_self_tls);
		_fg_offer_thread_ends(&fg_self_tls);
	}
}

/* What others had of other mutexes is theirs for ever; there is one. */
static UNSEEN void renew(void)
{
}

/*
 * Whose it is: of one that was given it the word does not say so.  ~0: of this one, which does not
 * know yet, and nor does its child; or of another that is about to give it on, or just has.  Plain
 * accesses: nothing happens in between.
 */
static UNSEEN uint32_t owner_of(const struct fg_lock *l)
{
	uint32_t owner = l->word & FG_WORD_ID, mine = 0;

	for (uint32_t i = 1; i < FG_PIECE && fg_chunks[0]; i++) {
		const struct fg_slot *slot = &fg_chunks[0]->slot[i];

		if (slot->role == FG_ROLE_WAITING && slot->node &&
		    (*(uint32_t *)(uintptr_t)slot->node & FG_NODE_STATE_MASK) == FG_NODE_HEAD)
			return ~0u;
		if (slot->cs && slot->owner_id != fg_self_tls.id)
			return ~0u;
		if (fg_chunks[0]->thread[i].offer != ((uintptr_t)l | FG_OFFER_GIVEN))
			continue;
		if (slot->owner_id != fg_self_tls.id)
			return slot->owner_id;
		mine = slot->owner_id; /* and perhaps no longer */
	}
	return mine ? mine : owner;
}

/* In the middle of taking or releasing it, unless another thread has it: that would be for good. */
static UNSEEN void interrupt(struct thread *t)
{
	uint32_t owner;

	if (load.handlers) {
		if (one_in(2)) {
			handle_one_of_all();
			handlers_arm(t);
		} else {
			handlers_interrupt(t);
		}
		return;
	}
	owner = owner_of(&place[0].lock.fg);
	if (!zoo && load.forks && (!owner || owner == fg_self_tls.id) && (owner || !inside[0]))
		fork_here();
}

static UNSEEN void after(void)
{
	if (!zoo)
		nothing_is_said();
	for (uint32_t i = 1; i < FG_PIECE && fg_chunks[0] && !zoo; i++)
		if (fg_chunks[0]->thread[i].offer)
			violation("a thread has an offer, or a lock, in the end");
	for (int i = 0; i < load.locks; i++) {
		if (inside[i])
			violation("a mutex is held by nobody");
		if (!zoo && (place[i].lock.fg.word & FG_WORD_ID))
			violation("the word of a free mutex has an owner");
		if (!zoo && !load.forking && (place[i].lock.fg.word || place[i].lock.fg.tail))
			violation("a free mutex says that somebody waits");
		if (place[i].data[0] != place[i].second[0])
			violation("a section was done by half");
	}
}

const struct object object_mutex = {.name = "mutex",
				    .lock = choose,
				    .reset = reset,
				    .op = op_of_load,
				    .sum = sum,
				    .check = check,
				    .after = after,
				    .renew = renew,
				    .interrupt = interrupt};
