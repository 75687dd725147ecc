/* SPDX-License-Identifier: MIT */
/*
 * The FlexGuard lock as published: Laforet, Kashyap, Iorgulescu, Lawall, Lozi, SOSP 2025, Listing
 * 2, with its one system-wide counter.  Numbers in comments are the listing's lines.
 *
 * The text and its artifact count the preemption of different threads:
 *
 *   the text (section 3.2.2)  the owner, and the head of the queue (the "next waiter").  A waiter
 *                             that is taken off its CPU in mid-queue, and becomes the head
 *                             there, is nobody's event: all spin until the scheduler brings it
 *                             back
 *   as built                  the owner, and those in mid-queue; not the head.  The artifact
 *                             judges by the ranges between labels in lock(), and GCC moves the
 *                             labelled blocks (docs/design/zoo.md)
 *
 * Ours instead of the paper's: the monitor is told by the slot (sections, role, node) and not by
 * addresses of instructions and a register, so that a step that may take the lock counts from its
 * beginning, also if it does not; each wait has a node of its own, which never goes away, where the
 * paper has one a thread; and without a monitor, or when it has died, they all sleep: nobody says
 * then that the owner runs.
 *
 * Variants that the paper discusses, each with one thing more.  Than the text's: a counter for each
 * lock (section 3.2.2), that is whether its owner and the head of its queue are off their CPUs,
 * both of which the slots tell; they do not tell of those in mid-queue whose lock that is, so that
 * there is none as built.  Than what was built: blocking instead of spinning where a thread that
 * leaves the queue waits for its successor to link itself (lines 16-17), and time-slice extension
 * from before the lock is taken to after its release (section 5).
 */
#include "runtime/decide.h"
#include "runtime/thread.h"
#include "zoo/extension.h"
#include "zoo/zoo.h"

enum { UNLOCKED, LOCKED, LOCKED_WITH_BLOCKED_WAITERS };
enum { AS_TEXT = 0, AS_BUILT = 1, PER_LOCK = 2, BLOCKING_EXIT = 4, EXTENSION = 8 };
enum { NOBODY_SLEEPS, SLEEPS, LINKED }; /* in the word of a node that is left */
/* a node's status, as the monitor reads it */
enum { WAITING = FG_NODE_WAITING, AT_HEAD = FG_NODE_GRANTED };

#define INLINE static inline __attribute__((always_inline))

static uint32_t *val_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

/* Id of the head of the queue; 0: none, or it has not said so yet. */
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

/* ---- what the monitor says --------------------------------------------------------- */

#define ALIVE_EVERY 1024u /* questions between two looks at whether it lives; not varied */

INLINE bool monitored(void)
{
	return fg_load_relaxed(&fg_load_relaxed(&fg_counters)->heartbeat_ns) != 0;
}

INLINE bool spinning(struct zoo_mutex *m, struct fg_self *t, unsigned variant)
{
	static __thread uint32_t asked;

	if (fg_unlikely(++asked % ALIVE_EVERY == 0))
		fg_monitor_look(t);
	if (fg_unlikely(!monitored()))
		return false;
	if (!fg_policy_anybody_preempted())
		return true;
	return variant & PER_LOCK && !is_off(fg_load_relaxed(&m->holder)) &&
	       !is_off(fg_load_relaxed(head_of(m)));
}

/* ---- what it is told ------------------------------------------------------------------ */

/* Around each step that may take the lock. */
INLINE void may_take(struct fg_self *t, unsigned variant)
{
	if (variant & EXTENSION)
		zoo_extend_begin();
	if (!(variant & AS_BUILT))
		fg_section_enter(t);
}

INLINE void took_not(struct fg_self *t, unsigned variant)
{
	if (!(variant & AS_BUILT))
		fg_section_leave(t);
	if (variant & EXTENSION)
		zoo_extend_end();
}

