/* SPDX-License-Identifier: MIT */
/*
 * The routine of pthread_once() is left by longjmp().  With glibc's that does not count as a call,
 * as where it is cancelled: the next one calls it again.
 */
#include "../tools/check.h"

#include <setjmp.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static jmp_buf out;
static int calls;

static void fail(void)
{
	calls++;
	longjmp(out, 1);
}

static void do_it(void)
{
	calls++;
}

static void *call(void *arg)
{
	CHECK_EQ(pthread_once(&once, do_it), 0);
	return arg;
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 20);
	if (!setjmp(out))
		pthread_once(&once, fail);
	CHECK_EQ(calls, 1);
	join(start(call, NULL));
	CHECK_EQ(pthread_once(&once, fail), 0);
	CHECK_EQ(calls, 2);
	return 0;
}
