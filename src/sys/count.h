/* SPDX-License-Identifier: MIT */
/* The library's side of stats.h: one test and one relaxed add, on slow paths only. */
#ifndef FG_COUNT_H
#define FG_COUNT_H

#include "lock/thread.h"
#include "sys/stats.h"

extern struct fg_stats *fg_stats; /* NULL: nobody asked */

static inline void fg_count(const struct fg_self *t, enum fg_stat what, uint64_t n)
{
	struct fg_stats *s = fg_stats;

	if (fg_unlikely(s != NULL))
		fg_add_relaxed(&s->shard[t->id % FG_STATS_SHARDS].v[what], n);
}

static inline void fg_count_thread(const struct fg_self *t)
{
	fg_count(t, FG_STAT_THREADS, 1);
}

#endif
