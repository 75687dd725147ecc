/* SPDX-License-Identifier: MIT */
/*
 * Copies of stacks for `flexguard stat --by stack` (abi/trace.h): the registers here, and the bytes
 * from this frame up.  The command begins to unwind in this very function.
 *
 * Nobody knows where a stack ends: a program may have made its own, a few KB of them.  So each
 * further page is asked for by a futex call that does not wait, the one call that every filter
 * lets pass (sys/filter.h): EFAULT says that nothing is there.
 */
#include "runtime/trace.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "arch/arch.h"

#ifdef FG_HAVE_REGISTERS

struct fg_trace_stacks fg_trace_stacks;

/* A page of the smallest size; larger ones consist of these. */
#define PAGE 4096u

static bool is_there(uint64_t page)
{
	static const struct timespec past;
	long r = fg_syscall6(SYS_futex, (long)page, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
			     (long)&past, 0, (long)FUTEX_BITSET_MATCH_ANY);

	return r == -EAGAIN || r == -ETIMEDOUT || r == -EINTR || r == 0;
}

/*
 * By words, and as it is: other frames' variables are none of this function's business, and a
 * checker of memory would say so.
 */
__attribute__((no_sanitize("address", "undefined", "thread"))) static uint32_t copy(uint64_t *to,
										    uint64_t from)
{
	uint64_t end = (from / PAGE + 1) * PAGE, at;

	while (end < from + FG_TRACE_STACK_BYTES && is_there(end))
		end += PAGE;
	if (end > from + FG_TRACE_STACK_BYTES)
		end = from + FG_TRACE_STACK_BYTES;
	for (at = from; at + sizeof(*to) <= end; at += sizeof(*to))
		*to++ = *(const volatile uint64_t *)(uintptr_t)at;
	return (uint32_t)(at - from);
}

__attribute__((noinline)) void fg_trace_stack(const void *lock, const void *caller,
					      uint64_t took_ns, uint64_t weight_ns)
{
	struct fg_trace_stacks *all = &fg_trace_stacks;
	uint32_t i = fg_add_relaxed(&all->next, 1) % FG_TRACE_STACKS, none = FG_TRACE_FREE;
	struct fg_trace_stack *s = &all->stack[i];

	/* Acquire: the command has read what was there. */
	if (!__atomic_compare_exchange_n(&all->state[i], &none, FG_TRACE_WRITTEN, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		fg_add_relaxed(&all->lost_ns, weight_ns);
		return;
	}
	s->lock = (uint64_t)(uintptr_t)lock;
	s->caller = (uint64_t)(uintptr_t)caller;
	s->took_ns = took_ns;
	s->weight_ns = weight_ns;
	s->tid = fg_thread_tid(fg_self());
	s->pc = fg_registers(s->reg);
	s->from = s->reg[FG_REGISTER_SP];
	s->bytes = copy((uint64_t *)(void *)s->stack, s->from);
	fg_store_release(&all->state[i], FG_TRACE_FULL);
}

#else

void fg_trace_stack(const void *lock, const void *caller, uint64_t took_ns, uint64_t weight_ns)
{
	(void)lock, (void)caller, (void)took_ns, (void)weight_ns;
}

#endif
