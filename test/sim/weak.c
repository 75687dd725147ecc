/* SPDX-License-Identifier: MIT */
/*
 * Memory orders, as C11 has them: a load may return an older value than the newest as long as
 * nothing that its thread has seen forbids it, and plain data that two threads use must be ordered
 * by what the code under test says (relacy of Vyukov, CDSChecker of Norris and Demsky, OOPSLA 2013,
 * and FastTrack of Flanagan and Freund, PLDI 2009, work so; nothing of theirs is used).
 *
 * Memory itself always has the newest value, in the order of the schedule.  Beside it each atomic
 * location has its last stores, with what their threads had seen (a vector clock) where they were
 * releases.  Loads by plain instructions see the newest value; a plain store to an atomic location
 * shows at once.  A value is no longer old after STALE: store buffers drain.
 *
 * Not there: loads that see a store of the future (load buffering); the eBPF program's accesses are
 * all ordered.  Sequentially consistent fences order a little more than C11 asks for.  The kernel
 * orders what comes before a wake-up before what comes after the sleep, as Linux does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "objects/objects.h"
#include "sim.h"

bool weak;
#define STALE (5 * US)

#define T WEAK_THREADS
struct clock {
	uint32_t of[T];
};

/* What a thread has seen, and what it would with a fence. */
static struct view {
	struct clock now;     /* happens before */
	struct clock fenced;  /* visible since its last sequentially consistent fence */
	struct clock pending; /* loaded relaxed: seen after an acquire fence */
	struct clock release; /* of its last release fence */
} view[T];
/* Of all such fences, and of all sequentially consistent stores. */
static struct clock fences, stores;

#define DEPTH 4
static struct location {
	uint64_t at; /* 0: unused */
	uint32_t size, count, last_sc;
	uint32_t newest;	      /* number of the last store; it is in store[newest % DEPTH] */
	uint32_t seen[T], seen_at[T]; /* by whom, and its own time then */
	struct {
		uint64_t value, when;
		int by; /* -1: everybody has seen it */
		uint32_t at;
		struct clock release;
	} store[DEPTH];
} *locations;
#define LOCATIONS 16384u
static uint32_t used[LOCATIONS], nused;
static int nwatched;

static void join(struct clock *to, const struct clock *from)
{
	for (int i = 0; i < T; i++)
		if (from->of[i] > to->of[i])
			to->of[i] = from->of[i];
}

void weak_reset(void)
{
	if (!weak)
		return;
	if (!locations)
		locations = calloc(LOCATIONS, sizeof(*locations));
	for (uint32_t i = 0; i < nused; i++)
		locations[used[i]].at = 0;
	nused = 0;
	nwatched = 0;
	memset(view, 0, sizeof(view));
	memset(&fences, 0, sizeof(fences));
	memset(&stores, 0, sizeof(stores));
	for (int i = 0; i < T; i++)
		view[i].now.of[i] = 1;
}

/* The calling thread's number; -1: the kernel. */
static int me(void)
{
	return here && !here->in_kernel && here->cur && here->cur->id < T ? here->cur->id : -1;
}

static void push(struct location *l, uint64_t value, int by, const struct clock *release)
{
	uint32_t i = ++l->newest % DEPTH;

	l->count += l->count < DEPTH;
	l->store[i].value = value;
	l->store[i].when = here->now;
	l->store[i].by = by;
	l->store[i].at = by < 0 ? 0 : view[by].now.of[by];
	if (release)
		l->store[i].release = *release;
	else
		memset(&l->store[i].release, 0, sizeof(struct clock));
}

static struct location *slot_of(uint64_t at, uint32_t size)
{
	uint32_t i = (uint32_t)(at * 0x9E3779B97F4A7C15ull >> 50) % LOCATIONS;

	while (locations[i].at && (locations[i].at != at || locations[i].size != size))
		i = (i + 1) % LOCATIONS;
	return &locations[i];
}

