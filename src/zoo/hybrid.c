/* SPDX-License-Identifier: MIT */
/*
 * The BPF Hybrid Lock: two locks, a spinlock and a blocking one, and a word that says which of them to take.
 * When the monitor finds the owner preempted, the word is switched to the blocking one, and back when
 * things are calm.  "BPF Hybrid Lock", 2023, section 3; repairs by docs/design/zoo.md.
 *
 *	state	(curr, last): the lock to take, and the one that was taken before the last switch.
 *		stable: they are the same.  Only a stable state is switched, so that two are at most in use.
 *		SLEEPERS: waiters with a ticket sleep.
 *
 * Who has got `curr` looks at the state again.  If it was switched meanwhile, it releases and starts anew.  In a
 * transition it waits for the owner of `last`, by taking that too, and ends the transition; so whoever still gets
 * `last` finds that it is not `curr` any more.  The paper's listing does this without holding `last`, which
 * lets two in (test/verify/hybrid.pml has both).
 *
 * A waiter of the MCS queue leaves it after a switch; those of the others have a number, or somebody behind
 * them, and sleep until their turn instead.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lock/decide.h"
#include "lock/thread.h"
#include "zoo/zoo.h"

enum { SPIN, BLOCK, SIDES };
#define CURR	 1u
#define LAST	 2u
#define SLEEPERS 4u

enum { WAITING = FG_MCS_WAITING, SLEEPING, GRANTED, LEFT }; /* a node's status */

struct side {
	/* False: switched away from this side while waiting; never if `stay`. */
	bool (*lock)(struct zoo_mutex *m, bool stay);
	bool (*trylock)(struct zoo_mutex *m);
	void (*unlock)(struct zoo_mutex *m);
};

static uint32_t *state_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static int curr_of(uint32_t state)
{
	return state & CURR ? BLOCK : SPIN;
}

static int last_of(uint32_t state)
{
	return state & LAST ? BLOCK : SPIN;
}

/* ---- when to switch ------------------------------------------------------------- */

#define CALM_EVERY 256u /* on the blocking side, one wait in so many asks whether to go back */

/* FLEXGUARD_HYBRID, for experiments: auto, published, spin, block, at=MS, threads=N[,M]; for tests: flip. */
static struct {
	enum { AUTO, PUBLISHED, FORCE_SPIN, FORCE_BLOCK, AT, THREADS, FLIP } how;
	uint64_t at_ns;
	uint32_t block_from, spin_from; /* threads; the second: again, 0 never */
} forced;

static uint32_t threads; /* that have used a hybrid lock, and live */
static pthread_key_t thread_key;

static void thread_ends(void *unused)
{
	(void)unused;
	fg_add_relaxed(&threads, -1u);
}

static void count_thread(void)
{
	static __thread bool counted;

	if (fg_likely(counted))
		return;
	counted = true;
	fg_add_relaxed(&threads, 1);
	pthread_setspecific(thread_key, &counted);
}

static const char *start(void)
{
	const char *how = getenv("FLEXGUARD_HYBRID");
	char *end = NULL;

	if (!how || !strcmp(how, "auto"))
		return NULL;
	if (!strcmp(how, "spin") || !strcmp(how, "block")) {
		forced.how = *how == 's' ? FORCE_SPIN : FORCE_BLOCK;
		return NULL;
	}
	if (!strcmp(how, "flip") || !strcmp(how, "published")) {
		forced.how = *how == 'f' ? FLIP : PUBLISHED;
		return NULL;
	}
	if (!strncmp(how, "at=", 3)) {
		forced.at_ns = fg_now_ns() + strtoull(how + 3, &end, 10) * 1000000;
		forced.how = AT;
	} else if (!strncmp(how, "threads=", 8)) {
		forced.block_from = (uint32_t)strtoul(how + 8, &end, 10);
		if (*end == ',')
			forced.spin_from = (uint32_t)strtoul(end + 1, &end, 10);
		forced.how = THREADS;
		pthread_key_create(&thread_key, thread_ends);
	}
	return !end || *end || end[-1] == '=' || end[-1] == ',' ?
		       "FLEXGUARD_HYBRID is one of auto, published, spin, block, at=MILLISECONDS, threads=N[,M]" : NULL;
}

/*
 * The published test is the monitor's, when it takes a thread off its CPU: is it an owner?  A waiter that is
 * off its CPU and becomes the owner then is nobody's event, and all wait for it.  Here the waiters look
 * whether the owner of now is off its CPU; a fair lock says who that is when it hands over.
 */
static bool owner_is_preempted(struct zoo_mutex *m)
{
	uint32_t holder = fg_load_relaxed(&m->holder);

	if (forced.how == PUBLISHED && !fg_load_relaxed(&fg_counters->dom[FG_DOMAIN_ALL].p))
		return false;
	return fg_id_has_slot(holder) && fg_is_off_cpu(fg_id_index(holder));
}

