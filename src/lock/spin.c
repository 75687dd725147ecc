/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a spinlock: spinning while fg_decide() says so, then asleep, so that
 * with more threads than CPUs the owner gets one.
 *
 * Sleeping without a bit in the lock.  The release is a plain store to the lock,
 * then a load of the sleepers' count; nothing but the CPU's store buffer orders
 * the two, which may hold the store back.  The sleeper counts itself, then makes
 * all CPUs that run this process pass a barrier (membarrier(2)), then looks at
 * the lock: either it sees it free, or the release sees the count (Dice, Huang,
 * Yang, "Asymmetric Dekker Synchronization", 2001).  One barrier serves all who come while the lock
 * has sleepers: a release that began before it is seen by then, a later one sees that there are
 * some, and counts up what the new one sleeps on.  Where the kernel lacks
 * the call, where it may not be made (sys/filter.h), and for releases by other
 * processes, every sleep has a time limit.
 */
#include "lock/spin.h"

#include <errno.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "lock/gate.h"
#include "runtime/count.h"
#include "runtime/decide.h"
#include "sys/asymmetric.h"
#include "sys/probe.h"

struct fg_spin_bucket _fg_spin_buckets[FG_SPIN_BUCKETS];

/* Time limits of a sleep: who watches; others at first, doubled up to the last.  Not varied. */
#define CHECK_NS     1000000u
#define SLEEP_NS     CHECK_NS
#define SLEEP_MAX_NS 16000000u

/*
 * Who releases a lock more often than this keeps it busy (as in lock_release.c), and then wakes a
 * sleeper once in the second time only.  Not varied.
 */
#define BUSY_NS 50000u
#define TURN_NS 1000000u

/*
 * For the simulator: limits would make up for what is wrong before it can notice.  Those that watch
 * keep theirs, on which others rely, unless nobody is left asleep for it either.
 */
#ifdef FG_UNLIMITED
#undef SLEEP_NS
#undef SLEEP_MAX_NS
#define SLEEP_NS     SLEEP_MAX_NS
#define SLEEP_MAX_NS 1000000000u
#endif
#ifdef FG_UNWATCHED
#undef CHECK_NS
#undef TURN_NS
#define CHECK_NS SLEEP_MAX_NS
#define TURN_NS	 1u
#endif

/*
 * The owner of the gate asks for the lock when others have taken it for so long, as a mutex's head
 * does (HANDOFF_NS); if it has not seen them, after so many times as long.  It reads the clock at
 * one look in so many, and when it has lost a race.  Not varied.
 */
#define OVERTAKEN_NS	  5000u
#define UNSEEN		  8u
#define FIRST_CLOCK_EVERY 16u

/*
 * Who releases a lock that the owner of the gate has asked for leaves it alone for so long, or
 * until that one has it: some journeys of a line.  Not varied.
 */
#define LEAVE_PAUSES 64u

/*
 * How long a waiter leaves the lock to the owner of the gate before it looks for itself: as the
 * first periodic check of a lock's sleeper.  Not varied.
 */
#define PATIENCE_NS 8000000u

/* Looks of one that has just come, as a mutex's (lock_spin.c). */
#define LOOKS_ALONE 16u

/* Not varied. */
#define STAYS_LOOKS 4096u

/* ---- the table of waiters ---------------------------------------------------- */

#define SLEEPER	  1ull
#define SLEEPERS  0xffffull
#define SPINNER	  0x10000ull
#define SPINNERS  0x3ff0000ull
#define WATCHED	  0x4000000ull
#define FENCED	  0x8000000ull
#define EPOCH	  0xf0000000ull
#define ONE_EPOCH 0x10000000ull
#define KEY	  0xffffffff00000000ull

#define LAST_WAY (FG_SPIN_WAYS - 1)

/* Ever: what a child of fork() inherits. */
static uint32_t anybody_slept;

