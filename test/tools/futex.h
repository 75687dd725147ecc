/* SPDX-License-Identifier: MIT */
/* futex(2) as other libraries call it: by libc's syscall(), which the preload library has, too. */
#ifndef FUTEX_H
#define FUTEX_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "check.h"

CHECK_UNUSED static long futex(const uint32_t *word, int op, uint32_t value, const void *timeout,
			       const uint32_t *second, uint32_t third)
{
	return syscall(SYS_futex, word, op, value, timeout, second, third);
}

CHECK_UNUSED static long futex_wait(const uint32_t *word, uint32_t value)
{
	return futex(word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

CHECK_UNUSED static long futex_wake(const uint32_t *word, int count)
{
	return futex(word, FUTEX_WAKE_PRIVATE, (uint32_t)count, NULL, NULL, 0);
}

/* -errno, or what it returned. */
#define RESULT(call)                                          \
	({                                                    \
		long result_ = (call);                        \
		result_ == -1 ? -(long)errno : (long)result_; \
	})

/*
 * The kernel has seen the word in a wait: from now on a wait may begin with a look at it.
 */
CHECK_UNUSED static void make_known(const uint32_t *word)
{
	CHECK_EQ(RESULT(futex_wait(word, LOAD(*word) + 1)), -EAGAIN);
}

#endif
