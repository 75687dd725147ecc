/* SPDX-License-Identifier: MIT */
/*
 * What syscall(SYS_futex, ...) says, of words that the kernel has not seen yet and of those that it
 * has: each result and errno as the kernel's own, also where a look comes before the call.  And
 * other system calls through syscall(): arguments, results, errno.
 */
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>

#include "../tools/futex.h"

#define A_PAGE 4096

static uint32_t word, other;

/* A thread that waits for `word`, as `op` says, and one that changes it. */
static void *change(void *arg)
{
	sleep_us((unsigned)(long)arg);
	ADD(word, 1);
	CHECK(RESULT(futex_wake(&word, INT32_MAX)) >= 0);
	return NULL;
}

static int began;

static void *change_at_once(void *arg)
{
	(void)arg;
	UNTIL(LOAD(began));
	ADD(word, 1);
	CHECK(RESULT(futex_wake(&word, INT32_MAX)) >= 0);
	return NULL;
}

static void errors(void)
{
	struct timespec bad = {.tv_nsec = 1000000000}, negative = {.tv_sec = -1}, none = {0};
	static const int ops[] = {FUTEX_WAIT_PRIVATE, FUTEX_WAIT_BITSET_PRIVATE,
				  FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME};

	for (int known = 0; known < 2; known++) {
		for (unsigned i = 0; i < sizeof ops / sizeof ops[0]; i++) {
			int op = ops[i];
			uint32_t any = FUTEX_BITSET_MATCH_ANY, now = word;

			CHECK_EQ(RESULT(futex(&word, op, now + 1, NULL, NULL, any)), -EAGAIN);
			CHECK_EQ(RESULT(futex(&word, op, now, &none, NULL, any)), -ETIMEDOUT);
			CHECK_EQ(RESULT(futex(&word, op, now, &bad, NULL, any)), -EINVAL);
			CHECK_EQ(RESULT(futex(&word, op, now + 1, &bad, NULL, any)), -EINVAL);
			CHECK_EQ(RESULT(futex(&word, op, now, &negative, NULL, any)), -EINVAL);
			CHECK_EQ(RESULT(futex(&word, op, now, (void *)8, NULL, any)), -EFAULT);
			CHECK_EQ(RESULT(futex(&word, op, now + 1, (void *)8, NULL, any)), -EFAULT);
			CHECK_EQ(RESULT(futex((void *)64, op, now, NULL, NULL, any)), -EFAULT);
			CHECK_EQ(RESULT(futex((void *)-64l, op, now, NULL, NULL, any)), -EFAULT);
			CHECK_EQ(RESULT(futex((uint32_t *)((char *)&word + 1), op, now, &none, NULL,
					      any)),
				 -EINVAL);
		}
		CHECK_EQ(RESULT(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, word, NULL, NULL, 0)),
			 -EINVAL);
		CHECK_EQ(RESULT(futex(&word, 77, word, NULL, NULL, 0)), -ENOSYS);
		make_known(&word);
	}
	/* Only the low half of a value counts, and of an operation. */
	CHECK_EQ(RESULT(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE | 1l << 40,
				(1l << 40) + word + 1, NULL, NULL, 0)),
		 -EAGAIN);
}

/* Waits that end as they should, in one of the two ways: the value has changed, or it was woken. */
static void ends(void)
{
	for (int i = 0; i < 40; i++) {
		uint32_t now = word;
		pthread_t t = start(change, (void *)(long)(i % 4 * 10));
		long r;

		errno = 4711;
		do
			r = futex_wait(&word, now);
		while (r == -1 && errno == EINTR);
		CHECK(r == 0 ? errno == 4711 : r == -1 && errno == EAGAIN);
		while (LOAD(word) == now)
			futex_wait(&word, now);
		join(t);
	}
	/* From a look: the other thread runs already. */
	for (int i = 0; i < 200; i++) {
		uint32_t now = word;
		pthread_t t;

		STORE(began, 0);
		t = start(change_at_once, NULL);
		STORE(began, 1);
		while (LOAD(word) == now) {
			long r = RESULT(futex_wait(&word, now));

			CHECK(r == 0 || r == -EAGAIN || r == -EINTR);
		}
		join(t);
	}
}

