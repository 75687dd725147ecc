/* SPDX-License-Identifier: MIT */
/*
 * A wait with a deadline that is far away, also beyond what nanoseconds in 64 bits hold, is ended
 * by a signal.
 */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, go;

static void *wait_long(void *arg)
{
	struct timespec ts = *(struct timespec *)arg;

	lock(&m);
	waiting = 1;
	while (!go)
		CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), 0);
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct timespec far[] = {
	    {4102444800, 0}, {9223372036, 999999999}, {99999999999, 0}, {INT64_MAX, 999999999}};

	check_begin(argv[0], 20);
	for (int i = 0; i < 4; i++) {
		pthread_t t;

		waiting = go = 0;
		t = start(wait_long, &far[i]);
		UNTIL(LOAD(waiting));
		sleep_us(3000);
		lock(&m);
		go = 1;
		CHECK_EQ(pthread_cond_signal(&c), 0);
		unlock(&m);
		join(t);
	}
	return 0;
}