static bool calm(void)
{
	static __thread uint32_t waits;

	return ++waits % CALM_EVERY == 0 && !fg_load_relaxed(&fg_counters->dom[FG_DOMAIN_ALL].p);
}

static int wanted_side(struct zoo_mutex *m, int curr)
{
	static __thread uint32_t flips;
	uint32_t n;

	switch (forced.how) {
	case FORCE_SPIN:
		return SPIN;
	case FORCE_BLOCK:
		return BLOCK;
	case AT:
		return fg_now_ns() >= forced.at_ns ? BLOCK : SPIN;
	case THREADS:
		count_thread();
		n = fg_load_relaxed(&threads);
		if (forced.spin_from > forced.block_from && n >= forced.spin_from)
			return SPIN;
		return n >= forced.block_from ? BLOCK : SPIN;
	case FLIP:
		return ++flips / 4 % 2 ? BLOCK : SPIN;
	case AUTO:
	case PUBLISHED:
		break;
	}
	if (curr == SPIN)
		return owner_is_preempted(m) ? BLOCK : SPIN;
	return calm() ? SPIN : BLOCK;
}

/* By whoever waits: a failed attempt is made again by the next one that looks. */
static void switch_if_wanted(struct zoo_mutex *m)
{
	uint32_t state = fg_load_relaxed(state_of(m));
	int curr = curr_of(state);

	if (curr == last_of(state) && wanted_side(m, curr) != curr)
		fg_cas_acq_rel(state_of(m), &state, state ^ CURR);
}

static bool switched_away(struct zoo_mutex *m)
{
	return curr_of(fg_load_relaxed(state_of(m))) != SPIN;
}

/* Waiting for a node's status, when there is to be no spinning. */
static void sleep_for_status(struct zoo_mutex *m, uint32_t *status)
{
	uint32_t waiting = WAITING;

	if (fg_cas_acquire(status, &waiting, SLEEPING) || waiting == SLEEPING)
		zoo_wait(m, status, SLEEPING, NULL);
}

static bool is_waiting(const struct zoo_node *n)
{
	return fg_load_acquire(&n->status) <= SLEEPING;
}

/* ---- the blocking side: a futex lock, as futex.c -------------------------------------- */

static uint32_t *word_of(struct zoo_mutex *m)
{
	return &m->s.u32[1];
}

static bool block_trylock(struct zoo_mutex *m)
{
	uint32_t none = 0;

	return fg_cas_acquire(word_of(m), &none, 1);
}

static bool block_lock(struct zoo_mutex *m, bool stay)
{
	if (block_trylock(m))
		return true;
	while (fg_xchg_acquire(word_of(m), 2)) {
		if (!stay)
			switch_if_wanted(m);
		zoo_wait(m, word_of(m), 2, NULL);
	}
	return true;
}

static void block_unlock(struct zoo_mutex *m)
{
	if (__atomic_exchange_n(word_of(m), 0, __ATOMIC_RELEASE) == 2)
		zoo_wake(m, word_of(m), 1);
}

static const struct side block_side = {block_lock, block_trylock, block_unlock};

/* ---- MCS, which waiters may leave: the node stays, and the one that releases takes it out ---- */

static struct zoo_node **tail_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[1];
}

/* For the monitor's holder test (protocol.h). */
static void publish(struct zoo_mutex *m, struct zoo_node *me)
{
	struct fg_self *t = fg_self();

	fg_store_relaxed(&t->slot->node, (uint64_t)(uintptr_t)me);
	fg_store_relaxed(&t->slot->pending, (uint64_t)(uintptr_t)tail_of(m));
	fg_fence_local();
	fg_store_relaxed(&t->slot->role, FG_ROLE_MCS);
	fg_fence_local();
	me->tid = t->id;
}

static void withdraw(void)
{
	fg_set_role(fg_self(), FG_ROLE_NONE);
}

static bool move(struct zoo_node *n, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&n->status, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* False: it has left. */
static bool grant(struct zoo_mutex *m, struct zoo_node *n)
{
	while (is_waiting(n)) {
		if (move(n, WAITING, GRANTED))
			return true;
		if (move(n, SLEEPING, GRANTED)) {
			zoo_wake(m, &n->status, 1);
			return true;
		}
	}
	return false;
}

static bool mcs_trylock(struct zoo_mutex *m)
{
	struct zoo_node *none = NULL, *me;

	if (fg_load_relaxed(tail_of(m)))
		return false;
	me = zoo_node_get();
	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, GRANTED);
	if (!__atomic_compare_exchange_n(tail_of(m), &none, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return false;
	}
	publish(m, me);
	m->node = me;
	return true;
}

static bool mcs_lock(struct zoo_mutex *m, bool stay)
{
	struct zoo_node *me = zoo_node_get(), *before;

	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, WAITING);
	publish(m, me);
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	if (before)
		fg_store_release(&before->next, me);
	else
		fg_store_relaxed(&me->status, GRANTED);
	for (uint32_t n = 1; is_waiting(me); n++) {
		fg_pause();
		if (!stay && n % 64 == 0)
			switch_if_wanted(m);
		if (!switched_away(m))
			continue;
		if (stay) {
			sleep_for_status(m, &me->status);
		} else if (move(me, WAITING, LEFT)) {
			withdraw();
			return false;
		}
	}
	m->node = me;
	return true;
}

