/* SPDX-License-Identifier: MIT */
/*
 * What differs between CPUs: a pause for spin loops, the thread pointer, and a
 * system call that leaves errno alone.  All assembly of the project is in this
 * folder.
 */
#ifndef FG_ARCH_H
#define FG_ARCH_H

#if defined(__x86_64__)
#include "arch/x86_64.h"
#else
#include "arch/generic.h"
#endif

#endif
