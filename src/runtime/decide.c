/* SPDX-License-Identifier: MIT */
/*
 * The policies.  What they read are hints: every one of them ends every wait
 * in a sleep at the latest after FG_SPIN_CAP_NS, so a monitor that lies, dies
 * or never answers costs time only, also to a SCHED_FIFO thread that spins for
 * an owner which it keeps off the CPU.
 */
#include "runtime/decide.h"

#include <sys/syscall.h>
#include <time.h>

#include "arch/arch.h"
#include "runtime/count.h"
#include "runtime/look.h"
#include "runtime/monitor_client.h"
#include "sys/filter.h"
#include "sys/futex.h"

/*
 * How long a critical thread on another CPU may be off it before its waiters block: 50 us are no
 * better, none at all is worse (2-CPU VM, Linux 6.18; docs/design/experiments.md, "Grace").
 */
#define PREEMPTION_GRACE_NS 20000u

/*
 * On a machine of many CPUs who waits on the next one has so much more: a few journeys of a line,
 * so that those who go to sleep for one lock do not all do so at once.  Not varied.
 */
#define GRACE_APART_NS 300u

/*
 * The longest time in one go that a waiter believes a policy which says "spin": about a time slice.
 * Not varied.
 */
#define FG_SPIN_CAP_NS 4000000u

/*
 * Without a monitor.  A waiter first spins FALLBACK_SPIN_NS whatever the owner
 * does (most sections are shorter); then it reads the owner's CPU clock twice,
 * CLOCK_APART_NS apart: a clock that stands still is an owner off its CPU.
 * While it runs, the waiter goes on, FALLBACK_MAX_NS at most.  Chosen
 * on a 2-CPU VM, Linux 6.18; the numbers are not kept.
 */
#define FALLBACK_SPIN_NS 3000u
#define CLOCK_APART_NS	 1000u
#define FALLBACK_MAX_NS	 100000u

/* Or on a virtual CPU that is off, which the guest's scheduler does not know. */
static bool is_off(const struct fg_slot *slot)
{
	uint32_t state = fg_load_relaxed(&slot->state), cpu;

	if (fg_likely(state != FG_STATE_ON))
		return state >= FG_STATE_RUNNABLE;
	cpu = fg_load_relaxed(&slot->cpu);
	return cpu < FG_MAX_CPUS &&
	       fg_load_relaxed(&fg_load_relaxed(&fg_counters)->cpu[cpu].vcpu_off);
}

bool fg_is_off_cpu(uint32_t index)
{
	return fg_policy_has_monitor() && is_off(fg_slot_look(index));
}

bool fg_is_owner_off(uint32_t owner)
{
	const struct fg_slot *slot;

	if (!fg_id_has_slot(owner))
		return false;
	slot = fg_slot_look(fg_id_index(owner));
	if (fg_load_relaxed(&slot->owner_id) != owner)
		return true; /* died with the lock */
	return is_off(slot);
}

/*
 * Does the monitor say where this owner is?  Not of a thread that it grants no slot, or that has
 * none at all.
 */
bool fg_is_watched(uint32_t owner)
{
	return !owner ||
	       (fg_id_has_slot(owner) && fg_id_index(owner) < fg_load_relaxed(&fg_slots_seen));
}

static enum fg_verdict preempted(struct fg_wait *w)
{
	fg_count(w->self, FG_STAT_PREEMPTIONS, 1);
	return FG_BLOCK;
}

/* Is a critical thread queued on this CPU? */
static bool waits_here(const struct fg_counters *c, uint32_t domain, uint32_t cpu)
{
	return cpu < FG_MAX_CPUS && fg_load_relaxed(&c->queued[cpu][domain]);
}

bool fg_has_room(const struct fg_self *t)
{
	return !fg_displaces(t) && !fg_is_rationed() &&
	       !waits_here(fg_load_relaxed(&fg_counters), fg_load_relaxed(&fg_domain),
			   fg_load_relaxed(t->cpu));
}

/* Is a critical thread off its CPU that could run on this one? */
static bool could_run_on(const struct fg_counters *c, uint32_t domain, uint32_t cpu)
{
	uint32_t group = cpu >> (fg_load_relaxed(&c->cpu_shift) % 32) & (FG_CPU_GROUPS - 1);

	return fg_load_relaxed(&c->dom[domain].preempted) ||
	       fg_load_relaxed(&c->usable[domain][group]);
}

