/* SPDX-License-Identifier: MIT */
#include "sys/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "sys/filter.h"
#include "sys/libc.h"
#include "sys/probe.h"

/* FUTEX_WAIT_BITSET takes an absolute time on either clock; FUTEX_WAIT a relative one. */
static int wait_op(int private, const struct fg_deadline *deadline)
{
	int op = FUTEX_WAIT_BITSET | private;

	if (deadline && deadline->clock == CLOCK_REALTIME)
		op |= FUTEX_CLOCK_REALTIME;
	return op;
}

/* The kernel refuses times before the epoch with EINVAL; for us they have just passed. */
static bool before_epoch(const struct fg_deadline *deadline)
{
	return deadline && deadline->at.tv_sec < 0;
}

int fg_futex_wait(uint32_t *word, uint32_t expected, uint32_t channels,
		  const struct fg_deadline *deadline)
{
	int r;

	if (before_epoch(deadline))
		return -ETIMEDOUT;
	FG_PROBE1(parked, word);
	r = (int)fg_syscall6(SYS_futex, (long)word, wait_op(FUTEX_PRIVATE_FLAG, deadline), expected,
			     (long)(deadline ? &deadline->at : NULL), 0,
			     fg_is_filtered() ? FUTEX_BITSET_MATCH_ANY : channels);
	FG_PROBE2(woken, word, r);
	return r;
}

int fg_futex_wake(uint32_t *word, int count, uint32_t channels)
{
	/*
	 * glibc's locks know no FUTEX_WAKE_BITSET, and a filter may not either (nor other sets in a
	 * wait).
	 */
	if (channels == FG_FUTEX_ANY || fg_is_filtered())
		return (int)fg_syscall6(SYS_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG,
					count, 0, 0, 0);
	return (int)fg_syscall6(SYS_futex, (long)word, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG,
				count, 0, 0, channels);
}

int fg_futex_wake_shared(uint32_t *word, int count)
{
	return (int)fg_syscall6(SYS_futex, (long)word, FUTEX_WAKE, count, 0, 0, 0);
}

int fg_futex_wait_shared(uint32_t *word, uint32_t expected, const struct fg_deadline *deadline)
{
	int r;

	if (before_epoch(deadline))
		return -ETIMEDOUT;
	FG_PROBE1(parked, word);
	r = (int)fg_syscall6(SYS_futex, (long)word, wait_op(0, deadline), expected,
			     (long)(deadline ? &deadline->at : NULL), 0, FUTEX_BITSET_MATCH_ANY);
	FG_PROBE2(woken, word, r);
	return r;
}

static int wait_cancellable(uint32_t *word, uint32_t expected, int private,
			    const struct fg_deadline *deadline)
{
	int type, r;

	if (before_epoch(deadline)) {
		fg_testcancel();
		return -ETIMEDOUT;
	}
	FG_PROBE1(parked, word);
	/* libc's own cancellation points do the same. */
	fg_libc_pthread_setcanceltype()(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	r = (int)fg_syscall6_called(SYS_futex, (long)word, wait_op(private, deadline), expected,
				    (long)(deadline ? &deadline->at : NULL), 0,
				    FUTEX_BITSET_MATCH_ANY);
	fg_libc_pthread_setcanceltype()(type, NULL);
	FG_PROBE2(woken, word, r);
	return r;
}

int fg_futex_wait_cancellable(uint32_t *word, uint32_t expected, const struct fg_deadline *deadline)
{
	return wait_cancellable(word, expected, FUTEX_PRIVATE_FLAG, deadline);
}

int fg_futex_wait_shared_cancellable(uint32_t *word, uint32_t expected,
				     const struct fg_deadline *deadline)
{
	return wait_cancellable(word, expected, 0, deadline);
}

void fg_testcancel(void)
{
	fg_libc_pthread_testcancel()();
}

bool fg_deadline_passed(const struct fg_deadline *deadline)
{
	struct timespec t;

	if (!deadline)
		return false;
	fg_clock_read(deadline->clock, &t);
	return t.tv_sec > deadline->at.tv_sec ||
	       (t.tv_sec == deadline->at.tv_sec && t.tv_nsec >= deadline->at.tv_nsec);
}

void fg_deadline_in(struct fg_deadline *deadline, uint64_t ns)
{
	uint64_t at = fg_now_ns() + ns;

	deadline->clock = CLOCK_MONOTONIC;
	deadline->internal = deadline->unlikely = deadline->is_event = false;
	deadline->at.tv_sec = (time_t)(at / 1000000000u);
	deadline->at.tv_nsec = (long)(at % 1000000000u);
}

uint64_t fg_deadline_left(const struct fg_deadline *deadline)
{
	struct timespec t;
	int64_t s;

	if (!deadline)
		return UINT64_MAX;
	fg_clock_read(deadline->clock, &t);
	if (__builtin_sub_overflow(deadline->at.tv_sec, t.tv_sec, &s))
		return deadline->at.tv_sec < 0 ? 0 : UINT64_MAX;
	if (s > INT64_MAX / 1000000000 - 1)
		return UINT64_MAX;
	if (s < -1)
		return 0;
	s = s * 1000000000 + deadline->at.tv_nsec - t.tv_nsec;
	return s > 0 ? (uint64_t)s : 0;
}