/* An access to half of a location that is 8 bytes elsewhere is one to all of it. */
struct part {
	struct location *l;
	uint32_t shift, bits;
};

/* The whole with this part. */
static uint64_t with_part(const struct part *a, uint64_t part)
{
	uint64_t mask = a->bits == 64 ? ~0ull : (1ull << a->bits) - 1;
	uint64_t whole;

	if (!a->l->at || a->l->size * 8 == a->bits)
		return part;
	memcpy(&whole, (const void *)a->l->at, 8);
	return (whole & ~(mask << a->shift)) | part << a->shift;
}

static uint64_t part_of(const struct part *a, uint64_t whole)
{
	return a->bits == 64 ? whole : whole >> a->shift & ((1ull << a->bits) - 1);
}

static struct part location_of(const volatile void *p, uint32_t size, uint64_t real)
{
	uint64_t at = (uint64_t)p, base = at & ~7ull;
	struct part a = {.bits = size * 8};

	a.l = slot_of(base, 8);
	if (size < 8 && a.l->at)
		a.shift = (uint32_t)(at - base) * 8;
	else
		a.l = slot_of(at, size);
	real = with_part(&a, real);
	if (!a.l->at) {
		if (nused == LOCATIONS / 2)
			abort();
		used[nused++] = (uint32_t)(a.l - locations);
		memset(a.l, 0, sizeof(*a.l));
		a.l->at = at;
		a.l->size = size;
		push(a.l, real, -1, NULL);
	} else if (a.l->store[a.l->newest % DEPTH].value != real) {
		a.l->count = 0; /* a plain store: it shows at once */
		push(a.l, real, -1, NULL);
	}
	return a;
}

/* The oldest store that the thread may still see. */
static uint32_t oldest(const struct location *l, int t, bool sc)
{
	uint32_t first = l->newest - l->count + 1, n;

	for (n = l->newest; n > first; n--) {
		int by = l->store[n % DEPTH].by;
		uint32_t at = l->store[n % DEPTH].at;

		if (by < 0 || by == t || at <= view[t].now.of[by] || at <= view[t].fenced.of[by] ||
		    (sc && (at <= fences.of[by] || n <= l->last_sc)) ||
		    here->now - l->store[n % DEPTH].when > STALE)
			break;
	}
	for (int i = 0; i < T; i++) /* coherence: not older than what anybody before it has seen */
		if (l->seen[i] > n && (i == t || l->seen_at[i] <= view[t].now.of[i]))
			n = l->seen[i];
	return n;
}

