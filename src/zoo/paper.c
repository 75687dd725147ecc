/* SPDX-License-Identifier: MIT */
/*
 * The FlexGuard lock as published: Laforet, Kashyap, Iorgulescu, Lawall, Lozi, SOSP 2025, Listing 2,
 * with its one system-wide counter.  Numbers in comments are the listing's lines.
 *
 * Ours instead of the paper's: the monitor is told of holders and of the queue's head by
 * the slot (sections, role) and not by addresses of instructions; each wait has a node of its
 * own, which never goes away, where the paper has one a thread.
 *
 * Variants that the paper discusses: a counter for each lock (section 3.2: what is counted is whether the
 * owner and the head of the queue are off their CPUs, both of which the slots tell), blocking instead of
 * spinning where a thread that leaves the queue waits for its successor to link itself (lines 16-17), and
 * time-slice extension while the lock is held (section 5).
 */
#include "runtime/decide.h"
#include "runtime/thread.h"
#include "zoo/extension.h"
#include "zoo/zoo.h"

enum { UNLOCKED, LOCKED, LOCKED_WITH_BLOCKED_WAITERS };
enum { PER_LOCK = 1, BLOCKING_EXIT = 2, EXTENSION = 4 };
enum { NOBODY_SLEEPS, SLEEPS, LINKED }; /* in the word of a node that is left */

#define INLINE static inline __attribute__((always_inline))

static uint32_t *val_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

/* Id of the head of the queue, or of a late one. */
static uint32_t *head_of(struct zoo_mutex *m)
{
	return &m->s.u32[1];
}

static struct zoo_node **queue_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[1];
}

static uint32_t *leaving(struct zoo_node *node)
{
	return &node->extra[0];
}

static bool is_off(uint32_t id)
{
	return fg_id_has_slot(id) && fg_is_off_cpu(fg_id_index(id));
}

INLINE bool spinning(struct zoo_mutex *m, unsigned variant)
{
	if (!fg_load_relaxed(&fg_counters->dom[FG_DOMAIN_ALL].p))
		return true;
	return variant & PER_LOCK && !is_off(fg_load_relaxed(&m->holder)) && !is_off(fg_load_relaxed(head_of(m)));
}

static uint32_t take(struct zoo_mutex *m)
{
	uint32_t state = UNLOCKED;

	__atomic_compare_exchange_n(val_of(m), &state, LOCKED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	return state;
}

INLINE void mcs_exit(struct zoo_mutex *m, struct zoo_node *me, unsigned variant) /* 13 */
{
	struct zoo_node *expected = me, *next = fg_load_acquire(&me->next);

	if (!next && __atomic_compare_exchange_n(queue_of(m), &expected, NULL, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return;
	}
	while (!(next = fg_load_acquire(&me->next))) {
		if (!(variant & BLOCKING_EXIT) || spinning(m, variant)) {
			zoo_pause();
			continue;
		}
		/* Either it sees that I sleep, or I see that it is linked. */
		__atomic_exchange_n(leaving(me), SLEEPS, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&me->next, __ATOMIC_SEQ_CST))
			zoo_park(leaving(me), SLEEPS);
	}
	fg_store_release(&next->status, 0); /* waiting = False */
	zoo_node_put(me);
}

INLINE struct zoo_node *enter_queue(struct zoo_mutex *m, struct fg_self *t, unsigned variant) /* 36 */
{
	struct zoo_node *me = zoo_node_get(), *before;

	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, 1);
	fg_store_relaxed(leaving(me), NOBODY_SLEEPS);
	fg_set_role(t, FG_ROLE_LINKING);
	before = __atomic_exchange_n(queue_of(m), me, __ATOMIC_ACQ_REL);
	if (before) {
		__atomic_store_n(&before->next, me, __ATOMIC_SEQ_CST);
		/* It may be another wait's node by now, which then looks again. */
		if (variant & BLOCKING_EXIT && __atomic_exchange_n(leaving(before), LINKED, __ATOMIC_SEQ_CST) == SLEEPS)
			zoo_unpark(leaving(before));
		fg_set_role(t, FG_ROLE_NONE);
		while (fg_load_acquire(&me->status) && spinning(m, variant))
			zoo_pause();
	}
	fg_set_role(t, FG_ROLE_HEAD);
	if (variant & PER_LOCK)
		fg_store_relaxed(head_of(m), t->id);
	return me;
}

