/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter that the program installs by an instruction of its own, so that nobody sees it
 * come.
 */
#ifndef UNSEEN_FILTER_H
#define UNSEEN_FILTER_H

#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#ifdef __x86_64__
static inline void install_unseen(struct sock_filter *code, unsigned short n, unsigned flags)
{
	struct sock_fprog program = {n, code};
	long r;

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"((long)flags),
			   "d"(&program)
			 : "rcx", "r11", "memory");
	CHECK_EQ(r, 0);
}
#endif

#endif
