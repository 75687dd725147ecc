/* SPDX-License-Identifier: MIT */
/*
 * C11 mtx_* and cnd_* agree with each other, whoever provides them: plain, timed, recursive,
 * conditions.
 */
#include "../tools/check.h"
#include <threads.h>

enum { ROUNDS = 3000, THREADS = 4 };
static mtx_t m;
static cnd_t c;
static long count;
static int turn;

static int work(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(mtx_lock(&m), thrd_success);
		while (turn != id)
			CHECK_EQ(cnd_wait(&c, &m), thrd_success);
		turn = (turn + 1) % THREADS;
		*(volatile long *)&count += 1;
		CHECK_EQ(cnd_broadcast(&c), thrd_success);
		CHECK_EQ(mtx_unlock(&m), thrd_success);
	}
	return 7;
}

static int try_it(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1000);
	int type = (int)(intptr_t)arg;

	CHECK_EQ(mtx_trylock(&m), thrd_busy);
	if (type & mtx_timed)
		CHECK_EQ(mtx_timedlock(&m, &ts), thrd_timedout);
	return 0;
}

int main(int argc, char **argv)
{
	static const int types[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive,
				    mtx_timed | mtx_recursive};
	static const int others[] = {-1, 4, 5, 7, 64, 65};
	thrd_t t[THREADS];

	check_begin(argv[0], 20);
	CHECK_EQ(cnd_init(&c), thrd_success);
	for (int i = 0; i < 4; i++) {
		struct timespec ts;
		int r;

		CHECK_EQ(mtx_init(&m, types[i]), thrd_success);
		CHECK_EQ(mtx_lock(&m), thrd_success);
		if (types[i] & mtx_recursive) {
			CHECK_EQ(mtx_lock(&m), thrd_success);
			CHECK_EQ(mtx_trylock(&m), thrd_success);
			CHECK_EQ(mtx_unlock(&m), thrd_success);
			CHECK_EQ(mtx_unlock(&m), thrd_success);
		}
		CHECK_EQ(thrd_create(&t[0], try_it, (void *)(intptr_t)types[i]), thrd_success);
		CHECK_EQ(thrd_join(t[0], &r), thrd_success);
		ts = in_us(CLOCK_REALTIME, 1000);
		CHECK_EQ(cnd_timedwait(&c, &m, &ts), thrd_timedout);
		CHECK_EQ(mtx_unlock(&m), thrd_success);
		mtx_destroy(&m);
	}
	/* ISO C says nothing of others; glibc takes them for mtx_plain. */
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		CHECK_EQ(mtx_init(&m, others[i]), thrd_success);
		CHECK_EQ(mtx_lock(&m), thrd_success);
		CHECK_EQ(mtx_trylock(&m), thrd_busy);
		CHECK_EQ(mtx_unlock(&m), thrd_success);
		mtx_destroy(&m);
	}
	CHECK_EQ(mtx_init(&m, mtx_plain), thrd_success);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(thrd_create(&t[i], work, (void *)(intptr_t)i), thrd_success);
	for (int i = 0; i < THREADS; i++) {
		int r;

		CHECK_EQ(thrd_join(t[i], &r), thrd_success);
		CHECK_EQ(r, 7);
	}
	CHECK_EQ(count, THREADS * ROUNDS);
	mtx_destroy(&m);
	cnd_destroy(&c);
	return 0;
}
