/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of contention.bpf.c, and how they are counted in: no lock is taken, whatever is held
 * (src/abi/contention.h).
 */
#ifndef FG_CONTENTION_TABLES_H
#define FG_CONTENTION_TABLES_H

#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include "../src/abi/contention.h"

#define TABLE(name_, type_, rows_)                 \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, rows_);        \
		__type(key, __u32);                \
		__type(value, type_);              \
	} name_ SEC(".maps")

TABLE(locks, struct fg_contended_lock, FG_LOCK_ROWS);
TABLE(waiters, struct fg_contended_waiter, FG_WAITER_ROWS);
TABLE(waiting, struct fg_waiting, FG_WAITING_ROWS); /* for locks whose waiters may move or sleep */
TABLE(counts, struct fg_contention_counts, 1);

struct spins {
	struct fg_waiting spin[FG_NESTED_SPINS];
};
/* Waits with preemption off: those of this CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct spins);
} spinning SEC(".maps");

#define ADD(word, n) __sync_fetch_and_add(&(word), n)

static __always_inline struct fg_contention_counts *get_counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counts, &zero);
}

#define COUNT(name)                                             \
	do {                                                    \
		struct fg_contention_counts *c_ = get_counts(); \
		if (c_)                                         \
			ADD(c_->name, 1);                       \
	} while (0)

/* MurmurHash3's finaliser (Appleby): a bijection, so what differs stays different. */
static __always_inline __u64 mix(__u64 x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/*
 * All addresses of the kernel begin with the same three bits; so locks of one class and address
 * have one key, others none.
 */
static __always_inline __u64 lock_key(__u64 lock, __u32 class)
{
	return mix(lock ^ (__u64) class << 61);
}

/*
 * The row of this key; `make`: or a free one, taken for it, and *made.  Rows are not given back
 * while others look, but in `waiting`, where a key is looked for by its own thread only.
 */
#define FIND(table, rows, key_, make, made)                                            \
	({                                                                             \
		typeof(*(made).row) *found_ = NULL;                                    \
		for (int i_ = 0; i_ < FG_CONTENTION_PROBES; i_++) {                    \
			__u32 at_ = ((__u32)(key_) + i_) % (rows);                     \
			typeof(*(made).row) *r_ = bpf_map_lookup_elem(&table, &at_);   \
			__u64 was_;                                                    \
			if (!r_)                                                       \
				break;                                                 \
			was_ = *(volatile __u64 *)&r_->key;                            \
			if (!was_ && (make)) {                                         \
				was_ = __sync_val_compare_and_swap(&r_->key, 0, key_); \
				(made).new = !was_;                                    \
				was_ = was_ ? was_ : (key_);                           \
			}                                                              \
			if (was_ == (key_)) {                                          \
				found_ = r_;                                           \
				break;                                                 \
			}                                                              \
		}                                                                      \
		found_;                                                                \
	})

struct made_lock {
	struct fg_contended_lock *row;
	bool new;
};
struct made_waiter {
	struct fg_contended_waiter *row;
	bool new;
};
struct made_waiting {
	struct fg_waiting *row;
	bool new;
};

/* ---- counting ------------------------------------------------------------------- */

static __always_inline void raise(__u64 *word, __u64 to)
{
	__u64 was = *(volatile __u64 *)word;

	for (int i = 0; i < 8 && was < to; i++) {
		__u64 now = __sync_val_compare_and_swap(word, was, to);

		if (now == was)
			break;
		was = now;
	}
}

static __always_inline void add_wait(struct fg_waits *w, __u64 ns, bool read, bool failed)
{
	if (failed)
		ADD(w->failed, 1);
	else
		ADD(w->waits, 1);
	if (read)
		ADD(w->reads, 1);
	ADD(w->wait_ns, ns);
	raise(&w->max_ns, ns);
}

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 n = 0;

	for (int shift = 16; shift; shift >>= 1)
		if (ns >> shift) {
			ns >>= shift;
			n += shift;
		}
	return n < FG_WAIT_BUCKETS ? n : FG_WAIT_BUCKETS - 1;
}

#endif
