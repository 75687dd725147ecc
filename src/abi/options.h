/* SPDX-License-Identifier: MIT */
/*
 * The names that a user can choose from, in one place for the library (which
 * reads the environment) and the command (which checks and documents them).
 */
#ifndef FG_OPTIONS_H
#define FG_OPTIONS_H

/*
 * enum suffix, name, one line of help.  Those of src/zoo/table.h follow: FG_LOCK_COUNT is the first
 * of them.
 */
/* clang-format off */
#define FG_LOCK_TABLE(X)                                                                       \
	X(FLEXGUARD, "flexguard", "the FlexGuard lock (default)")                              \
	X(GLIBC, "glibc", "glibc's own locks: nothing is preloaded")
/* clang-format on */

/* clang-format off */
#define FG_POLICY_TABLE(X)                                                                     \
	X(DEFAULT, "default", "spin while the owner runs and nobody critical waits for a CPU here") \
	X(PAPER, "paper", "the FlexGuard paper's rule: one system-wide counter")               \
	X(FALLBACK, "fallback", "no monitor: owner's CPU, owner's CPU clock, bounded spin")    \
	X(SPIN, "spin", "always spin (a spinlock; collapses when oversubscribed)")             \
	X(BLOCK, "block", "always block (a futex lock)")                                       \
	X(SPIN_THEN_PARK, "spin-then-park", "spin for FLEXGUARD_SPIN_NS, then block")
/* clang-format on */

/* Waits of other libraries. */
/* clang-format off */
#define FG_FUTEX_TABLE(X)                                                                      \
	X(OFF, "off", "they sleep at once (default)")                                          \
	X(ON, "on", "they look at their word for some us before they sleep")
/* clang-format on */

/* Time-slice extension. */
/* clang-format off */
#define FG_SLICE_TABLE(X)                                                                      \
	X(ON, "on", "owners of waited-for locks ask for it where the kernel has it (default)")  \
	X(OFF, "off", "nobody asks")
/* clang-format on */

enum fg_lock_kind {
#define X(id, name, help) FG_LOCK_##id,
	FG_LOCK_TABLE(X)
#undef X
	    FG_LOCK_COUNT
};

enum fg_policy {
#define X(id, name, help) FG_POLICY_##id,
	FG_POLICY_TABLE(X)
#undef X
	    FG_POLICY_COUNT
};

enum fg_futex_choice {
#define X(id, name, help) FG_FUTEX_##id,
	FG_FUTEX_TABLE(X)
#undef X
	    FG_FUTEX_COUNT
};

enum fg_slice_choice {
#define X(id, name, help) FG_SLICE_##id,
	FG_SLICE_TABLE(X)
#undef X
	    FG_SLICE_COUNT
};

/*
 * Environment, set by `flexguard run` and read once by the library's constructor; not in setuid
 * programs.
 */
#define FG_LOCK_ENV    "FLEXGUARD_LOCK"	   /* a name of FG_LOCK_TABLE */
#define FG_POLICY_ENV  "FLEXGUARD_POLICY"  /* a name of FG_POLICY_TABLE */
#define FG_SPIN_NS_ENV "FLEXGUARD_SPIN_NS" /* spin-then-park: ns, default 3000 */
#define FG_VERBOSE_ENV "FLEXGUARD_VERBOSE" /* messages of command and library: 0 silences them */
#define FG_FUTEX_ENV   "FLEXGUARD_FUTEX"   /* a name of FG_FUTEX_TABLE */
#define FG_SLICE_ENV   "FLEXGUARD_SLICE"   /* a name of FG_SLICE_TABLE */
/* FLEXGUARD_SOCKET: src/abi/protocol.h.  FLEXGUARD_STATS: src/abi/stats.h. */

#endif