/*
 * In turn, by CPUs, and not always the same ones first: the clock's milliseconds are about the same
 * for all.
 */
static uint32_t grace_ns(uint32_t cpu, uint64_t now)
{
	uint32_t cpus = fg_many_cpus();

	if (fg_likely(!cpus))
		return PREEMPTION_GRACE_NS;
	return PREEMPTION_GRACE_NS + (cpu + (uint32_t)(now >> 20)) % cpus * GRACE_APART_NS;
}

/*
 * A critical thread that is queued on my own CPU waits for me: go at once.  One
 * that is off its CPU elsewhere gets PREEMPTION_GRACE_NS to come back: most preemptions
 * are shorter (an interrupt's thread, a sleeper that looks around), and going
 * to sleep because of one costs a wake-up, 76 us on a 2-CPU VM.  It wants one CPU, which the one
 * that has it leaves at once; so of many waiters few need go (docs/design/many-cpus.md, "When all
 * go at once").
 */
static enum fg_verdict decide_default(struct fg_wait *w)
{
	const struct fg_counters *c = fg_load_relaxed(&fg_counters);
	uint32_t cpu = fg_load_relaxed(w->self->cpu), domain = fg_load_relaxed(&fg_domain);
	uint64_t now;

	if (waits_here(c, domain, cpu))
		return preempted(w);
	if (fg_likely(!could_run_on(c, domain, cpu) && !fg_is_owner_off(w->owner))) {
		w->off_ns = 0;
		return FG_SPIN;
	}
	now = fg_now_ns();
	if (!w->off_ns) {
		w->off_ns = now;
		w->grace_ns = grace_ns(cpu, now);
	}
	w->grace_ends = now - w->off_ns >= w->grace_ns / 2;
	return now - w->off_ns < w->grace_ns ? FG_SPIN : preempted(w);
}

/* SOSP'25, section 3.1: one counter for the whole machine and nothing else. */
static enum fg_verdict decide_paper(struct fg_wait *w)
{
	return fg_policy_anybody_preempted() ? preempted(w) : FG_SPIN;
}

/* 0 if the thread is gone. */
static uint64_t thread_cpu_ns(uint32_t tid)
{
	/*
	 * CPUCLOCK_SCHED of one thread: the kernel's encoding, as pthread_getcpuclockid(3) makes
	 * it.
	 */
	clockid_t clock = (clockid_t)((~tid << 3) | 6u);
	struct timespec t;
	int err;

	if (!fg_call_begins(tid))
		return 0;
	err = fg_clock_read(clock, &t);
	fg_call_ends(tid);
	if (err)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + 1;
}

static enum fg_verdict decide_fallback(struct fg_wait *w, uint64_t now)
{
	const struct fg_slot *slot;
	uint32_t cpu, index = fg_id_index(w->owner), tid;
	uint64_t spent;

	if (!fg_id_has_slot(w->owner))
		return now - w->since_ns < FALLBACK_SPIN_NS ? FG_SPIN : FG_BLOCK;

	/*
	 * It took the lock on the CPU that I run on: it certainly does not run here now.
	 * Only mutexes note the CPU; one in a section may wait for nothing of the kind.
	 */
	cpu = fg_load_relaxed(w->self->cpu);
	slot = fg_slot_look(index);
	if (cpu == fg_load_relaxed(&slot->acq_cpu) && cpu < FG_MAX_CPUS &&
	    !fg_load_relaxed(&slot->sections))
		return preempted(w);

	if (now - w->since_ns < FALLBACK_SPIN_NS)
		return FG_SPIN;
	if (now - w->since_ns > FALLBACK_MAX_NS)
		return FG_BLOCK;
	if (now - w->cpu_at_ns < CLOCK_APART_NS)
		return FG_SPIN;
	tid = fg_thread_was(index) ? fg_load_relaxed(&fg_thread_of(index)->tid) : 0;
	spent = tid ? thread_cpu_ns(tid) : 0;
	if (!spent || spent == w->cpu_ns)
		return preempted(w);
	w->cpu_ns = spent;
	w->cpu_at_ns = now;
	return FG_SPIN;
}

/* ---- events ---------------------------------------------------------------- */

