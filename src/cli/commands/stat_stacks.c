/* SPDX-License-Identifier: MIT */
/* The copies of stacks that threads leave (abi/trace.h): fetched, unwound, added up. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands/stat.h"
#include "monitor/clock.h"

/* Of the time between two fetches, what unwinding may take before samples are made rarer. */
#define BUSY_NS 2000000ull

struct fg_stacks {
	struct fg_symbols *symbols;
	const char *library;
	struct fg_stack **row; /* sorted by what is waited there only by fg_stacks_rows() */
	size_t rows, room;
	uint32_t *place; /* hash table: index + 1 into row */
	size_t places;	 /* a power of 2 */
	uint64_t weight_ns, samples;
	uint64_t lost_ns; /* as read last */
};

struct fg_stacks *fg_stacks_new(struct fg_symbols *symbols, const char *library)
{
	struct fg_stacks *s = calloc(1, sizeof(*s));

	if (s) {
		s->symbols = symbols;
		s->library = library;
	}
	return s;
}

void fg_stacks_free(struct fg_stacks *s)
{
	for (size_t i = 0; s && i < s->rows; i++)
		free(s->row[i]);
	if (s) {
		free(s->row);
		free(s->place);
	}
	free(s);
}

static uint64_t hash(const uint64_t *pc, size_t n)
{
	uint64_t h = n;

	for (size_t i = 0; i < n; i++)
		h = (h ^ pc[i]) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static uint32_t *place_of(const struct fg_stacks *s, const uint64_t *pc, size_t n)
{
	for (uint64_t i = hash(pc, n);; i++) {
		uint32_t *at = &s->place[i & (s->places - 1)];
		const struct fg_stack *row = *at ? s->row[*at - 1] : NULL;

		if (!row || (row->frames == n && !memcmp(row->pc, pc, n * sizeof(*pc))))
			return at;
	}
}

/* Room for one more; the hash table is at most half full. */
static bool grow(struct fg_stacks *s)
{
	size_t room = s->room ? 2 * s->room : 64;
	struct fg_stack **row;
	uint32_t *place;

	if (s->rows < s->room)
		return true;
	row = realloc(s->row, room * sizeof(struct fg_stack *));
	if (row)
		s->row = row;
	place = calloc(2 * room, sizeof(*place));
	if (!row || !place) {
		free(place);
		return false;
	}
	free(s->place);
	s->place = place;
	s->places = 2 * room;
	s->room = room;
	for (size_t i = 0; i < s->rows; i++)
		*place_of(s, s->row[i]->pc, s->row[i]->frames) = (uint32_t)i + 1;
	return true;
}

static bool is_wanted(const struct fg_stacks *s, const uint64_t *pc, size_t n)
{
	bool found = !s->library;

	for (size_t i = 0; i < n && !found; i++)
		found = pc[i] && fg_symbols_in(s->symbols, pc[i], s->library);
	return found;
}

static void add(struct fg_stacks *s, const struct fg_trace_stack *t)
{
	uint64_t pc[FG_FRAMES];
	size_t n = fg_symbols_unwind(s->symbols, t, pc);
	struct fg_stack *row;
	uint32_t *at;

	if (!n && t->caller > 1) {
		pc[n++] = t->caller;
		pc[n++] = 0;
	}
	s->weight_ns += t->weight_ns;
	s->samples++;
	if (!n || !is_wanted(s, pc, n) || !grow(s))
		return;
	at = place_of(s, pc, n);
	if (!*at) {
		row = calloc(1, sizeof(*row) + n * sizeof(*pc));
		if (!row)
			return;
		row->frames = n;
		memcpy(row->pc, pc, n * sizeof(*pc));
		s->row[s->rows++] = row;
		*at = (uint32_t)s->rows;
	}
	row = s->row[*at - 1];
	row->samples++;
	row->weight_ns += t->weight_ns;
	row->max_ns = t->took_ns > row->max_ns ? t->took_ns : row->max_ns;
}

bool fg_stacks_take(struct fg_stacks *s, struct fg_stat_target *t, const struct fg_trace *table)
{
	uint64_t there = (uint64_t)(uintptr_t)table->stacks, start = fg_now_ns();
	static struct fg_trace_stacks head; /* the first fields only are read */
	static struct fg_trace_stack copy;
	uint32_t none = FG_TRACE_FREE;
	bool lost;

	if (fg_stat_transfer(t, there, &head, offsetof(struct fg_trace_stacks, stack), false))
		return false;
	for (size_t i = 0; i < FG_TRACE_STACKS; i++) {
		uint64_t at = there + offsetof(struct fg_trace_stacks, stack) + i * sizeof(copy);

		if (head.state[i] != FG_TRACE_FULL ||
		    fg_stat_transfer(t, at, &copy, sizeof(copy), false))
			continue;
		fg_stat_transfer(t, there + i * sizeof(none), &none, sizeof(none), true);
		/* It is another program's: believe no number in it. */
		if (copy.bytes <= sizeof(copy.stack))
			add(s, &copy);
	}
	lost = head.lost_ns != s->lost_ns;
	s->lost_ns = head.lost_ns;
	return lost || fg_now_ns() - start > BUSY_NS;
}

static int by_weight(const void *a, const void *b)
{
	const struct fg_stack *x = *(struct fg_stack *const *)a, *y = *(struct fg_stack *const *)b;

	return (x->weight_ns < y->weight_ns) - (x->weight_ns > y->weight_ns);
}

size_t fg_stacks_rows(struct fg_stacks *s, struct fg_stack *const **rows)
{
	/* The hash table is of no use any more. */
	if (s->rows)
		qsort(s->row, s->rows, sizeof(struct fg_stack *), by_weight);
	*rows = s->row;
	return s->rows;
}

uint64_t fg_stacks_weight(const struct fg_stacks *s, uint64_t *samples)
{
	*samples = s->samples;
	return s->weight_ns;
}
