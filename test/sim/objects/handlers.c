/* SPDX-License-Identifier: MIT */
/* What signal handlers lock, in any access of their thread: two mutexes of their own. */
#include "objects/objects.h"

#include <string.h>

#include "lock/held.h"

static struct {
	struct fg_lock lock __attribute__((aligned(64)));
	uint64_t data __attribute__((aligned(64)));
} __attribute__((aligned(64))) own[2];
static uint8_t inside[2]; /* of no cache line */

UNSEEN void handlers_reset(void)
{
	memset(own, 0, sizeof(own));
	memset(inside, 0, sizeof(inside));
}

/* The first accesses of a thread set it up. */
UNSEEN void handlers_arm(struct thread *t)
{
	if (load.handlers)
		t->interrupt = 1 + (uint32_t)(rng() % (t->ops ? 600 : 40));
}

UNSEEN void handlers_see_owner(void)
{
	const struct fg_self *t = &fg_self_tls;
	const struct fg_slot *s = t->slot;

	if (!fg_has_slot(t) || load.foreign)
		return;
	if (s->owner_id != t->id)
		violation("a thread has the slot of another id");
	else if (!s->cs && s->role != FG_ROLE_LINKING && s->role != FG_ROLE_HEAD &&
		 (!s->pending || (*(uint32_t *)(uintptr_t)s->pending & FG_WORD_ID) != s->owner_id))
		violation("an owner is not critical");
}

static UNSEEN void enters(int which)
{
	if (inside[which]++)
		violation("two signal handlers have the mutex");
}

static UNSEEN void leaves(int which)
{
	inside[which]--;
}

static void enter(int which)
{
	struct fg_lock *l = &own[which].lock;

	(void)(_fg_lock_fast(l) || _fg_lock_slow_any(l, NULL));
	gets_on();
	enters(which);
	handlers_see_owner();
}

static void leave(int which)
{
	leaves(which);
	_fg_unlock(&own[which].lock);
}

void handlers_enter(void)
{
	enter(0);
}

void handlers_leave(void)
{
	leave(0);
}

static void handle(int which)
{
	enter(which);
	own[which].data++;
	if (which == 0 && one_in(2))
		handle(1);
	leave(which);
}

void handlers_interrupt(struct thread *t)
{
	handle((int)(rng() % 2));
	handlers_arm(t);
}