static bool acquires(int order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME ||
	       order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void sees(struct location *l, int t, uint32_t n, int order)
{
	const struct clock *c = &l->store[n % DEPTH].release;

	l->seen[t] = n;
	l->seen_at[t] = view[t].now.of[t] + 1; /* not before what it has released so far */
	join(acquires(order) ? &view[t].now : &view[t].pending, c);
}

uint64_t weak_load(const volatile void *p, uint32_t size, int order, uint64_t real)
{
	int t = me();
	struct part a;
	struct location *l;
	uint32_t n, from;

	if (t < 0)
		return real;
	a = location_of(p, size, real);
	l = a.l;
	from = oldest(l, t, order == __ATOMIC_SEQ_CST);
	n = rng() % 2 ? l->newest : from + (uint32_t)(rng() % (l->newest - from + 1));
	sees(l, t, n, order);
	return part_of(&a, l->store[n % DEPTH].value);
}

static void stored(struct location *l, int t, int order, uint64_t value, struct clock *release)
{
	view[t].now.of[t]++;
	join(release, releases(order) ? &view[t].now : &view[t].release);
	push(l, value, t, release);
	l->seen[t] = l->newest;
	l->seen_at[t] = view[t].now.of[t];
	if (order == __ATOMIC_SEQ_CST) {
		l->last_sc = l->newest;
		stores.of[t] = view[t].now.of[t];
	}
}

void weak_store(volatile void *p, uint32_t size, int order, uint64_t before, uint64_t value)
{
	struct clock release = {0};
	struct part a;
	int t = me();

	if (t < 0)
		return;
	a = location_of(p, size, before);
	stored(a.l, t, order, with_part(&a, value), &release);
}

/* Reads the newest, and is part of the release sequence of what it has read. */
void weak_rmw(volatile void *p, uint32_t size, int order, uint64_t before, uint64_t value)
{
	int t = me();
	struct part a;
	struct clock release;

	if (t < 0)
		return;
	a = location_of(p, size, before);
	sees(a.l, t, a.l->newest, order);
	release = a.l->store[a.l->newest % DEPTH].release;
	stored(a.l, t, order, with_part(&a, value), &release);
}

/* A compare-and-swap that failed: a load of the newest. */
void weak_look(const volatile void *p, uint32_t size, int order, uint64_t real)
{
	int t = me();
	struct part a;

	if (t < 0)
		return;
	a = location_of(p, size, real);
	sees(a.l, t, a.l->newest, order);
}

static void full_fence(int t)
{
	join(&view[t].now, &view[t].pending);
	join(&view[t].fenced, &fences);
	join(&view[t].fenced, &stores);
	join(&fences, &view[t].now);
	view[t].now.of[t]++;
	view[t].release = view[t].now;
}

void weak_fence(int order)
{
	int t = me();

	if (!weak || t < 0)
		return;
	if (order == __ATOMIC_SEQ_CST) {
		full_fence(t);
		return;
	}
	if (acquires(order))
		join(&view[t].now, &view[t].pending);
	if (releases(order)) {
		view[t].now.of[t]++;
		view[t].release = view[t].now;
	}
}

void weak_fence_everywhere(void)
{
	for (int t = 0; weak && t < T; t++)
		full_fence(t);
	for (int t = 0; weak && t < T; t++) /* each has seen what all the others had */
		join(&view[t].fenced, &fences);
}

/* One thread makes another go on: what came before is seen after. */
void weak_wakes(int from, int to)
{
	if (!weak || from >= T || to >= T || from < 0)
		return;
	view[from].now.of[from]++;
	join(&view[to].now, &view[from].now);
}

/* ---- plain data, guarded by the objects ------------------------------------------------ */

#define WATCHED 8
#define WORDS	8 /* of 8 bytes */
static struct {
	uint64_t from;
	struct {
		int writer;
		uint32_t written;
		struct clock read;
	} word[WORDS];
} watched[WATCHED];

void weak_watch(const void *at)
{
	if (!weak || nwatched == WATCHED)
		return;
	memset(&watched[nwatched], 0, sizeof(watched[0]));
	watched[nwatched++].from = (uint64_t)at;
}

void weak_plain(uint64_t at, bool writes, const void *pc)
{
	int t = me();

	for (int i = 0; t >= 0 && i < nwatched; i++) {
		uint64_t w = (at - watched[i].from) / 8;
		char text[100];
		bool race;
		int other;

		if (at < watched[i].from || w >= WORDS)
			continue;
		other = watched[i].word[w].writer;
		race = watched[i].word[w].written &&
		       watched[i].word[w].written > view[t].now.of[other];
		for (int o = 0; writes && !race && o < T; o++)
			if (watched[i].word[w].read.of[o] > view[t].now.of[o]) {
				other = o;
				race = true;
			}
		if (race) {
			if (!results.violations)
				results.where = pc;
			snprintf(text, sizeof(text),
				 "without order: data that the object guards, by threads %d and %d",
				 other, t);
			violation(text);
		}
		view[t].now.of[t]++;
		if (writes) {
			watched[i].word[w].writer = t;
			watched[i].word[w].written = view[t].now.of[t];
		} else {
			watched[i].word[w].read.of[t] = view[t].now.of[t];
		}
	}
}
