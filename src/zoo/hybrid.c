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
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/decide.h"
#include "runtime/thread.h"
#include "sys/libc.h"
#include "zoo/hybrid.h"

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
	fg_libc_pthread_setspecific()(thread_key, &counted);
}

static const char *start(void)
{
	const char *how = secure_getenv("FLEXGUARD_HYBRID");
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

	if (forced.how == PUBLISHED && !fg_load_relaxed(&fg_counters->dom[FG_DOMAIN_ALL].preempted))
		return false;
	return fg_id_has_slot(holder) && fg_is_off_cpu(fg_id_index(holder));
}

static bool calm(void)
{
	static __thread uint32_t waits;

	return ++waits % CALM_EVERY == 0 && !fg_load_relaxed(&fg_counters->dom[FG_DOMAIN_ALL].preempted);
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

void zoo_hybrid_switch_if_wanted(struct zoo_mutex *m)
{
	uint32_t state = fg_load_relaxed(state_of(m));
	int curr = curr_of(state);

	if (curr == last_of(state) && wanted_side(m, curr) != curr && fg_cas_acq_rel(state_of(m), &state, state ^ CURR) &&
	    curr == SPIN)
		fg_count(fg_self(), FG_STAT_PREEMPTIONS, 1);
}

/* ---- the pair ------------------------------------------------------------------------ */

#define INLINE static inline __attribute__((always_inline))

INLINE const struct side *side_of(const struct side *spin, int side)
{
	return side == SPIN ? spin : &zoo_block_side;
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

PAIR(hybridmcs, zoo_mcs_side)
PAIR(hybridticket, zoo_ticket_side)
PAIR(hybridclh, zoo_clh_side)