INLINE uint32_t take(struct zoo_mutex *m, struct fg_self *t, unsigned variant)
{
	uint32_t state = UNLOCKED;

	may_take(t, variant);
	if (!__atomic_compare_exchange_n(val_of(m), &state, LOCKED, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		took_not(t, variant);
	return state;
}

/* By one that sleeps if it is held. */
INLINE uint32_t take_or_mark(struct zoo_mutex *m, struct fg_self *t, unsigned variant)
{
	uint32_t state;

	may_take(t, variant);
	state = fg_xchg_acquire(val_of(m), LOCKED_WITH_BLOCKED_WAITERS);
	if (state != UNLOCKED)
		took_not(t, variant);
	return state;
}

/* As built: parts of lock() that were moved behind its last label. */
INLINE void moved_block_begins(struct fg_self *t, unsigned variant)
{
	if (variant & AS_BUILT)
		fg_section_enter(t);
}

INLINE void moved_block_ends(struct fg_self *t, unsigned variant)
{
	if (variant & AS_BUILT)
		fg_section_leave(t);
}

/* A lock that a signal handler takes has a wait of its own in the middle of another's. */
struct published {
	uint64_t node;
	enum fg_role role;
};

INLINE void publish(struct fg_self *t, enum fg_role role, uint64_t node)
{
	fg_set_role(t, FG_ROLE_NONE);
	fg_store_relaxed(&t->slot->node, node);
	fg_fence_local();
	fg_set_role(t, role);
}

/* ---- the queue ---------------------------------------------------------------------- */

/* 13 */
INLINE void mcs_exit(struct zoo_mutex *m, struct fg_self *t, struct zoo_node *me, unsigned variant)
{
	struct zoo_node *expected = me, *next = fg_load_acquire(&me->next);

	if (!next) {
		moved_block_begins(t, variant);
		if (__atomic_compare_exchange_n(queue_of(m), &expected, NULL, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
			moved_block_ends(t, variant);
			zoo_node_put(me);
			return;
		}
		while (!(next = fg_load_acquire(&me->next))) {
			if (!(variant & BLOCKING_EXIT) || spinning(m, t, variant)) {
				zoo_pause();
				continue;
			}
			/* Either it sees that I sleep, or I see that it is linked. */
			__atomic_exchange_n(leaving(me), SLEEPS, __ATOMIC_SEQ_CST);
			if (!__atomic_load_n(&me->next, __ATOMIC_SEQ_CST))
				zoo_park(leaving(me), SLEEPS);
		}
		moved_block_ends(t, variant);
	}
	fg_store_release(&next->status, AT_HEAD); /* waiting = False */
	zoo_node_put(me);
}

/* 36 */
INLINE struct zoo_node *enter_queue(struct zoo_mutex *m, struct fg_self *t, unsigned variant)
{
	struct zoo_node *me = zoo_node_get(), *before;

	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, WAITING);
	fg_store_relaxed(leaving(me), NOBODY_SLEEPS);
	if (!(variant & AS_BUILT))
		publish(t, FG_ROLE_LINKING, (uint64_t)(uintptr_t)&me->status);
	before = __atomic_exchange_n(queue_of(m), me, __ATOMIC_ACQ_REL);
	if (!before) {
		fg_store_relaxed(&me->status, AT_HEAD);
		if (!(variant & AS_BUILT))
			fg_set_role(t, FG_ROLE_HEAD);
	} else {
		/*
		 * From here on it counts if, when it is taken off its CPU, somebody has made it the
		 * head.
		 */
		if (!(variant & AS_BUILT))
			fg_set_role(t, FG_ROLE_WAITING);
		moved_block_begins(t, variant);
		__atomic_store_n(&before->next, me, __ATOMIC_SEQ_CST);
		/* It may be another wait's node by now, which then looks again. */
		if (variant & BLOCKING_EXIT &&
		    __atomic_exchange_n(leaving(before), LINKED, __ATOMIC_SEQ_CST) == SLEEPS)
			zoo_unpark(leaving(before));
		while (fg_load_acquire(&me->status) == WAITING && spinning(m, t, variant))
			zoo_pause();
		moved_block_ends(t, variant);
	}
	if (variant & PER_LOCK)
		fg_store_relaxed(head_of(m), t->id);
	return me;
}

INLINE void leave_queue(struct zoo_mutex *m, struct fg_self *t, struct zoo_node *me,
			const struct published *was, unsigned variant)
{
	uint32_t id = t->id;

	/* Or wherever it goes to sleep later, the head of this lock would be off its CPU. */
	if (variant & PER_LOCK)
		fg_cas_relaxed(head_of(m), &id, 0);
	mcs_exit(m, t, me, variant);
	if (!(variant & AS_BUILT))
		publish(t, was->role, was->node);
}

/* ---- the lock ------------------------------------------------------------------------- */

/* Ends lock() and trylock(). */
INLINE void got(struct zoo_mutex *m, struct fg_self *t, unsigned variant)
{
	if (variant & PER_LOCK)
		fg_store_relaxed(&m->holder, t->id);
	if (variant & AS_BUILT)
		/* its cs_counter counts in all of lock(), but only outside are there no labels */
		fg_section_enter(t);
}

INLINE bool lock_as(struct zoo_mutex *m, unsigned variant)
{
	struct fg_self *t = fg_self();
	struct published was = {t->slot->node, t->role};
	struct zoo_node *node;
	uint32_t state;

	if (fg_unlikely(!monitored()))
		fg_monitor_look(t); /* or for another one */
again:
	node = spinning(m, t, variant) ? enter_queue(m, t, variant) : NULL;
	state = take(m, t, variant); /* 47 */
	while (state != UNLOCKED) {
		if (spinning(m, t, variant)) {
			zoo_pause();
			state = fg_load_relaxed(val_of(m)) == UNLOCKED ? take(m, t, variant) :
									 LOCKED;
			continue;
		}
		fg_count(t, FG_STAT_PREEMPTIONS, monitored());
		if (node) {
			leave_queue(m, t, node, &was, variant);
			node = NULL;
		}
		if (state != LOCKED_WITH_BLOCKED_WAITERS)
			state = take_or_mark(m, t, variant);
		if (state != UNLOCKED) {
			zoo_wait(m, val_of(m), LOCKED_WITH_BLOCKED_WAITERS, NULL);
			state = take_or_mark(m, t, variant);
			if (state != UNLOCKED && spinning(m, t, variant))
				goto again; /* 62 */
		}
	}
	if (node) /* 63 */
		leave_queue(m, t, node, &was, variant);
	got(m, t, variant);
	return true;
}

INLINE bool trylock_as(struct zoo_mutex *m, unsigned variant) /* 28 */
{
	struct fg_self *t = fg_self();

	if (fg_load_relaxed(val_of(m)) != UNLOCKED || take(m, t, variant) != UNLOCKED)
		return false;
	got(m, t, variant);
	return true;
}

INLINE void unlock_as(struct zoo_mutex *m, unsigned variant) /* 21 */
{
	bool sleepers, shared = zoo_is_shared(m);
	struct fg_self *t = fg_self();

	if (variant & PER_LOCK)
		fg_store_relaxed(&m->holder, 0);
	sleepers = __atomic_exchange_n(val_of(m), UNLOCKED, __ATOMIC_RELEASE) ==
		   LOCKED_WITH_BLOCKED_WAITERS;
	if (!(variant & AS_BUILT))
		fg_section_leave(t); /* the text counts no longer: 23 */
	if (sleepers)
		zoo_wake(val_of(m), 1, shared);
	if (variant & EXTENSION)
		zoo_extend_end();
	if (variant & AS_BUILT)
		fg_section_leave(t);
}

#define VARIANT(id, variant, ...)                                                      \
	static bool lock_##id(struct zoo_mutex *m, const struct fg_deadline *deadline) \
	{                                                                              \
		(void)deadline; /* in the middle of a queue nobody can leave */        \
		return lock_as(m, variant);                                            \
	}                                                                              \
	static bool trylock_##id(struct zoo_mutex *m)                                  \
	{                                                                              \
		return trylock_as(m, variant);                                         \
	}                                                                              \
	static void unlock_##id(struct zoo_mutex *m)                                   \
	{                                                                              \
		unlock_as(m, variant);                                                 \
	}                                                                              \
	const struct zoo_lock zoo_##id = {                                             \
	    .lock = lock_##id, .trylock = trylock_##id, .unlock = unlock_##id, __VA_ARGS__};

VARIANT(paper, AS_TEXT, )
VARIANT(paperbuilt, AS_BUILT, )
VARIANT(paperperlock, PER_LOCK, )
VARIANT(paperblockingexit, AS_BUILT | BLOCKING_EXIT, )
VARIANT(paperext, AS_BUILT | EXTENSION, .start = zoo_extension_enable)