/* The node behind `n`; NULL: there was none, and now the lock is free. */
static struct zoo_node *behind(struct zoo_mutex *m, struct zoo_node *n)
{
	struct zoo_node *next = fg_load_acquire(&n->next), *expected = n;

	if (!next && __atomic_compare_exchange_n(tail_of(m), &expected, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return NULL;
	while (!(next = fg_load_acquire(&n->next)))
		fg_pause();
	return next;
}

static void mcs_unlock(struct zoo_mutex *m)
{
	struct zoo_node *n = m->node, *next;
	bool passed = false;

	withdraw();
	while (!passed && (next = behind(m, n))) {
		zoo_node_put(n); /* mine, or of one that left */
		n = next;
		fg_store_relaxed(&m->holder, n->tid); /* about to be: the monitor's answer is about it from now on */
		passed = grant(m, n);
	}
	if (!passed)
		zoo_node_put(n);
}

static const struct side mcs_side = {mcs_lock, mcs_trylock, mcs_unlock};

/* ---- ticket: a number cannot be given back ------------------------------------------- */

/* Who has which number, for the one that calls it: a hint, and two may fall together. */
static uint32_t *caller_of(struct zoo_mutex *m, uint32_t number)
{
	static uint32_t ids[1024];

	return &ids[((uintptr_t)m / sizeof(*m) * 31 + number) % 1024];
}

static bool ticket_trylock(struct zoo_mutex *m)
{
	uint32_t called = fg_load_relaxed(&m->s.u32[3]);

	return fg_cas_acquire(&m->s.u32[2], &called, called + 1);
}

/* Either the one that calls sees SLEEPERS, or the kernel sees that another number was called. */
static void sleep_for_number(struct zoo_mutex *m, uint32_t called)
{
	__atomic_fetch_or(state_of(m), SLEEPERS, __ATOMIC_SEQ_CST);
	zoo_wait(m, &m->s.u32[3], called, NULL);
}

static bool ticket_lock(struct zoo_mutex *m, bool stay)
{
	uint32_t mine = fg_add_relaxed(&m->s.u32[2], 1), called;

	fg_store_relaxed(caller_of(m, mine), fg_self()->id);
	for (uint32_t n = 1; (called = fg_load_acquire(&m->s.u32[3])) != mine; n++) {
		fg_pause();
		if (!stay && n % 64 == 0)
			switch_if_wanted(m);
		if (switched_away(m))
			sleep_for_number(m, called);
	}
	return true;
}

static void ticket_unlock(struct zoo_mutex *m)
{
	uint32_t next = fg_load_relaxed(&m->s.u32[3]) + 1, sleepers = fg_load_relaxed(state_of(m)) & SLEEPERS;

	/* Cleared before the call: afterwards it may be of one that sleeps until the next. */
	if (sleepers)
		fg_and_relaxed(state_of(m), ~SLEEPERS);
	if (fg_load_relaxed(&m->s.u32[2]) != next)
		fg_store_relaxed(&m->holder, fg_load_relaxed(caller_of(m, next)));
	__atomic_store_n(&m->s.u32[3], next, __ATOMIC_SEQ_CST);
	/* All sleep on one word; whose turn it is not says so again. */
	if (sleepers || fg_load_seq_cst(state_of(m)) & SLEEPERS)
		zoo_wake(m, &m->s.u32[3], INT32_MAX);
}

static const struct side ticket_side = {ticket_lock, ticket_trylock, ticket_unlock};

/* ---- CLH, as clh.c: somebody waits on this waiter's node ---------------------------------- */

static void clh_enter(struct zoo_mutex *m, struct zoo_node *me, struct zoo_node *before)
{
	if (before)
		zoo_node_put(before);
	m->node = me;
}

static bool clh_trylock(struct zoo_mutex *m)
{
	struct zoo_node *none = NULL, *me;

	if (fg_load_relaxed(tail_of(m)))
		return false;
	me = zoo_node_get();
	fg_store_relaxed(&me->status, WAITING);
	fg_store_relaxed(&me->tid, 0);
	if (!__atomic_compare_exchange_n(tail_of(m), &none, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return false;
	}
	clh_enter(m, me, NULL);
	return true;
}

static bool clh_lock(struct zoo_mutex *m, bool stay)
{
	struct zoo_node *me = zoo_node_get(), *before;

	fg_store_relaxed(&me->status, WAITING);
	fg_store_relaxed(&me->tid, 0);
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	if (before)
		fg_store_relaxed(&before->tid, fg_self()->id); /* who comes after its owner */
	for (uint32_t n = 1; before && is_waiting(before); n++) {
		fg_pause();
		if (!stay && n % 64 == 0)
			switch_if_wanted(m);
		if (switched_away(m))
			sleep_for_status(m, &before->status);
	}
	clh_enter(m, me, before);
	return true;
}

static void clh_unlock(struct zoo_mutex *m)
{
	struct zoo_node *me = m->node, *expected = me;

	if (fg_load_relaxed(tail_of(m)) == me &&
	    __atomic_compare_exchange_n(tail_of(m), &expected, NULL, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return;
	}
	fg_store_relaxed(&m->holder, fg_load_relaxed(&me->tid));
	grant(m, me); /* to the one behind, which takes it */
}

static const struct side clh_side = {clh_lock, clh_trylock, clh_unlock};

/* ---- the pair ------------------------------------------------------------------------ */

#define INLINE static inline __attribute__((always_inline))

INLINE const struct side *side_of(const struct side *spin, int side)
{
	return side == SPIN ? spin : &block_side;
}

static void got(struct zoo_mutex *m)
{
	struct fg_self *t = fg_self();

	fg_section_enter(t);
	fg_store_relaxed(&m->holder, t->id);
}

/* The owner of both: `last` is this side too, before the next owner of the other can look. */
static void end_transition(struct zoo_mutex *m, int side)
{
	if (side == BLOCK)
		__atomic_fetch_or(state_of(m), LAST, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(state_of(m), ~LAST, __ATOMIC_SEQ_CST);
}

INLINE bool lock_pair(struct zoo_mutex *m, const struct side *spin)
{
	const struct side *mine, *other __attribute__((unused));
	uint32_t state;
	int side;

	for (;;) {
		side = curr_of(fg_load_acquire(state_of(m)));
		mine = side_of(spin, side);
		if (!mine->lock(m, false))
			continue;
		state = fg_load_seq_cst(state_of(m));
		if (curr_of(state) == side)
			break;
		mine->unlock(m);
	}
	if (last_of(state) != side) {
#ifdef FG_BROKEN_ZOO /* the published listing; a test proves that the tests notice */
		end_transition(m, side);
#else
		other = side_of(spin, last_of(state));
		other->lock(m, true);
		end_transition(m, side);
		other->unlock(m);
#endif
	}
	got(m);
	return true;
}

INLINE bool trylock_pair(struct zoo_mutex *m, const struct side *spin)
{
	uint32_t state = fg_load_acquire(state_of(m));
	const struct side *mine, *other;
	int side = curr_of(state);

	mine = side_of(spin, side);
	if (!mine->trylock(m))
		return false;
	state = fg_load_seq_cst(state_of(m));
	if (curr_of(state) != side) { /* somebody waits, or it would not have been switched */
		mine->unlock(m);
		return false;
	}
	if (last_of(state) != side) {
		other = side_of(spin, last_of(state));
		if (!other->trylock(m)) {
			mine->unlock(m);
			return false;
		}
		end_transition(m, side);
		other->unlock(m);
	}
	got(m);
	return true;
}

/* While it is held `last` does not change: ending a transition takes it. */
INLINE void unlock_pair(struct zoo_mutex *m, const struct side *spin)
{
	fg_store_relaxed(&m->holder, 0);
	side_of(spin, last_of(fg_load_relaxed(state_of(m))))->unlock(m);
	fg_section_leave(fg_self());
}

#define PAIR(id, spin)                                                                                                 \
	static bool lock_##id(struct zoo_mutex *m, const struct fg_deadline *deadline)                                 \
	{                                                                                                              \
		(void)deadline;                                                                                        \
		return lock_pair(m, &spin);                                                                            \
	}                                                                                                              \
	static bool trylock_##id(struct zoo_mutex *m)                                                                  \
	{                                                                                                              \
		return trylock_pair(m, &spin);                                                                         \
	}                                                                                                              \
	static void unlock_##id(struct zoo_mutex *m)                                                                   \
	{                                                                                                              \
		unlock_pair(m, &spin);                                                                                 \
	}                                                                                                              \
	const struct zoo_lock zoo_##id = {                                                                             \
	    .lock = lock_##id, .trylock = trylock_##id, .unlock = unlock_##id, .start = start};

PAIR(hybridmcs, mcs_side)
PAIR(hybridticket, ticket_side)
PAIR(hybridclh, clh_side)
