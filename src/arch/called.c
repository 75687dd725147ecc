/* SPDX-License-Identifier: MIT */
/*
 * A system call as a function, for the one place from which a thread may be
 * cancelled asynchronously.  The unwinder starts at the instruction after the
 * system call: it needs to know this frame (hence .cfi), and a call in the caller's
 * for which the compiler has written down what to clean up.  libc's syscall() is
 * such a function as well, and others can stand before it.
 */
#include "arch/arch.h"

#if defined(__x86_64__)
__asm__(".text\n"
	".p2align 4\n"
	".hidden fg_syscall6_called\n"
	".globl fg_syscall6_called\n"
	".type fg_syscall6_called, @function\n"
	"fg_syscall6_called:\n"
	"	.cfi_startproc\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	movq %rdx, %rsi\n"
	"	movq %rcx, %rdx\n"
	"	movq %r8, %r10\n"
	"	movq %r9, %r8\n"
	"	movq 8(%rsp), %r9\n"
	"	syscall\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size fg_syscall6_called, . - fg_syscall6_called\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".p2align 4\n"
	".hidden fg_syscall6_called\n"
	".globl fg_syscall6_called\n"
	".type fg_syscall6_called, %function\n"
	"fg_syscall6_called:\n"
	"	.cfi_startproc\n"
	"	mov x8, x0\n"
	"	mov x0, x1\n"
	"	mov x1, x2\n"
	"	mov x2, x3\n"
	"	mov x3, x4\n"
	"	mov x4, x5\n"
	"	mov x5, x6\n"
	"	svc 0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size fg_syscall6_called, . - fg_syscall6_called\n");
#else
long fg_syscall6_called(long nr, long a, long b, long c, long d, long e, long f)
{
	return fg_syscall6(nr, a, b, c, d, e, f);
}
#endif
