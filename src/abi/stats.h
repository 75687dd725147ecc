/* SPDX-License-Identifier: MIT */
/*
 * Statistics of a process tree, in memory that `flexguard run --stats` owns:
 * a file that it creates, names in FLEXGUARD_STATS and maps.  Each process maps
 * it in its constructor, so _exit, setuid, chroot and crashes lose nothing.
 *
 * Only slow paths count.  Threads add to a shard chosen by their slot, so that
 * counting does not itself contend.
 */
#ifndef FG_STATS_H
#define FG_STATS_H

#include <stdint.h>

#define FG_STATS_ENV	"FLEXGUARD_STATS"
#define FG_STATS_MAGIC	0x54534746u
#define FG_STATS_ABI	4
#define FG_STATS_SHARDS 64 /* not varied */

/* id, name in --json, what `flexguard run --stats` prints */
/* clang-format off */
#define FG_STATS_TABLE(X)                                                      \
	X(PROCESSES, "processes", "programs that were started on FlexGuard locks") \
	X(THREADS, "threads", "threads that took a lock")                      \
	X(CONTENDED, "contended", "acquisitions that found the lock held")     \
	X(SPUN, "spun", "  of these, got it while spinning")                   \
	X(SPINS, "spins", "looks at a held lock by waiters that spin")         \
	X(PARKS, "parks", "times a waiter went to sleep")                      \
	X(WAKEUPS, "wakeups", "wake-up calls by a releaser")                   \
	X(WAKEUPS_SAVED, "wakeups_saved", "wake-ups left out: the lock was kept busy") \
	X(PREEMPTIONS, "holder_preemptions", "times a waiter saw the critical path off CPU") \
	X(BLOCKED_NS, "blocking_ns", "time in blocking mode, all threads (ns)") \
	X(COND_WAITS, "cond_waits", "condition variable waits that slept")     \
	X(UNMONITORED, "unmonitored_threads", "threads that the monitor had no slot for as they began") \
	X(MONITORED, "monitored", "registrations with a monitor, of forked processes too") \
	X(EXTENSIONS, "slice_extensions", "time slices that the kernel extended for an owner") \
	X(EXTENSIONS_IN_TIME, "slice_extensions_in_time", "  of these, released before it was over") \
	X(LOOKS, "futex_looks", "waits of other libraries that looked before they slept") \
	X(LOOKS_IN_TIME, "futex_looks_in_time", "  of these, need not sleep")  \
	X(LOOKS_IN_VAIN, "futex_looks_in_vain", "  of these, slept after all") \
	X(LOOKS_NO_BUDGET, "futex_looks_no_budget", "waits that had no budget to look")
/* clang-format on */

enum fg_stat {
#define X(id, name, text) FG_STAT_##id,
	FG_STATS_TABLE(X)
#undef X
	    FG_STAT_COUNT
};

struct fg_stats_shard {
	uint64_t v[FG_STAT_COUNT];
} __attribute__((aligned(128)));

struct fg_stats {
	uint32_t magic; /* set last by the owner */
	uint32_t abi;
	uint32_t count; /* FG_STAT_COUNT */
	uint32_t shards;
	struct fg_stats_shard shard[FG_STATS_SHARDS];
};

#endif