/* Where a waiter is counted. */
struct place {
	struct fg_spin_way *way; /* NULL: nowhere */
	uint64_t epoch;
	bool fenced;  /* as it was */
	bool watches; /* this is the sleeper for whom WATCHED stands */
};

/*
 * Different for locks that are less than 3 GB apart (multiples of the golden section are far from
 * each other).  Two with one key would share a way, as all do in the last one.
 */
static uint64_t key_of(const int32_t *lock)
{
	return (((uint64_t)(uintptr_t)lock >> 2) * 0x9e3779b97f4a7c15u & KEY) | 1ull << 32;
}

/* In the last way, locks are told apart by a bit of the futex call, mostly. */
static uint32_t channel(const int32_t *lock)
{
	return 1u << (_fg_spin_hash(lock) >> 16) % 32;
}

/*
 * Counts a sleeper or a spinner in a way that has this key; a sleeper also in one that is nobody's.
 */
static bool count_in(struct fg_spin_way *way, uint64_t key, uint64_t one, struct place *place)
{
	uint64_t all = one == SLEEPER ? SLEEPERS : SPINNERS, have = fg_load_relaxed(&way->who);
	uint64_t watched = one == SLEEPER && key ? WATCHED : 0;

	do {
		if ((have & KEY) != key && (one == SPINNER || (have & KEY)))
			return false;
		if ((have & all) == all)
			return false;
	} while (!fg_cas64_seq_cst(&way->who, &have, ((have & ~KEY) + one) | key | watched));
	*place = (struct place){
	    .way = way, .epoch = have & EPOCH, .fenced = have & FENCED, .watches = watched & ~have};
	return true;
}

static void count_out(struct place *place, uint64_t one)
{
	uint64_t have, left;

	if (!place->way)
		return;
	have = fg_load_relaxed(&place->way->who);
	do {
		if ((have & EPOCH) != place->epoch)
			break;
		left = have - one - (place->watches ? WATCHED : 0);
#ifdef FG_BROKEN_WATCHED /* a test proves that the tests notice */
		left |= have & WATCHED;
#endif
		if (!(left & SLEEPERS))
			left &= ~FENCED;
		if (!(left & (SLEEPERS | SPINNERS)))
			left &= EPOCH;
	} while (!fg_cas64_seq_cst(&place->way->who, &have, left));
	place->way = NULL;
}

static struct place place_of_sleeper(const int32_t *lock)
{
	struct fg_spin_bucket *b = _fg_spin_bucket(lock);
	struct place place = {0};
	uint32_t i;

	for (i = 0; i < LAST_WAY; i++)
		if (count_in(&b->way[i], key_of(lock), SLEEPER, &place))
			return place;
	count_in(&b->way[LAST_WAY], 0, SLEEPER, &place);
	return place;
}

static struct place place_of_spinner(const int32_t *lock)
{
	struct fg_spin_bucket *b = _fg_spin_bucket(lock);
	struct place place = {0};
	uint32_t i;

	for (i = 0; i < LAST_WAY; i++)
		if (count_in(&b->way[i], key_of(lock), SPINNER, &place))
			break;
	return place;
}

/* The last lock that this thread released beside sleepers. */
static __thread struct {
	const int32_t *lock;
	uint64_t released_ns, woke_ns;
} kept;

/*
 * True while this thread keeps the lock busy, and has just woken somebody.  Only while a sleeper
 * watches: should this be the last release, that one looks within CHECK_NS.  (It also does for a
 * spinner whom a release relies on, and who slept without a barrier before that release was seen.)
 */
static bool leave_asleep(const int32_t *lock)
{
	uint64_t now = fg_now_ns();
	bool busy = kept.lock == lock && now - kept.released_ns < BUSY_NS;

	kept.lock = lock;
	kept.released_ns = now;
	if (busy && now - kept.woke_ns < TURN_NS)
		return true;
	kept.woke_ns = now;
	return false;
}

