/* SPDX-License-Identifier: MIT */
/*
 * A routine is called once, and done for everybody who comes back; one that is cancelled is not
 * done.
 */
#include "api.h"

enum { THREADS = 8, ROUNDS = 100 };
static fg_once_t once = FG_ONCE_INIT;
static int calls, started, result;

static void routine(void)
{
	ADD(calls, 1);
	sleep_us(200);
	result = 42;
}

static void *call(void *arg)
{
	CHECK_EQ(fg_once(&once, routine), 0);
	CHECK_EQ(result, 42);
	return NULL;
}

static void for_ever(void)
{
	STORE(started, 1);
	for (;;)
		pause();
}

static void *never_done(void *arg)
{
	fg_once(&once, for_ever);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	api_begin(argv[0], 60);
	for (int round = 0; round < ROUNDS; round++) {
		once = (fg_once_t)FG_ONCE_INIT;
		calls = result = 0;
		for (int i = 0; i < THREADS; i++)
			t[i] = start(call, NULL);
		for (int i = 0; i < THREADS; i++)
			join(t[i]);
		CHECK_EQ(calls, 1);
		CHECK_EQ(fg_once(&once, routine), 0);
		CHECK_EQ(calls, 1);
	}
	once = (fg_once_t)FG_ONCE_INIT;
	calls = result = 0;
	t[0] = start(never_done, NULL);
	UNTIL(LOAD(started));
	t[1] = start(call, NULL);
	sleep_us(1000);
	CHECK_EQ(LOAD(calls), 0);
	CHECK_EQ(pthread_cancel(t[0]), 0);
	CHECK(join(t[0]) == PTHREAD_CANCELED);
	join(t[1]);
	CHECK_EQ(calls, 1);
	return 0;
}