/* four spins in vain in a row, and there are none for as many waits.  Not varied */
#define IN_VAIN 32u

static uint64_t no_room_until_ns; /* CLOCK_MONOTONIC; a hint of all threads */

/*
 * A yield costs a thread of SCHED_DEADLINE the rest of its period.  To ask is a system call, so of
 * others, at one wait in 64; not varied.
 */
#define POLICY_EVERY 64u
static __thread uint8_t waits_unasked;

static bool has_deadline(const struct fg_self *t)
{
	if (!waits_unasked && fg_real_time_priority(t, 0) == FG_PRIORITY_DEADLINE)
		return true;
	waits_unasked = (waits_unasked + 1) % POLICY_EVERY;
	return false;
}

struct fg_wait fg_wait_for_event(struct fg_self *self, fg_spin_history *history)
{
	return (struct fg_wait){.self = self, .history = history};
}

fg_spin_history fg_spin_history_after(fg_spin_history had, bool spun, bool in_time)
{
	if (in_time)
		return had / 2;
	if (spun)
		return had > 0xff - IN_VAIN ? 0xff : (fg_spin_history)(had + IN_VAIN);
	return had >= FG_SPIN_HISTORY_STOP ? had - 1 : had;
}

void fg_event_over(struct fg_wait *w, bool in_time)
{
	fg_spin_history had = fg_load_relaxed(w->history),
			now = fg_spin_history_after(had, w->since_ns != 0, in_time);

	if (now != had) /* the line may be everybody's */
		fg_store_relaxed(w->history, now);
}

/*
 * A waiter that spins for an event lets others of its CPU run first: the one that it waits for may
 * be among them, and nothing else tells.  With more threads than CPUs, hand-overs through condition
 * variables are 2 to 5 times faster so (2-CPU VM, Linux 6.18).  But to yield to a thread that
 * computes costs a time slice, and once it has taken NO_ROOM_NS, no thread of the process spins for
 * events for so many times as long.  A limit of 50 us also hit threads that yield to each other in
 * turn (docs/design/experiments.md, "No spinning beside threads that compute"); the factor was not
 * varied.
 */
#define NO_ROOM_FACTOR 32u
/* A yield that nobody has used takes less.  Not varied. */
#define ALONE_NS   2000u
#define NO_ROOM_NS 250000u

/*
 * Not counted as time spent spinning; moves the caller's `now`.  False if others kept the CPU for
 * long.
 */
static bool yield_turn(struct fg_wait *w, uint64_t *now)
{
	uint64_t left = *now, away;

	if (!fg_call_begins(w->self->id))
		return true;
	fg_syscall6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	fg_call_ends(w->self->id);
	*now = fg_now_ns();
	away = *now - left;
	w->since_ns += away;
	w->crowded |= away >= ALONE_NS;
	if (fg_likely(away < NO_ROOM_NS))
		return true;
	waits_unasked = 0;
	if (away > FG_AWAY_MOST_NS)
		away = FG_AWAY_MOST_NS;
	fg_store_relaxed(&no_room_until_ns, *now + away * (NO_ROOM_FACTOR - 1));
	return false;
}

/*
 * At a gate, which is left by that for good: if others have had the CPU for so long.  Where threads
 * spin there and do not yield, those that do lose a time slice to them, and nobody of the process
 * spins for events for a while (no_room_until_ns): 208 threads on 104 CPUs make 515 operations a ms
 * of a semaphore, 635 so, 605 with ALONE_NS (simulated, 1 us).
 */
#define GATE_NS 20000u

static bool keeps_place(struct fg_wait *w, uint64_t *now)
{
	uint64_t left = *now;
	bool room = yield_turn(w, now);

	return room && *now - left < GATE_NS;
}

/* Reasons not to spin for what may never come. */
static enum fg_verdict decide_event(struct fg_wait *w, uint64_t *clock)
{
	enum fg_policy policy = fg_load_relaxed(&fg_policy_now);
	uint64_t now = *clock;

