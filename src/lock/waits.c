/* SPDX-License-Identifier: MIT */
#include "lock/waits.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

struct fg_trace fg_trace __attribute__((visibility("default"))) = {
	.magic = FG_TRACE_MAGIC, .abi = FG_TRACE_ABI, .entries = FG_TRACE_ENTRIES,
};

/* This library's ELF header, by the linker. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* In this library's code. */
static bool is_ours(uint64_t pc)
{
	uint64_t base = (uint64_t)(uintptr_t)&__ehdr_start;
	const ElfW(Phdr) *p = (const ElfW(Phdr) *)(uintptr_t)(base + __ehdr_start.e_phoff);

	for (int i = 0; i < __ehdr_start.e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && pc - base - p[i].p_vaddr < p[i].p_memsz)
			return true;
	return false;
}

/*
 * The first return address outside this library.  Its own functions have frame
 * pointers (meson.build), so only its own frames are walked, and a program
 * without them does not matter.
 */
static __attribute__((noinline)) uint64_t caller(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
	const uint64_t *frame = __builtin_frame_address(0);

	for (int depth = 0; depth < 16; depth++) {
		if (!is_ours(frame[1]))
			return frame[1];
		frame = (const uint64_t *)(uintptr_t)frame[0];
	}
#endif
	return 0;
}

/* Release and acquire: who finds the lock's address finds the caller's. */
static struct fg_trace_entry *find(uint64_t lock, uint64_t from)
{
	uint32_t i = (uint32_t)((lock * 31 + from) * 0x9e3779b97f4a7c15u >> 40), n;

	for (n = 0; n < FG_TRACE_PROBES; n++) {
		struct fg_trace_entry *e = &fg_trace.entry[(i + n) % FG_TRACE_ENTRIES];
		uint64_t none = 0;

		if (!fg_load_relaxed(&e->caller) &&
		    __atomic_compare_exchange_n(&e->caller, &none, from, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			__atomic_store_n(&e->lock, lock, __ATOMIC_RELEASE);
		if (fg_load_relaxed(&e->caller) == from && __atomic_load_n(&e->lock, __ATOMIC_ACQUIRE) == lock)
			return e;
	}
	return NULL;
}

void fg_wait_note(const void *lock, uint64_t since_ns)
{
	uint64_t now = fg_now_ns(), took = now - since_ns, longest, from;
	struct fg_trace_entry *e;

	if (now > fg_load_relaxed(&fg_trace.until_ns)) {
		fg_store_relaxed(&fg_trace.until_ns, 0); /* whoever looked has gone away without a word */
		return;
	}
	from = caller();
	e = find((uint64_t)(uintptr_t)lock, from ? from : 1);
	if (!e) {
		fg_add_relaxed(&fg_trace.lost, 1);
		return;
	}
	fg_add_relaxed(&e->count, 1);
	fg_add_relaxed(&e->total_ns, took);
	longest = fg_load_relaxed(&e->max_ns);
	while (took > longest && !__atomic_compare_exchange_n(&e->max_ns, &longest, took, false, __ATOMIC_RELAXED,
							      __ATOMIC_RELAXED))
		;
}
