/* SPDX-License-Identifier: MIT */
#include "lock/rounds.h"

#include "runtime/policy.h"

/*
 * A short round is back for the lock within so many half journeys: about a hand-over, in which the
 * others would have had the lock meanwhile, and worked at the same time.  That time has no journeys
 * of the lock's lines in it.  On a machine of two CPUs that is less, as nobody else looks beside
 * the other one.  Who is out for longer than another's section mostly finds the lock free, so that
 * is a bound, too.  (The way is in it: its release gets the line back from one that tries to take
 * the lock.)  The section may have some journeys: between those of the FlexGuard paper's loop and
 * those of 1 us, which gain nothing (docs/design/experiments.md, "Backoff of the head").  Where
 * lines come from far, those of the loop take longer than 1 us (docs/design/many-cpus.md, "Sections
 * that are short far away").
 */
#define BACK_HALF_JOURNEYS	11u
#define BACK_HALF_JOURNEYS_PAIR 6u
#define BACK_LEAST_NS		128u
#define BACK_MOST_NS		512u
#define SHORT_SECTION_NS	1000u
#define SHORT_SECTION_JOURNEYS	9u

/* Of a native lock: both parts, since its release tells nothing.  Not varied. */
#define SHORT_NATIVE_ROUND_NS 1000u

/* As many bits as fg_thread has for them. */
#define ROUND_OF      0x1ffu
#define ROUND_SECTION 0x3fu
_Static_assert(BACK_MOST_NS / FG_ROUND_UNIT_NS <= ROUND_SECTION, "longer ones are all alike");

/* One round in so many is timed.  Not varied. */
#define TIMED_EVERY 16u
_Static_assert(TIMED_EVERY == 16, "fg_self.times_head wraps there");

/*
 * How long a line takes from one to another of the threads that meet at locks of this process, on
 * average, in FG_PARTS of a ns; 0: not known.  A hint, written without order.  Of differences of
 * clocks, some of which are negative: so by FG_JOURNEY_MOST_NS more than it is.
 */
static uint32_t journey __attribute__((aligned(FG_CACHE_LINE)));

static uint32_t bounded(int64_t ns)
{
	if (ns > FG_JOURNEY_MOST_NS)
		return 2 * FG_JOURNEY_MOST_NS;
	return ns < -FG_JOURNEY_MOST_NS ? 0 : (uint32_t)(ns + FG_JOURNEY_MOST_NS);
}

/* The clock after a look: what is read decides whether it is, so that it is not read first. */
static int64_t after_look(const struct fg_slot *slot)
{
	if (fg_load_acquire(&slot->pending) == UINT64_MAX) /* no address */
		return 0;
	return (int64_t)fg_now_ns();
}

/*
 * Of the line in which the owner says what it holds, and which it has written last.  A look at this
 * thread's own, which is here, tells what a look and the clock take by themselves: a second one at
 * the owner's would not, since two threads that have come into step write there in between each
 * time.
 */
void _fg_time_journey(const struct fg_self *t, uint32_t owner)
{
	const struct fg_slot *slot = fg_slot_look(fg_id_index(owner));
	int64_t began, there, here;

	/* In another line: it may be one of another process. */
	if (fg_load_relaxed(&slot->owner_id) != owner)
		return;
	began = (int64_t)fg_now_ns();
	there = after_look(slot);
	here = after_look(t->slot);
	fg_average(&journey, bounded(there - began - (here - there)) * FG_PARTS);
}

uint32_t _fg_journeys_ns(uint32_t number)
{
	uint32_t ns = fg_load_relaxed(&journey) / FG_PARTS;

	return ns > FG_JOURNEY_MOST_NS ? (ns - FG_JOURNEY_MOST_NS) * number : 0;
}

/* More counts as that.  Not varied. */
#define ROUND_MOST_NS 4000u

/*
 * Lately, of all locks and threads of this process that share their CPUs, in FG_PARTS of a ns; 0:
 * not known.  Hints: written without order, and of several locks the one that is got as the head
 * most often counts most.
 */
static struct __attribute__((aligned(FG_CACHE_LINE))) {
	uint32_t section, away; /* until the release; from there to the next lock */
} lately;

static void note(uint32_t *average, uint32_t ns)
{
	fg_average(average, (ns < ROUND_MOST_NS ? ns : ROUND_MOST_NS) * FG_PARTS);
}

void _fg_section_took(const struct fg_self *t, uint32_t ns)
{
	if (fg_unlikely(fg_shares_cpu(t)))
		note(&lately.section, ns);
}

