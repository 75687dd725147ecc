/* SPDX-License-Identifier: MIT */
/*
 * A time of a program whose clock is faked (here: by this program's own clock_gettime), at either
 * end of what a timespec holds: it stays at that end when it is translated, and does not wrap
 * around to the other one.
 */
#include "../tools/check.h"

#include "sys/clock.h"

static struct timespec told;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	*now = told;
	return 0;
}

static struct timespec translate(long long s, long ns, long long told_s, long told_ns)
{
	told = (struct timespec){told_s, told_ns};
	return fg_clock_translate(CLOCK_MONOTONIC, (struct timespec){s, ns}, NULL);
}

static long long kernel_s(void)
{
	struct timespec now;

	CHECK_EQ(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now), 0);
	return now.tv_sec;
}

/* The kernel's clock has any nanoseconds; but for one in a billion, these carry or borrow. */
#define MOST 999999999

int main(int argc, char **argv)
{
	struct timespec t;
	long long before;

	check_begin(argv[0], 30);
	fg_clock_setup();
	CHECK(fg_clock_is_faked);
	for (int i = 0; i < 100; i++) {
		/* Far ahead, whatever the program's clock says. */
		CHECK(translate(INT64_MAX, MOST, 0, 0).tv_sec >= INT64_MAX / 2);
		CHECK(translate(INT64_MAX, MOST, 1, 0).tv_sec >= INT64_MAX / 2);
		CHECK(translate(INT64_MAX, 0, 1, MOST).tv_sec >= INT64_MAX / 2);
		CHECK(translate(INT64_MAX, MOST, -1, 0).tv_sec >= INT64_MAX / 2);
		CHECK(translate(INT64_MAX, 0, INT64_MIN, MOST).tv_sec >= INT64_MAX / 2);
		CHECK(translate(0, MOST, INT64_MIN, 0).tv_sec >= INT64_MAX / 2);
		/* Long ago. */
		for (long long s = 0; s < 1000000000000; s = s * 7 + 1) {
			CHECK(translate(INT64_MIN + s, 0, s, MOST).tv_sec <= 0);
			CHECK(translate(INT64_MIN + s, MOST, s, 0).tv_sec <= 0);
			CHECK(translate(INT64_MIN, 0, s, MOST).tv_sec <= 0);
			CHECK(translate(-1, 0, INT64_MAX - s, MOST).tv_sec <= 0);
		}
		sleep_us(100);
	}
	/* One in between: as far from now as the program's clock says. */
	before = kernel_s();
	t = translate(1000, 0, 990, 0);
	CHECK(t.tv_sec >= before + 10 && t.tv_sec <= kernel_s() + 10);
	t = translate(1000, MOST + 1, 0, 0);
	CHECK_EQ(t.tv_nsec, MOST + 1); /* invalid ones are left to the function that checks them */
	return 0;
}