/* The owner of the gate has asked for the lock.  That may be gone, so nobody looks at it here. */
static void leave_to_first(const int32_t *lock)
{
	uint32_t *note = _fg_gate_note(lock), asks = _fg_gate_noted(lock);

	for (uint32_t n = 0; fg_load_relaxed(note) == asks; n++) {
		if (n == LEAVE_PAUSES) { /* it is off its CPU, or too far away */
			fg_store_relaxed(note, 0);
			return;
		}
		fg_pause();
	}
}

/* False: nobody sleeps there, for this lock. */
static bool wake_in(struct fg_spin_way *way, const int32_t *lock)
{
	/* Release: with the new count the lock is seen free (acquire in sleep_on). */
	fg_add_release(&way->wakes, 1);
	return fg_futex_wake(&way->wakes, 1, channel(lock)) > 0;
}

void _fg_spin_wake(int32_t *lock)
{
	struct fg_spin_bucket *b = _fg_spin_bucket(lock);
	bool watched = false;
	uint32_t i, ways = 0;

	leave_to_first(lock);
	/*
	 * Those that came while another lock had the first way have one of their own.  And who is
	 * counted there may have been woken, and be asleep in the first next, before this release
	 * is seen: found by `fgsim --weak`.
	 */
	for (i = 0; i < LAST_WAY; i++) {
		uint64_t who = fg_load_relaxed(&b->way[i].who);

		if ((who & KEY) != key_of(lock))
			continue;
		if (who & SPINNERS)
			return;
		ways |= 1u << i;
		watched |= !!(who & WATCHED);
	}
	if (watched && leave_asleep(lock))
		return;
	for (i = 0; i < LAST_WAY; i++)
		if ((ways & 1u << i) && wake_in(&b->way[i], lock))
			return;
#ifndef FG_BROKEN_WAY /* a test proves that the tests notice */
	if (fg_load_relaxed(&b->way[LAST_WAY].who) & SLEEPERS)
		wake_in(&b->way[LAST_WAY], lock);
#endif
}

/*
 * Those that are counted are not in this process, or have been interrupted and will be counted
 * anew.
 */
void _fg_spin_after_fork(void)
{
	uint32_t i, w;

	if (!anybody_slept)
		return;
	for (i = 0; i < FG_SPIN_BUCKETS; i++) {
		struct fg_spin_bucket *b = &_fg_spin_buckets[i];

		if (b->sleepers & FG_SPIN_SLEEPERS)
			b->sleepers = (b->sleepers & ~FG_SPIN_SLEEPERS) + FG_SPIN_SLEEPERS + 1;
		for (w = 0; w < FG_SPIN_WAYS; w++)
			if (b->way[w].who & (SLEEPERS | SPINNERS))
				b->way[w].who = (b->way[w].who + ONE_EPOCH) & EPOCH;
	}
}

/* ---- waiting ------------------------------------------------------------------ */

/* Where this thread is counted. */
static void set_fenced(const struct place *place)
{
	uint64_t have = fg_load_relaxed(&place->way->who);

	while ((have & EPOCH) == place->epoch && !(have & FENCED) &&
	       !fg_cas64_seq_cst(&place->way->who, &have, have | FENCED))
		;
}

static uint32_t owner_of(int32_t value)
{
	uint32_t index = (uint32_t)value >> 12 & (FG_MAX_THREADS - 1);

	return value < 0 ? fg_load_relaxed(&fg_slot_look(index)->owner_id) : 0;
}

/* So that releases look further.  Returns the bucket's epoch. */
static uint32_t count_in_bucket(struct fg_spin_bucket *b)
{
	if (!fg_load_relaxed(&anybody_slept))
		fg_store_relaxed(&anybody_slept, 1);
	return fg_add_relaxed(&b->sleepers, 1) & ~FG_SPIN_SLEEPERS;
}

static void count_out_of_bucket(struct fg_spin_bucket *b, uint32_t epoch)
{
	uint32_t have = fg_load_relaxed(&b->sleepers);

	while ((have & ~FG_SPIN_SLEEPERS) == epoch &&
	       !fg_cas_relaxed(&b->sleepers, &have, have - 1))
		;
}

