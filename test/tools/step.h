/* SPDX-License-Identifier: MIT */
/*
 * Runs a function of the program after every single instruction of a piece of
 * code, by the trap flag (x86-64): windows of one instruction, which random
 * tests meet once in a million, are all met at once.
 */
#ifndef STEP_H
#define STEP_H

#include "check.h"

#include <ucontext.h>

#ifdef __x86_64__
#define STEP_SUPPORTED 1
#define STEP_TRAP_FLAG 0x100

static void (*step_do)(void);
static int step_ending;
static long step_count;
static const uint8_t *step_next; /* instruction */

static inline void step_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	int saved = errno;

	(void)sig;
	(void)info;
	step_count++;
	step_next = (const uint8_t *)(uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
	if (__atomic_load_n(&step_ending, __ATOMIC_RELAXED))
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_TRAP_FLAG;
	else
		step_do();
	errno = saved;
}

static inline void step_begin(void (*f)(void))
{
	struct sigaction sa;

	memset(&sa, 0, sizeof sa);
	sa.sa_sigaction = step_trap;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &sa, NULL);
	step_do = f;
	step_ending = 0;
	step_count = 0;
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "orq $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
			     : "memory", "cc");
}

/* The next instruction is a system call. */
static inline int step_is_call(void)
{
	return step_next[0] == 0x0f && step_next[1] == 0x05;
}

static inline void step_end(void)
{
	__atomic_store_n(&step_ending, 1, __ATOMIC_RELAXED);
	__asm__ volatile("nop\n\tnop" ::: "memory");
}
#elif !defined(STEP_OR_ELSE)
/* For the program whose own main stands in #ifdef STEP_SUPPORTED. */
int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 20);
	check_skip("no single steps on this CPU");
}
#endif

#endif
