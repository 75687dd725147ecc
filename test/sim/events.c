/* SPDX-License-Identifier: MIT */
/* What is due in simulated time: a heap of events, of which a running CPU is one. */
#include "kernel.h"

#define EVENTS (1u << 20) /* timers that have been overtaken stay until they are due */
static struct event heap[EVENTS];
static int nheap, background; /* background: those that do not keep the simulation going */
static uint64_t event_seq;

uint64_t sim_next_at(void)
{
	return nheap ? heap[0].at : ~0ull;
}

bool sim_events_left(void)
{
	return nheap > background;
}

void sim_events_clear(void)
{
	nheap = background = 0;
}

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

/* They go on as long as there is anything else. */
static bool is_background(int kind)
{
	return kind == E_SAMPLE || kind == E_VCPUS;
}

void sim_post(uint64_t at, enum event_kind kind, int who, uint64_t arg)
{
	struct event e = {at, event_seq++, kind, who, arg};
	int i = nheap++;

	for (; i && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
	if (at + M.quantum < horizon)
		horizon = at + M.quantum;
	background += is_background(kind);
}

struct event sim_next_event(void)
{
	struct event first = heap[0], e = heap[--nheap];
	int i = 0, child;

	while ((child = 2 * i + 1) < nheap) {
		child += child + 1 < nheap && before(&heap[child + 1], &heap[child]);
		if (before(&e, &heap[child]))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = e;
	background -= is_background(first.kind);
	return first;
}