	if (policy == FG_POLICY_SPIN)
		return FG_SPIN;
	/* The object's line, which may be everybody's, last but for a system call. */
	if (now < fg_load_relaxed(&no_room_until_ns) || fg_cpus_allotted() == 1 ||
	    fg_is_rationed() || fg_load_relaxed(w->history) >= FG_SPIN_HISTORY_STOP ||
	    (!w->since_ns && has_deadline(w->self)))
		return FG_BLOCK;
	if (!w->since_ns)
		w->since_ns = now;
	if (policy != FG_POLICY_SPIN_THEN_PARK && now - w->since_ns >= FG_EVENT_NS)
		return FG_BLOCK;
	return w->keeps_cpu || yield_turn(w, clock) ? FG_SPIN : FG_BLOCK;
}

/* ---- participants of barriers ------------------------------------------------ */

/*
 * Only for so long after somebody has gone to sleep at a barrier.  Many programs use one to start
 * their threads together and never again, or have one wait for the end at another: there nobody's
 * progress hangs on a late thread, and to look for one cost 14 % (2-CPU VM, Linux 6.18;
 * docs/design/experiments.md, "Participants of a barrier, for a while").  The time was not varied.
 */
#define PARTICIPANTS_NS 2000000u

static uint64_t participants_until_ns;

/*
 * One waiter looks at all of them for the others, who read what it found, and no more often than
 * this: two lines a participant, which are written by that one and its scheduler.  About the time
 * between two questions of one waiter that come here.  Not varied.
 */
#define PARTICIPANTS_LOOK_NS 2000u

/*
 * The same one as long as it goes on and finds none: it has their lines in its cache.  After so
 * long another takes over.  Not varied.
 */
#define PARTICIPANTS_LOOKER_NS 16000u

/*
 * When the last look began << 1 | whether one was kept off, and who looked: a hint.  In a line of
 * their own: polled.
 */
static struct {
	uint64_t looked;
	const struct fg_self *looker;
} participants __attribute__((aligned(FG_CACHE_LINE)));

void fg_participants_are_late(void)
{
	fg_store_relaxed(&participants_until_ns, fg_now_ns() + PARTICIPANTS_NS);
}

/*
 * Threads beyond so many are not looked at: late ones are likely among the first, too.  Not varied.
 */
#define PARTICIPANTS_MAX 256u

static bool is_one_kept_off(void)
{
	uint32_t i, n = fg_threads_highest();

	if (n > PARTICIPANTS_MAX)
		n = PARTICIPANTS_MAX;
	for (i = 1; i <= n; i++)
		if (fg_load_relaxed(&fg_slot_look(i)->participant) &&
		    fg_load_relaxed(&fg_slot_look(i)->state) == FG_STATE_RUNNABLE)
			return true;
	return false;
}

/* As in programs that only start their threads together.  Not varied. */
#define BARRIERS_NS 100000000u

bool fg_barriers_are_used(const struct fg_self *t, uint64_t now)
{
	return fg_load_relaxed(&t->slot->participant) &&
	       now < fg_load_relaxed(&participants_until_ns) + BARRIERS_NS;
}

/*
 * Is a thread kept off the CPUs for which others wait at a barrier?  Whoever
 * spins in this process, for whatever, may be what keeps it.  Asked by
 * those that have spun for a while, and not counted by the monitor: what a
 * process wants from its own threads is nobody else's business.
 */
