/* SPDX-License-Identifier: MIT */
#include "runtime/trace.h"

#include <stddef.h>

struct fg_trace fg_trace_here = {.magic = FG_TRACE_MAGIC,
				 .abi = FG_TRACE_ABI,
				 .entries = FG_TRACE_ENTRIES,
				 .stacks = FG_TRACE_STACKS_HERE};

/* For others to find.  Ours is hidden: no detour through the global offset table. */
extern struct fg_trace fg_trace __attribute__((alias("fg_trace_here"), visibility("default")));

/* Release and acquire: with the lock's address the caller's is found. */
static struct fg_trace_entry *find(uint64_t lock, uint64_t from)
{
	uint32_t i = (uint32_t)((lock * 31 + from) * 0x9e3779b97f4a7c15u >> 40), n;

	for (n = 0; n < FG_TRACE_PROBES; n++) {
		struct fg_trace_entry *e = &fg_trace_here.entry[(i + n) % FG_TRACE_ENTRIES];
		uint64_t none = 0;

		/*
		 * Another thread may be between the two stores: then there will be two entries for
		 * one key.
		 */
		if (!fg_load_relaxed(&e->caller) &&
		    __atomic_compare_exchange_n(&e->caller, &none, from, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			fg_store_release(&e->lock, lock);
		if (fg_load_relaxed(&e->caller) == from && fg_load_acquire(&e->lock) == lock)
			return e;
	}
	return NULL;
}

static bool is_wanted(void)
{
	uint32_t tid = fg_load_relaxed(&fg_trace_here.thread[0]), own, i;

	if (!tid)
		return true;
	own = fg_thread_tid(fg_self());
	for (i = 0; i < FG_TRACE_THREADS && (tid = fg_load_relaxed(&fg_trace_here.thread[i])); i++)
		if (tid == own)
			return true;
	return false;
}

struct fg_traced fg_trace_begins(void)
{
	return (struct fg_traced){.since_ns = fg_now_ns(), .contended = fg_contended};
}

void fg_trace_ends(const struct fg_traced *t, const void *lock, const void *caller)
{
	if (fg_contended != t->contended)
		fg_trace_wait(t->since_ns, lock, caller);
}

void fg_trace_wait(uint64_t since_ns, const void *lock, const void *caller)
{
	uint64_t now = fg_now_ns(), took = now - since_ns, longest,
		 period = fg_load_relaxed(&fg_trace_here.period_ns);
	struct fg_trace_entry *e;

	if (now > fg_load_relaxed(&fg_trace_here.until_ns)) {
		/* the command that looked has ended without switching it off */
		fg_store_relaxed(&fg_trace_here.until_ns, 0);
		return;
	}
	if (!is_wanted())
		return;
	if (period && now / period != since_ns / period)
		fg_trace_stack(lock, caller, took, (now / period - since_ns / period) * period);
	e = find((uint64_t)(uintptr_t)lock, (uint64_t)(uintptr_t)caller);
	if (!e) {
		fg_add_relaxed(&fg_trace_here.lost, 1);
		return;
	}
	fg_add_relaxed(&e->count, 1);
	fg_add_relaxed(&e->total_ns, took);
	longest = fg_load_relaxed(&e->max_ns);
	while (took > longest && !__atomic_compare_exchange_n(&e->max_ns, &longest, took, false,
							      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}
