/* SPDX-License-Identifier: MIT */
#ifndef FG_ARCH_AARCH64_H
#define FG_ARCH_AARCH64_H

#include <stdint.h>

#define FG_VDSO_CLOCK "__kernel_clock_gettime"

static inline void fg_pause(void)
{
	__asm__ volatile("yield" ::: "memory");
}

/* A barrier, after a sequentially consistent read-modify-write, which need not be one. */
static inline void fg_fence_after_rmw(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Adds to a number that only this thread and its signal handlers write. */
static inline void fg_add_own(uint32_t *p, uint32_t n)
{
	__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static inline long fg_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

/* As x86_64.h's: x19 to x30 and sp, by their DWARF numbers (AADWARF64). */
#define FG_HAVE_REGISTERS
#define FG_REGISTER_SP 31
static inline __attribute__((always_inline)) uint64_t fg_registers(uint64_t *r)
{
	uint64_t pc, sp;

	__asm__ volatile("stp x19, x20, [%2, #152]\n\t"
			 "stp x21, x22, [%2, #168]\n\t"
			 "stp x23, x24, [%2, #184]\n\t"
			 "stp x25, x26, [%2, #200]\n\t"
			 "stp x27, x28, [%2, #216]\n\t"
			 "stp x29, x30, [%2, #232]\n\t"
			 "mov %1, sp\n\t"
			 "adr %0, ."
			 : "=&r"(pc), "=&r"(sp)
			 : "r"(r)
			 : "memory");
	r[31] = sp;
	return pc;
}

/*
 * fg__syscall, which is exported as syscall(); see x86_64.h.  All arguments are in registers, and
 * x16 belongs to calls between libraries.
 */
#define FG_FORWARD_SYSCALL(a, b) FG_FORWARD_SYSCALL_(a, b)
#define FG_FORWARD_SYSCALL_(a, b)                          \
	__asm__(".text\n"                                  \
		".p2align 4\n"                             \
		".globl fg__syscall\n"                     \
		".type fg__syscall, %function\n"           \
		"fg__syscall:\n"                           \
		"	.cfi_startproc\n"                        \
		"	hint #34\n" /* bti c */            \
		"	adrp x16, fg_futex_number\n"             \
		"	ldr w16, [x16, :lo12:fg_futex_number]\n" \
		"	cmp w0, w16\n"                           \
		"	b.eq 2f\n"                               \
		"	cmp w0, #" #a "\n"                 \
		"	b.eq 1f\n"                               \
		"	cmp w0, #" #b "\n"                 \
		"	b.eq 1f\n"                               \
		"	adrp x16, fg_next_syscall\n"             \
		"	ldr x16, [x16, :lo12:fg_next_syscall]\n" \
		"	cbz x16, 1f\n"                           \
		"	br x16\n"                                \
		"1:	b fg_syscall_watched\n"                \
		"2:	mov x7, x30\n"                         \
		"	b fg_syscall_futex\n"                    \
		"	.cfi_endproc\n"                          \
		".size fg__syscall, . - fg__syscall\n")

#endif