static bool participant_kept_off(const struct fg_self *self, uint64_t now)
{
	uint64_t looked, found, age;

	if (fg_likely(now > fg_load_relaxed(&participants_until_ns)))
		return false;
	looked = fg_load_relaxed(&participants.looked);
	found = looked & 1;
	age = now - (looked >> 1);
	if (age < PARTICIPANTS_LOOK_NS || (!found && age < PARTICIPANTS_LOOKER_NS &&
					   fg_load_relaxed(&participants.looker) != self))
		return found;
	/* Of two that would look, one does. */
	if (!__atomic_compare_exchange_n(&participants.looked, &looked, now << 1 | found, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return looked & 1;
	fg_store_relaxed(&participants.looker, self);
	found = is_one_kept_off();
	fg_store_relaxed(&participants.looked, now << 1 | found);
	return found;
}

/* For a registration, or for more slots. */
static void ask_monitor(uint64_t now)
{
	if (fg_policy_now == FG_POLICY_FALLBACK) {
		if (fg_unlikely(now >= fg_load_relaxed(&fg_monitor_retry_ns)))
			fg_monitor_retry(now);
	} else if (fg_unlikely(fg_slots_short()) && now >= fg_load_relaxed(&fg_monitor_grow_ns)) {
		fg_monitor_grow(now);
	}
}

void fg_monitor_look(const struct fg_self *t)
{
	uint64_t now = fg_now_ns();

	if (t->role == FG_ROLE_NONE)
		ask_monitor(now);
	if (fg_policy_has_monitor() &&
	    (fg_policy_monitor_is_gone(now) || fg_load_relaxed(&fg_slot_look(0)->ended)))
		fg_policy_monitor(NULL, 0);
}

static enum fg_verdict decide_unmonitored(struct fg_wait *w, uint64_t now)
{
	enum fg_verdict verdict;

	/* Events have been judged, and have no owner that a monitor could tell of. */
	if (w->history || w->look)
		return FG_SPIN;
	verdict = decide_fallback(w, now);
	if (verdict == FG_BLOCK)
		fg_monitor_missed(now);
	return verdict;
}

/* Every FG_CLOCK_EVERY questions: the clock, the cap, and whether the monitor still lives. */
static enum fg_verdict decide_slow(struct fg_wait *w)
{
	uint64_t now = fg_now_ns();

	/* nobody waits for this thread, as far as we know */
	if (w->asked == 1 && w->self->role == FG_ROLE_NONE)
		ask_monitor(now);
	if (w->look && !fg_look_goes_on(w->look, w->self, now))
		return FG_BLOCK;
	if (w->follows && fg_policy_now != FG_POLICY_SPIN && fg_is_rationed())
		return FG_BLOCK;
	if (w->history && decide_event(w, &now) == FG_BLOCK)
		return FG_BLOCK;
	if (!w->since_ns)
		w->since_ns = now;
	if (w->yields && !keeps_place(w, &now))
		return FG_BLOCK;
	if (now - w->since_ns > FG_SPIN_CAP_NS && fg_policy_now != FG_POLICY_SPIN)
		return FG_BLOCK;
	switch (fg_policy_now) {
	case FG_POLICY_FALLBACK: return decide_unmonitored(w, now);
	case FG_POLICY_SPIN_THEN_PARK: return now - w->since_ns < fg_spin_ns ? FG_SPIN : FG_BLOCK;
	case FG_POLICY_DEFAULT:
	case FG_POLICY_PAPER:
		/* `ended`: the credentials have changed, as a daemon's that gives up root. */
		if (fg_policy_monitor_is_gone(now) || fg_load_relaxed(&fg_slot_look(0)->ended))
			fg_policy_monitor(NULL, 0); /* until fg_monitor_retry finds another */
		if (w->asked > FG_CLOCK_EVERY && participant_kept_off(w->self, now))
			return preempted(w);
		if (fg_policy_now == FG_POLICY_DEFAULT && fg_unlikely(!fg_is_watched(w->owner)))
			return decide_fallback(w, now);
		return FG_SPIN;
	default: return FG_SPIN;
	}
}

enum fg_verdict fg_decide(struct fg_wait *w)
{
	if (fg_unlikely(w->asked++ % FG_CLOCK_EVERY == 0) && decide_slow(w) == FG_BLOCK)
		return FG_BLOCK;
	switch (fg_load_relaxed(&fg_policy_now)) {
	case FG_POLICY_DEFAULT: return decide_default(w);
	case FG_POLICY_PAPER: return decide_paper(w);
	case FG_POLICY_BLOCK: return FG_BLOCK;
	default: return FG_SPIN; /* these policies know only the clock */
	}
}

static bool spin_while(struct fg_wait *w, const uint32_t *word, uint32_t mask, uint32_t value,
		       const struct fg_deadline *deadline)
{
	/* Acquire: pairs with whoever changes the word to say that the wait is over. */
	while ((fg_load_acquire(word) & mask) == value) {
		if (fg_decide(w) == FG_BLOCK)
			return false;
		if (fg_unlikely(deadline != NULL) && w->asked % FG_CLOCK_EVERY == 1 &&
		    fg_deadline_passed(deadline))
			return false;
		fg_pause();
	}
	return true;
}

bool fg_spin_while(struct fg_wait *w, const uint32_t *word, uint32_t mask, uint32_t value,
		   const struct fg_deadline *deadline)
{
	uint32_t asked = w->asked;
	bool over = spin_while(w, word, mask, value, deadline);

	fg_count(w->self, FG_STAT_SPINS, w->asked - asked);
	return over;
}