void _fg_was_away(const struct fg_self *t, uint32_t ns)
{
	if (fg_unlikely(fg_shares_cpu(t)))
		note(&lately.away, ns);
}

uint32_t _fg_rounds_ns(void)
{
	uint32_t section = fg_load_relaxed(&lately.section), away = fg_load_relaxed(&lately.away);

	return section && away ? (section + away) / FG_PARTS + 1 : 0;
}

static uint32_t back_ns(uint32_t section)
{
	uint32_t halves = fg_machine_cpus() == 2 ? BACK_HALF_JOURNEYS_PAIR : BACK_HALF_JOURNEYS;
	uint32_t ns = _fg_journeys_ns(halves) / 2;

	if (ns > section)
		ns = section;
	if (ns > BACK_MOST_NS)
		return BACK_MOST_NS;
	return ns > BACK_LEAST_NS ? ns : BACK_LEAST_NS;
}

/* Of two CPUs none is far. */
static uint32_t short_section_ns(void)
{
	uint32_t ns = fg_machine_cpus() == 2 ? 0 : _fg_journeys_ns(SHORT_SECTION_JOURNEYS);

	return ns > SHORT_SECTION_NS ? ns : SHORT_SECTION_NS;
}

/*
 * After a short one the next is timed as well, until they surely are: in a long queue a thread
 * comes to its sixteenth lock after some ms.  Nor does it go on for 16 rounds as if they were short
 * after it has seen one that was not: where times vary one in four is, and two of these in a row
 * are not rare (docs/design/many-cpus.md, "Times that vary").
 */
static void judge(struct fg_self *t, bool is_short)
{
	if (is_short)
		t->short_rounds += t->short_rounds < SHORT_ROUNDS_MOST;
	else
		t->short_rounds -= t->short_rounds > 0;
	if (is_short ? t->short_rounds < SHORT_ROUNDS_MOST : t->short_rounds == SHORT_ROUNDS)
		t->times_head = 0;
}

/*
 * A look at a line that is here takes about as long as one at a line of one's own; at one that has
 * moved it takes a journey more, which can be told if that is twice as much.  Not varied.
 */
#define MOVED_NS	 16
#define JOURNEY_LEAST_NS 32u

/*
 * As many times as long as a short round may be out, which a sibling's, whose look moves no line,
 * shows of itself.  With 1 or 2, 3 % less with siblings in one seed of three (simulated).
 */
#define OVER_BACKS 3u

/* In which a clock that stands still ends it.  Not varied. */
#define OVER_LOOKS 128u

/*
 * Free, and nobody has taken it: not at any of many looks, and its line has not moved between them.
 * Who joins the queue moves it, too.
 */
bool _fg_rounds_are_over(const struct fg_lock *l, struct fg_self *t)
{
	uint32_t back = back_ns(fg_thread_mine(t)->round_section * FG_ROUND_UNIT_NS);
	int64_t before, now, hit, until;

	if (_fg_journeys_ns(1) < JOURNEY_LEAST_NS || (fg_load_relaxed(&l->word) & FG_WORD_ID))
		return false;
	before = (int64_t)fg_now_ns();
	now = after_look(t->slot);
	hit = now - before;
	until = now + OVER_BACKS * back;
	for (uint32_t looks = 0; hit > 0 && looks < OVER_LOOKS; looks++) {
		before = now;
		if (fg_load_acquire(&l->word) & FG_WORD_ID)
			return false;
		now = (int64_t)fg_now_ns();
		if (now - before >= hit + MOVED_NS)
			return false;
		if (now >= until) {
			judge(t, false);
			return true;
		}
	}
	return false;
}

/* Bits that tell locks apart, for a hint: neighbours, and those of pages. */
static uint16_t round_lock(const struct fg_lock *l)
{
	return (part_of_address(address(l)) ^ part_of_address(address(l) >> 9)) & ROUND_OF;
}

void _fg_round_begins(const struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me;

	if (!fg_id_has_slot(t->id))
		return;
	me = fg_thread_mine(t);
	me->round_since = round_clock(fg_now_ns());
	me->round_of = round_lock(l);
	me->round_is_released = 0;
	me->round_section = 0;
	t->round_is_timed = 1;
}

/* If not, that is all there is to know of this round. */
static bool section_is_short(uint32_t ns, struct fg_self *t)
{
	if (ns <= short_section_ns())
		return true;
	_fg_section_took(t, ns);
	judge(t, false);
	t->round_is_timed = 0;
	return false;
}

