/* SPDX-License-Identifier: MIT */
/* No mutex or condition variable function touches errno, whatever it returns. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int go, rounds;

#define KEEPS(call)                    \
	do {                           \
		errno = 4242;          \
		call;                  \
		CHECK_EQ(errno, 4242); \
	} while (0)

static void *work(void *arg)
{
	struct timespec ts;

	UNTIL(LOAD(go));
	for (int i = 0; i < rounds; i++) {
		int r;

		KEEPS(r = pthread_mutex_lock(&m));
		CHECK_EQ(r, 0);
		sleep_us(i % 50 ? 0 : 1000);
		KEEPS(r = pthread_mutex_trylock(&m));
		CHECK_EQ(r, EBUSY);
		ts = in_us(CLOCK_REALTIME, 50);
		KEEPS(r = pthread_cond_timedwait(&c, &m, &ts));
		CHECK(r == 0 || r == ETIMEDOUT);
		KEEPS(pthread_cond_signal(&c));
		KEEPS(pthread_cond_broadcast(&c));
		KEEPS(r = pthread_mutex_unlock(&m));
		CHECK_EQ(r, 0);
		ts = in_us(CLOCK_MONOTONIC, 20);
		KEEPS(r = pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &ts));
		if (!r)
			KEEPS(pthread_mutex_unlock(&m));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutex_t e = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	pthread_t t[4];

	check_begin(argv[0], 30);
	rounds = check_rounds(300);
	KEEPS(pthread_mutex_lock(&e));
	KEEPS(pthread_mutex_lock(&e));
	KEEPS(pthread_mutex_destroy(&e));
	KEEPS(pthread_mutex_unlock(&e));
	KEEPS(pthread_mutex_unlock(&e));
	for (int i = 0; i < 4; i++)
		t[i] = start(work, NULL);
	STORE(go, 1);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	return 0;
}
