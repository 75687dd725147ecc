/* SPDX-License-Identifier: MIT */
/*
 * What differs between CPUs: a pause for spin loops, a system call that leaves
 * errno alone, and what the kernel calls its clock_gettime() in the vDSO
 * (FG_VDSO_CLOCK; nothing where it is not called as C functions are).  All
 * assembly of the project is in this folder.
 */
#ifndef FG_ARCH_H
#define FG_ARCH_H

#if defined(__x86_64__)
#include "arch/x86_64.h"
#elif defined(__aarch64__)
#include "arch/aarch64.h"
#else
#include "arch/generic.h"
#endif

/* fg_syscall6() as a function that the unwinder can leave (called.c). */
long fg_syscall6_called(long nr, long a, long b, long c, long d, long e, long f);

/* Of all page sizes that kernels of this architecture may have, the largest. */
#if defined(__x86_64__) || defined(__i386__) || defined(__riscv) || defined(__s390x__)
#define FG_PAGE_MAX 4096
#else
#define FG_PAGE_MAX 65536
#endif

#endif