/* The owner of the gate, who may ask for the lock. */
struct first {
	uint64_t due; /* when it asks; 0: not known yet */
	int32_t seen; /* in the lock; 0: nothing yet */
	uint32_t epoch;
	uint32_t stayed; /* looks without a question */
	uint32_t lost;	 /* races for a free lock, at the gate */
	bool at_gate;
	bool overtaken; /* by others, as far as it knows */
	bool counted;	/* in the bucket, since it has asked */
};

static void ask_in_time(const int32_t *lock, struct first *f, int32_t value)
{
	uint64_t now;

	if (!f->at_gate)
		return;
	/* A free one has been taken by others by now. */
	f->overtaken |= value == FG_SPIN_FREE || (f->seen && value != f->seen);
	f->seen = value;
	now = fg_now_ns();
	if (!f->due)
		f->due = now + OVERTAKEN_NS;
	if (now < f->due || (!f->overtaken && now - f->due < UNSEEN * OVERTAKEN_NS))
		return;
	/* Again, if that was in vain: it may have lost its CPU right then. */
	f->due = now + UNSEEN * OVERTAKEN_NS;
	/* The next release comes to leave_to_first(), by the bucket's count. */
	fg_store_relaxed(_fg_gate_note(lock), _fg_gate_noted(lock));
	if (!f->counted)
		f->epoch = count_in_bucket(_fg_spin_bucket(lock));
	f->counted = true;
}

static void ask_no_more(const int32_t *lock, struct first *f)
{
	if (!f->counted)
		return;
	fg_store_relaxed(_fg_gate_note(lock), 0);
	count_out_of_bucket(_fg_spin_bucket(lock), f->epoch);
	f->counted = false;
}

/*
 * A critical thread that is off its CPU makes all waiters sleep, so that it gets one.  But the next
 * at the gate is critical, too, and waits for none but this one; so while the owner of the lock is
 * on a CPU, the owner of the gate stays, for some hundred us at most.
 */
static bool stays(struct first *f, uint32_t owner)
{
	return f->at_gate && f->stayed < STAYS_LOOKS &&
	       fg_load_relaxed(&fg_policy_now) == FG_POLICY_DEFAULT && owner &&
	       fg_is_watched(owner) && !fg_is_owner_off(owner) && ++f->stayed;
}

/* True if the lock became free meanwhile. */
static bool spin(int32_t *lock, struct fg_self *t, struct first *f)
{
	struct fg_spin_bucket *b = _fg_spin_bucket(lock);
	struct fg_wait w = {.self = t};
	struct place place = {0};
	uint32_t looks;
	bool is_free, stay;

	if (!f->counted)
		_fg_gate_back_off(f->lost, f->due);
	for (looks = 0;; looks++) {
		int32_t value = fg_load_relaxed(lock);

		is_free = value == FG_SPIN_FREE;
		if (is_free)
			break;
		if (looks % FIRST_CLOCK_EVERY == 0)
			ask_in_time(lock, f, value);
		w.owner = owner_of(value);
		stay = stays(f, w.owner);
		/* Asked now and then all the same: it also sees to it that there is a monitor. */
		if ((!stay || looks % FG_CLOCK_EVERY == 0) && fg_decide(&w) == FG_BLOCK && !stay)
			break;
		if (!place.way && fg_unlikely(fg_load_relaxed(&b->sleepers) & FG_SPIN_SLEEPERS))
			place = place_of_spinner(lock);
		fg_pause();
	}
	count_out(&place, SPINNER);
	return is_free;
}

