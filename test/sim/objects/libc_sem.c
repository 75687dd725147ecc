/* SPDX-License-Identifier: MIT */
/*
 * glibc's waits for a semaphore, in which a preloaded program sleeps (preload/sem.c): what glibc
 * 2.36 does on 64-bit machines (nptl/sem_waitcommon.c), in words of our own.
 */
#include "objects/objects.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "arch/arch.h"

#define ONE_SLEEPER (1ull << 32)

static void count_out(void *sem)
{
	__atomic_fetch_sub((uint64_t *)sem, ONE_SLEEPER, __ATOMIC_RELAXED);
}

static int sleep_for(uint64_t *sem, const struct timespec *at)
{
	uint64_t have = __atomic_add_fetch(sem, ONE_SLEEPER, __ATOMIC_RELAXED);
	long r = 0;

	pthread_cleanup_push(count_out, sem);
	while (!r) {
		if (!(uint32_t)have) {
			r = sim_syscall_point(SYS_futex, (long)sem,
					      FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, (long)at,
					      0, FUTEX_BITSET_MATCH_ANY);
			if (r == -EAGAIN)
				r = 0;
			have = __atomic_load_n(sem, __ATOMIC_RELAXED);
		} else if (__atomic_compare_exchange_n(sem, &have, have - 1 - ONE_SLEEPER, true,
						       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			break;
		}
	}
	pthread_cleanup_pop(r != 0);
	errno = (int)-r;
	return r ? -1 : 0;
}

int sim_libc_sem_wait(sem_t *sem)
{
	return sleep_for((uint64_t *)sem, NULL);
}

int sim_libc_sem_timedwait(sem_t *sem, const struct timespec *at)
{
	return sleep_for((uint64_t *)sem, at);
}

int sim_libc_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *at)
{
	(void)clock; /* they are all one here */
	return sleep_for((uint64_t *)sem, at);
}
