/* SPDX-License-Identifier: MIT */
/*
 * A normal mutex unlocked by a thread that has not locked it: two of them as a pair of semaphores.
 */
#include "../tools/check.h"

static pthread_mutex_t ping = PTHREAD_MUTEX_INITIALIZER, pong = PTHREAD_MUTEX_INITIALIZER;
static long ball;
static int rounds;

static void *other(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		lock(&ping);
		CHECK_EQ(ball, 2 * i + 1);
		ball++;
		unlock(&pong);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	check_begin(argv[0], 30);
	rounds = check_rounds(20000);
	lock(&ping);
	lock(&pong);
	t = start(other, NULL);
	for (int i = 0; i < rounds; i++) {
		ball++;
		unlock(&ping);
		lock(&pong);
		CHECK_EQ(ball, 2 * i + 2);
	}
	join(t);
	unlock(&ping);
	unlock(&pong);
	CHECK_EQ(try_elsewhere(&ping), 0);
	CHECK_EQ(try_elsewhere(&pong), 0);
	return 0;
}
