/* SPDX-License-Identifier: MIT */
/* Atomics with the memory order in the name, so that an order can be searched for. */
#ifndef FG_ATOMIC_H
#define FG_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define fg_likely(x)   __builtin_expect(!!(x), 1)
#define fg_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Of two lines of code: what an uncontended mutex takes was 5.0 to 6.0 ns by where in a line it
 * began (docs/design/experiments.md, "A second lock in a straight line").
 */
#define FG_HOT __attribute__((aligned(64)))

#define fg_load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define fg_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define fg_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define fg_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define fg_xchg_acquire(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)
#define fg_xchg_acq_rel(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define fg_add_relaxed(p, v)   __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define fg_add_release(p, v)   __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
#define fg_add_acq_rel(p, v)   __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define fg_load_seq_cst(p)     __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define fg_or_acq_rel(p, v)    __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define fg_and_acq_rel(p, v)   __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)
#define fg_or_relaxed(p, v)    __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define fg_and_relaxed(p, v)   __atomic_fetch_and((p), (v), __ATOMIC_RELAXED)
#define fg_or_acquire(p, v)    __atomic_fetch_or((p), (v), __ATOMIC_ACQUIRE)
#define fg_and_release(p, v)   __atomic_fetch_and((p), (v), __ATOMIC_RELEASE)
#define fg_fence_acquire()     __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define fg_fence_seq_cst()     __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Orders the accesses of one thread against what runs on the same CPU in its
 * place: its signal handlers and the eBPF program.  Costs no instruction. */
#define fg_fence_local() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Compare and swap; on failure *expected has the value found. */
#define FG_CAS(name, success, failure)                                                             \
	static inline bool fg_cas_##name(uint32_t *p, uint32_t *expected, uint32_t desired)        \
	{                                                                                          \
		return __atomic_compare_exchange_n(p, expected, desired, false, success, failure); \
	}
FG_CAS(relaxed, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
FG_CAS(acquire, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
FG_CAS(release, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
FG_CAS(acq_rel, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#undef FG_CAS

static inline bool fg_cas64_seq_cst(uint64_t *p, uint64_t *expected, uint64_t desired)
{
	return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static inline bool fg_cas64_acq_rel(uint64_t *p, uint64_t *expected, uint64_t desired)
{
	return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static inline bool fg_cas64_release(uint64_t *p, uint64_t *expected, uint64_t desired)
{
	return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_RELEASE,
					   __ATOMIC_RELAXED);
}

#endif