static void not_early(void)
{
	for (int i = 0; i < 30; i++) {
		uint32_t now = word;
		long us = 1 + i * 10;
		struct timespec relative = {.tv_nsec = us * 1000}, at = in_us(CLOCK_MONOTONIC, us);
		long long before = clock_ns(CLOCK_MONOTONIC);

		CHECK_EQ(RESULT(futex(&word, FUTEX_WAIT_PRIVATE, now, &relative, NULL, 0)),
			 -ETIMEDOUT);
		CHECK(clock_ns(CLOCK_MONOTONIC) - before >= us * 1000);
		at = in_us(CLOCK_MONOTONIC, us);
		CHECK_EQ(RESULT(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, now, &at, NULL, ~0u)),
			 -ETIMEDOUT);
		CHECK(is_past(CLOCK_MONOTONIC, at));
		at = in_us(CLOCK_REALTIME, us);
		CHECK_EQ(RESULT(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, now,
				      &at, NULL, ~0u)),
			 -ETIMEDOUT);
	}
}

/* A page that is there in the first waits and not in the last. */
static void unmapped(void)
{
	for (int i = 0; i < 50; i++) {
		uint32_t *page = mmap(NULL, A_PAGE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(page != MAP_FAILED);
		for (int k = 0; k < 3; k++) {
			struct timespec none = {0};

			CHECK_EQ(RESULT(futex(page, FUTEX_WAIT_PRIVATE, 0, &none, NULL, 0)),
				 -ETIMEDOUT);
		}
		CHECK_EQ(munmap(page, A_PAGE), 0);
		CHECK_EQ(RESULT(futex_wait(page, 0)), -EFAULT);
		CHECK_EQ(RESULT(futex_wait(page, 1)), -EFAULT);
	}
}

static long woken_with; /* bits of the wait that has ended */

static void *wait_with(void *bits)
{
	long r;

	do
		r = RESULT(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, word, NULL, NULL,
				 (uint32_t)(long)bits));
	while (r == -EINTR);
	CHECK_EQ(r, 0);
	STORE(woken_with, (long)bits);
	return NULL;
}

/* Each is woken by its own bits, and requeued ones where they are then. */
static void bits(void)
{
	pthread_t t, u;

	make_known(&word);
	t = start(wait_with, (void *)2l);
	u = start(wait_with, (void *)4l);
	while (RESULT(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 4)) != 1)
		sleep_us(100);
	join(u);
	CHECK_EQ(LOAD(woken_with), 4);
	while (RESULT(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)1l, &other, word)) != 1)
		sleep_us(100);
	CHECK_EQ(RESULT(futex_wake(&word, INT32_MAX)), 0);
	CHECK_EQ(RESULT(futex(&other, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 2)), 1);
	join(t);
}

static void other_calls(void)
{
	uint32_t pi = 0;

	errno = 4711;
	CHECK_EQ(syscall(SYS_getppid), getppid());
	CHECK_EQ(errno, 4711);
	CHECK_EQ(RESULT(syscall(-1l)), -ENOSYS);
	CHECK_EQ(RESULT(syscall(SYS_close, -1)), -EBADF);
#ifndef __s390x__ /* where they are in memory */
	/* Six arguments; the last one is an offset that is refused. */
	void *p = (void *)syscall(SYS_mmap, NULL, A_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(RESULT(syscall(SYS_mmap, NULL, A_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				1)),
		 -EINVAL);
	CHECK_EQ(RESULT(syscall(SYS_munmap, p, A_PAGE)), 0);
#endif
	CHECK_EQ(RESULT(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0)), 0);
	CHECK_EQ(pi & FUTEX_TID_MASK, (uint32_t)syscall(SYS_gettid));
	CHECK_EQ(RESULT(futex(&pi, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0)), 0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 30);
	errors();
	for (int i = 0; i < 3; i++) {
		ends();
		not_early();
	}
	unmapped();
	bits();
	other_calls();
	return 0;
}