static void sleep_on(int32_t *lock, struct fg_self *t, uint64_t limit_ns)
{
	struct fg_spin_bucket *b = _fg_spin_bucket(lock);
	struct fg_deadline limit;
	struct fg_spin_way *way;
	struct place place;
	uint32_t epoch, wakes;

	/* One that is counted in a way is so in the bucket, where releases look: first and last. */
	epoch = count_in_bucket(b);
	place = place_of_sleeper(lock);
	/* not counted where 65,535 are: until its time is over */
	way = place.way ? place.way : &b->way[LAST_WAY];
#ifndef FG_BROKEN_FENCE /* a test proves that the tests notice */
	if (!place.fenced && fg_barrier_everywhere(t->id) && place.way)
		set_fenced(&place);
#endif
	wakes = fg_load_acquire(&way->wakes);
	if (fg_load_relaxed(lock) != FG_SPIN_FREE) {
		fg_deadline_in(&limit, place.watches ? CHECK_NS : limit_ns);
		fg_count(t, FG_STAT_PARKS, 1);
		fg_futex_wait(&way->wakes, wakes, channel(lock), &limit);
	}
	count_out(&place, SLEEPER);
	count_out_of_bucket(b, epoch);
}

/* By the lock alone. */
static void wait_for(int32_t *lock, struct fg_self *t, bool at_gate)
{
	struct first f = {.at_gate = at_gate};
	uint64_t limit_ns = SLEEP_NS;

	for (;;) {
		if (spin(lock, t, &f)) {
			if (_fg_spin_trylock(lock, t))
				break;
			ask_in_time(lock, &f, FG_SPIN_FREE);
			f.lost += f.at_gate;
			continue;
		}
		ask_no_more(lock, &f);
		sleep_on(lock, t, limit_ns);
		f.lost = 0;
		if (limit_ns < SLEEP_MAX_NS)
			limit_ns *= 2;
	}
	ask_no_more(lock, &f);
}

/* Where nobody is at the gate: two threads need none. */
static bool look_alone(int32_t *lock, struct fg_self *t)
{
	const struct fg_lock *gate = _fg_gate(lock);

	if (!fg_policy_spins())
		return false;
	for (uint32_t n = 0; n < LOOKS_ALONE && !fg_load_relaxed(&gate->word); n++) {
		if (fg_load_relaxed(lock) == FG_SPIN_FREE && _fg_spin_trylock(lock, t))
			return true;
		fg_pause();
	}
	return false;
}

/* False: it has the lock already, and not the gate. */
static bool pass_gate(int32_t *lock, struct fg_self *t, bool *at_gate)
{
	struct fg_gate_wait w = {.self = t, .patience_ns = PATIENCE_NS};
	enum fg_gate gate;

	*at_gate = false;
	if (look_alone(lock, t))
		return false;
	while ((gate = _fg_gate_pass(lock, &w)) == FG_GATE_LOOK)
		if (fg_load_relaxed(lock) == FG_SPIN_FREE && _fg_spin_trylock(lock, t))
			return false;
	*at_gate = gate == FG_GATE_PASSED;
	return true;
}

static void lock_contended(int32_t *lock, struct fg_self *t)
{
	bool at_gate;

	fg_count_contended(t);
	FG_PROBE1(contended, lock);
	if (pass_gate(lock, t, &at_gate))
		wait_for(lock, t, at_gate);
	if (at_gate)
		_fg_gate_leave(lock);
	FG_PROBE2(acquired, lock, 0);
}

__attribute__((noinline)) void _fg_spin_lock_slow(int32_t *lock, struct fg_self *t,
						  const void *caller)
{
	bool traced = fg_is_traced();
	struct fg_traced trace;

	if (traced)
		trace = fg_trace_begins();
	lock_contended(lock, t);
	if (traced)
		fg_trace_ends(&trace, lock, caller);
}

/* Or not set up yet: then it may get one. */
__attribute__((noinline)) void _fg_spin_lock_no_slot(int32_t *lock, const void *caller)
{
	struct fg_self *t = fg_self();

	if (!_fg_spin_trylock(lock, t))
		_fg_spin_lock_slow(lock, t, caller);
}