INLINE void got(struct zoo_mutex *m, struct fg_self *t, unsigned variant)
{
	if (variant & PER_LOCK)
		fg_store_relaxed(&m->holder, t->id);
}

INLINE bool lock_as(struct zoo_mutex *m, unsigned variant)
{
	struct fg_self *t = fg_self();
	struct zoo_node *node;
	uint32_t state;

	fg_section_enter(t); /* cs_counter; before the word says so */
	if (variant & EXTENSION)
		zoo_extend_begin();
again:
	node = spinning(m, variant) ? enter_queue(m, t, variant) : NULL;
	state = take(m); /* 47 */
	while (state != UNLOCKED) {
		if (spinning(m, variant)) {
			zoo_pause();
			state = fg_load_relaxed(val_of(m)) == UNLOCKED ? take(m) : LOCKED;
			continue;
		}
		fg_count(t, FG_STAT_PREEMPTIONS, 1);
		if (node) {
			mcs_exit(m, node, variant);
			fg_set_role(t, FG_ROLE_NONE);
			node = NULL;
		}
		if (state != LOCKED_WITH_BLOCKED_WAITERS)
			state = fg_xchg_acquire(val_of(m), LOCKED_WITH_BLOCKED_WAITERS);
		if (state != UNLOCKED) {
			fg_section_leave(t); /* asleep it holds nothing */
			zoo_wait(m, val_of(m), LOCKED_WITH_BLOCKED_WAITERS, NULL);
			fg_section_enter(t);
			state = fg_xchg_acquire(val_of(m), LOCKED_WITH_BLOCKED_WAITERS);
			if (state != UNLOCKED && spinning(m, variant))
				goto again; /* 62 */
		}
	}
	got(m, t, variant);
	if (node) { /* 63 */
		mcs_exit(m, node, variant);
		fg_set_role(t, FG_ROLE_NONE);
	}
	return true;
}

INLINE bool trylock_as(struct zoo_mutex *m, unsigned variant) /* 28 */
{
	struct fg_self *t = fg_self();

	if (fg_load_relaxed(val_of(m)) != UNLOCKED)
		return false;
	fg_section_enter(t);
	if (variant & EXTENSION)
		zoo_extend_begin();
	if (take(m) == UNLOCKED) {
		got(m, t, variant);
		return true;
	}
	if (variant & EXTENSION)
		zoo_extend_end();
	fg_section_leave(t);
	return false;
}

INLINE void unlock_as(struct zoo_mutex *m, unsigned variant) /* 21 */
{
	if (variant & PER_LOCK)
		fg_store_relaxed(&m->holder, 0);
	if (__atomic_exchange_n(val_of(m), UNLOCKED, __ATOMIC_RELEASE) == LOCKED_WITH_BLOCKED_WAITERS)
		zoo_wake(m, val_of(m), 1);
	if (variant & EXTENSION)
		zoo_extend_end();
	fg_section_leave(fg_self());
}

#define VARIANT(id, variant, ...)                                                                                      \
	static bool lock_##id(struct zoo_mutex *m, const struct fg_deadline *deadline)                                 \
	{                                                                                                              \
		(void)deadline; /* in the middle of a queue nobody can leave */                                        \
		return lock_as(m, variant);                                                                            \
	}                                                                                                              \
	static bool trylock_##id(struct zoo_mutex *m)                                                                  \
	{                                                                                                              \
		return trylock_as(m, variant);                                                                         \
	}                                                                                                              \
	static void unlock_##id(struct zoo_mutex *m)                                                                   \
	{                                                                                                              \
		unlock_as(m, variant);                                                                                 \
	}                                                                                                              \
	const struct zoo_lock zoo_##id = {                                                                             \
	    .lock = lock_##id, .trylock = trylock_##id, .unlock = unlock_##id, __VA_ARGS__};

VARIANT(paper, 0, )
VARIANT(paperperlock, PER_LOCK, )
VARIANT(paperblockingexit, BLOCKING_EXIT, )
VARIANT(paperext, EXTENSION, .start = zoo_extension_enable)
