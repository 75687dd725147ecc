/* SPDX-License-Identifier: MIT */
/*
 * What threads count, on slow paths only: an add to the thread's own slot, where
 * the monitor looks, or to what all those share that it does not see; and for
 * `flexguard run --stats` one to its file.
 */
#ifndef FG_COUNT_H
#define FG_COUNT_H

#include "abi/stats.h"
#include "arch/arch.h"
#include "runtime/thread.h"

extern struct fg_stats *fg_stats; /* NULL: nobody asked */

/* enum fg_slot_stat, or -1: not counted there.  Known when compiled. */
static inline int fg_slot_stat(enum fg_stat what)
{
	switch (what) {
#define X(id) \
	case FG_STAT_##id: return FG_SLOT_##id;
		FG_SLOT_STATS_TABLE(X)
#undef X
	default: return -1;
	}
}

static inline void fg_count(const struct fg_self *t, enum fg_stat what, uint64_t n)
{
	struct fg_stats *s = fg_stats;
	int i = fg_slot_stat(what);

	if (i >= 0) {
		uint64_t add = what == FG_STAT_BLOCKED_NS ? (n + FG_SLOT_NS / 2) / FG_SLOT_NS : n;

		if (fg_likely(fg_slot_is_own(t)))
			fg_add_own(&t->slot->stats[i], (uint32_t)add);
		else
			fg_count_apart((uint32_t)i, add);
	}
	if (fg_unlikely(s != NULL))
		fg_add_relaxed(&s->shard[t->id % FG_STATS_SHARDS].v[what], n);
}

/* A wait for a lock that was held; also for fg_trace_ends(), whoever sees this thread's slot. */
static inline void fg_count_contended(const struct fg_self *t)
{
	fg_contended++;
	fg_count(t, FG_STAT_CONTENDED, 1);
}

static inline void fg_count_thread(const struct fg_self *t)
{
	fg_count(t, FG_STAT_THREADS, 1);
}

#endif
