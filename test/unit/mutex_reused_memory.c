/* SPDX-License-Identifier: MIT */
/* One piece of memory is a lock of every type in turn, data between, without and with destroy. */
#include "../tools/check.h"

static union {
	pthread_mutex_t m;
	pthread_cond_t c;
	unsigned char bytes[64];
} u;
static long count;

static void *work(void *arg)
{
	for (int i = 0; i < 200; i++) {
		lock(&u.m);
		*(volatile long *)&count += 1;
		unlock(&u.m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	static const pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	uint64_t rng;

	check_begin(argv[0], 30);
	rng = rnd_seed(0);
	for (int round = 0; round < 200; round++) {
		struct timespec ts;
		pthread_t t[3];
		pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;

		for (unsigned i = 0; i < sizeof u; i++)
			u.bytes[i] = (unsigned char)rnd(&rng);
		if (rnd(&rng) & 1)
			mutex_of_type(&u.m, types[rnd_below(&rng, 4)]);
		else
			memset(&u, 0, sizeof u);
		count = 0;
		for (int i = 0; i < 3; i++)
			t[i] = start(work, NULL);
		for (int i = 0; i < 3; i++)
			join(t[i]);
		CHECK_EQ(count, 600);
		if (rnd(&rng) & 1) /* an unlocked mutex may also simply be forgotten */
			CHECK_EQ(pthread_mutex_destroy(&u.m), 0);
		u.c = cond;
		lock(&other);
		ts = in_us(CLOCK_REALTIME, 10);
		CHECK_EQ(pthread_cond_timedwait(&u.c, &other, &ts), ETIMEDOUT);
		unlock(&other);
	}
	return 0;
}
