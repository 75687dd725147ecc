/* SPDX-License-Identifier: MIT */
#ifndef FG_ARCH_X86_64_H
#define FG_ARCH_X86_64_H

#include <stdint.h>

#define FG_VDSO_CLOCK "__vdso_clock_gettime"

static inline void fg_pause(void)
{
	__asm__ volatile("pause" ::: "memory");
}

/* A barrier, after a sequentially consistent read-modify-write, which is one on x86. */
static inline void fg_fence_after_rmw(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/*
 * Adds to a number that only this thread and its signal handlers write: one instruction, not
 * locked.
 */
static inline void fg_add_own(uint32_t *p, uint32_t n)
{
	__asm__ volatile("addl %1, %0" : "+m"(*p) : "er"(n) : "cc");
}

static inline long fg_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/*
 * Those that a function finds as its caller left them, by their DWARF numbers (System V ABI, AMD64,
 * figure 3.36): rbx, rbp, rsp, r12 to r15.  Returns where it is.
 */
#define FG_HAVE_REGISTERS
#define FG_REGISTER_SP 7
static inline __attribute__((always_inline)) uint64_t fg_registers(uint64_t *r)
{
	uint64_t pc;

	__asm__ volatile("movq %%rbx, 24(%1)\n\t"
			 "movq %%rbp, 48(%1)\n\t"
			 "movq %%rsp, 56(%1)\n\t"
			 "movq %%r12, 96(%1)\n\t"
			 "movq %%r13, 104(%1)\n\t"
			 "movq %%r14, 112(%1)\n\t"
			 "movq %%r15, 120(%1)\n\t"
			 "leaq 0(%%rip), %0"
			 : "=&r"(pc)
			 : "r"(r)
			 : "memory");
	r[16] = pc;
	return pc;
}

/*
 * fg__syscall, which is exported as syscall(): numbers `a` and `b`, and all before there is a next
 * one, are fg_syscall_watched()'s affair.  The others go on to the next one with registers and
 * stack as they came, as if this were not here (a child of CLONE_VM returns from it).
 *
 * The number in fg_futex_number is fg_syscall_futex()'s, which gets copies of what is on the stack
 * and the address of its caller: a function may write to its arguments, and what is in the place of
 * the seventh of one who gives fewer is that one's own.
 */
#define FG_FORWARD_SYSCALL(a, b) FG_FORWARD_SYSCALL_(a, b)
#define FG_FORWARD_SYSCALL_(a, b)                     \
	__asm__(".text\n"                             \
		".p2align 4\n"                        \
		".globl fg__syscall\n"                \
		".type fg__syscall, @function\n"      \
		"fg__syscall:\n"                      \
		"	.cfi_startproc\n"                   \
		"	cmpl fg_futex_number(%rip), %edi\n" \
		"	je 2f\n"                            \
		"	cmpl $" #a ", %edi\n"         \
		"	je 1f\n"                            \
		"	cmpl $" #b ", %edi\n"         \
		"	je 1f\n"                            \
		"	movq fg_next_syscall(%rip), %r11\n" \
		"	testq %r11, %r11\n"                 \
		"	je 1f\n"                            \
		"	jmp *%r11\n"                        \
		"1:	jmp fg_syscall_watched\n"         \
		"2:	subq $8, %rsp\n"                  \
		"	.cfi_adjust_cfa_offset 8\n"         \
		"	pushq 8(%rsp)\n"                    \
		"	.cfi_adjust_cfa_offset 8\n"         \
		"	pushq 24(%rsp)\n"                   \
		"	.cfi_adjust_cfa_offset 8\n"         \
		"	call fg_syscall_futex\n"            \
		"	addq $24, %rsp\n"                   \
		"	.cfi_adjust_cfa_offset -24\n"       \
		"	ret\n"                              \
		"	.cfi_endproc\n"                     \
		".size fg__syscall, . - fg__syscall\n")

#endif