/*
 * Not by how long the way of the lock takes, or what tells the next one: a section that looks long
 * by that makes its thread hand the lock over each time, which makes its sections look long.
 */
void _fg_round_hands_over(const struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);

	if (!me->round_is_released && me->round_of == round_lock(l))
		me->round_section = section_is_short(round_time(me->round_since, fg_now_ns()), t);
}

static void note_section(struct fg_self *t, struct fg_thread *me)
{
	uint64_t now = fg_now_ns();
	uint32_t ns = round_time(me->round_since, now);

	if (!me->round_section && !section_is_short(ns, t))
		return;
	_fg_section_took(t, ns);
	me->round_since = round_clock(now);
	ns /= FG_ROUND_UNIT_NS;
	me->round_section = ns < ROUND_SECTION ? ns : ROUND_SECTION;
	me->round_is_released = 1;
}

/*
 * The next lock has to come the slow way, where the round ends.  Beside another one, which is held
 * still, it does.  A thread that has nothing any more, and has released another lock, has released
 * this one unseen (a lock that is the only one is released the fast way, though it was taken beside
 * another): nothing is known of that round.
 */
void _fg_round_releases(const struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);

	if (!me->round_is_released && me->round_of == round_lock(l))
		note_section(t, me);
	if (t->only != FG_ONLY_NONE)
		return;
	t->round_is_timed &= me->round_is_released;
	if (t->round_is_timed)
		force_slow_path(t);
}

/*
 * Past other locks it goes on: a lock that threads leave for others lies free while its head keeps
 * away from it.
 */
void _fg_round_ends(const struct fg_lock *l, struct fg_self *t)
{
	const struct fg_thread *me = fg_thread_mine(t);
	uint64_t now = fg_now_ns();
	uint32_t ns = round_time(me->round_since, now),
		 most = back_ns(me->round_section * FG_ROUND_UNIT_NS);

	if (ns <= most && me->round_of != round_lock(l))
		return;
	judge(t, ns <= most);
	_fg_was_away(t, ns);
	t->round_is_timed = 0;
}

/*
 * Its release may come the fast way, unseen.  A long one: to drop it instead leaves the short ones
 * of a queue with a condition variable, which then makes 0.76 (2 producers and 2 consumers, 2
 * CPUs).
 */
void _fg_round_has_another(struct fg_self *t)
{
	judge(t, false);
	t->round_is_timed = 0;
}

void _fg_native_round_took(struct fg_self *t, uint32_t ns)
{
	judge(t, ns <= SHORT_NATIVE_ROUND_NS);
}

/*
 * Where threads share two CPUs by time slices, each of them sleeps at some of the ends of these,
 * at which an owner loses its CPU in its section: once in some 8 ms.  Where an owner gives its CPU
 * away in its section, whoever is woken has it, meets that lock, and sleeps again: a hundred times
 * as often, and each time costs two switches.  So a thread of the process may sleep once in
 * WOKEN_NS on average, and a few times at once.  That is a leaky bucket, by the time at which it
 * will be empty (the virtual scheduling algorithm of ITU-T I.371): a hint of all threads, written
 * by those that come from the kernel anyway.  2 and 8 ms: the same within noise ("Wake-ups where
 * rounds are short").
 */
#define WOKEN_NS       4000000u
#define WOKEN_AHEAD_NS (4ull * WOKEN_NS) /* not varied */

/*
 * More, all awake, run into each owner that has lost its CPU.  Empty sections, back at once, on 2
 * CPUs: 1.8 of before with 64 threads, 1.3 with 96, 0.92 with 128.
 */
#define AWAKE_MOST 96u

static uint64_t woken_until __attribute__((aligned(FG_CACHE_LINE)));

bool _fg_rounds_wake_each_time(const struct fg_self *t)
{
	return rounds_are_short(t) && fg_threads_now() <= AWAKE_MOST &&
	       fg_load_relaxed(&woken_until) < fg_now_ns() + WOKEN_AHEAD_NS;
}

void _fg_rounds_woken(const struct fg_self *t, uint64_t now)
{
	uint32_t threads = fg_threads_now();
	uint64_t until;

	if (!rounds_are_short(t))
		return;
	until = fg_load_relaxed(&woken_until);
	fg_store_relaxed(&woken_until,
			 (until > now ? until : now) + WOKEN_NS / (threads ? threads : 1));
}
