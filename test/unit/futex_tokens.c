/* SPDX-License-Identifier: MIT */
/*
 * Locks as other libraries make them of futex(2): a bounded buffer of two semaphores, whose
 * tokens are counted, a mutex of three states (Drepper, "Futexes Are Tricky"), and a barrier by
 * generations.  No wake-up is lost, with two threads or many; no wait has a time limit that would
 * repair a loss, nor is any interrupted, until the last round, which has both.
 */
#include "../tools/futex.h"

enum { MOST_THREADS = 24, PLACES = 2 };

static uint32_t items, room, lock_word, generation, arrived;
static long taken, counted, tokens, sections, rounds;
static int threads, restless;

/* ---- semaphore -------------------------------------------------------------------- */

static void down(uint32_t *s, uint64_t *seed)
{
	for (;;) {
		uint32_t have = LOAD(*s);
		struct timespec a_while = {.tv_nsec = 20000};
		long r;

		if (have) {
			if (__atomic_compare_exchange_n(s, &have, have - 1, 0, __ATOMIC_ACQUIRE,
							__ATOMIC_RELAXED))
				return;
			continue;
		}
		if (rnd_below(seed, 2))
			r = RESULT(futex(s, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL,
					 FUTEX_BITSET_MATCH_ANY));
		else
			r = RESULT(futex(s, FUTEX_WAIT_PRIVATE, 0, restless ? &a_while : NULL, NULL,
					 0));
		CHECK(r == 0 || r == -EAGAIN || r == -EINTR || (restless && r == -ETIMEDOUT));
	}
}

static void up(uint32_t *s)
{
	ADD(*s, 1);
	CHECK(RESULT(futex_wake(s, 1)) >= 0);
}

static void *produce_or_consume(void *arg)
{
	long me = (long)arg;
	uint64_t seed = rnd_seed((uint64_t)me + 1);

	for (long n = 0; n < tokens; n++) {
		if (me % 2) {
			down(&items, &seed);
			ADD(taken, 1);
			up(&room);
		} else {
			down(&room, &seed);
			up(&items);
		}
		for (unsigned pause = rnd_below(&seed, 4) ? 0 : rnd_below(&seed, 3000); pause;
		     pause--)
			__asm__ volatile("");
	}
	return NULL;
}

/* ---- mutex -------------------------------------------------------------------------- */

static void *count(void *arg)
{
	(void)arg;
	for (long n = 0; n < sections; n++) {
		uint32_t c = 0;

		if (!__atomic_compare_exchange_n(&lock_word, &c, 1, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED)) {
			if (c != 2)
				c = __atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE);
			while (c) {
				futex_wait(&lock_word, 2);
				c = __atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE);
			}
		}
		*(volatile long *)&counted += 1;
		for (int pause = 0; pause < 300; pause++)
			__asm__ volatile("");
		if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
			CHECK(RESULT(futex_wake(&lock_word, 1)) >= 0);
	}
	return NULL;
}

/* ---- barrier ------------------------------------------------------------------------ */

static void *meet(void *arg)
{
	(void)arg;
	for (long n = 0; n < rounds; n++) {
		uint32_t mine = LOAD(generation);

		if (ADD(arrived, 1) == (uint32_t)threads) {
			STORE(arrived, 0);
			ADD(generation, 1);
			CHECK(RESULT(futex_wake(&generation, INT32_MAX)) >= 0);
		}
		while (LOAD(generation) == mine)
			futex_wait(&generation, mine);
		CHECK_EQ(LOAD(generation) - mine, 1);
	}
	return NULL;
}

static int over;

static void nothing(int sig)
{
	(void)sig;
}

struct group {
	pthread_t t[MOST_THREADS];
};

static void *interrupt(void *arg)
{
	struct group *g = arg;
	uint64_t seed = rnd_seed(99);

	while (!LOAD(over)) {
		pthread_kill(g->t[rnd_below(&seed, (unsigned)threads)], SIGUSR1);
		sleep_us(100);
	}
	return NULL;
}

static void all_do(void *(*f)(void *))
{
	struct group g;
	pthread_t t = 0;

	for (long i = 0; i < threads; i++)
		g.t[i] = start(f, (void *)i);
	if (restless) {
		STORE(over, 0);
		t = start(interrupt, &g);
	}
	for (int i = 0; i < threads; i++) {
		if (restless && i == 0) { /* no signal to a thread that has ended */
			STORE(over, 1);
			join(t);
		}
		join(g.t[i]);
	}
}

int main(int argc, char **argv)
{
	static const int some[] = {2, 4, 7, MOST_THREADS};
	struct sigaction sa = {.sa_handler = nothing};

	check_begin(argv[0], 60);
	sigaction(SIGUSR1, &sa, NULL);
	for (int i = 0; i < 5; i++) {
		restless = i == 4;
		threads = restless ? 6 : some[i];
		tokens = check_rounds(3000) / threads;
		sections = check_rounds(8000) / threads;
		rounds = check_rounds(1500) / threads;
		room = PLACES;
		taken = counted = 0;
		threads &= ~1; /* as many producers as consumers */
		all_do(produce_or_consume);
		CHECK_EQ(taken, threads / 2 * tokens);
		CHECK_EQ(items, 0);
		CHECK_EQ(room, PLACES);
		threads = restless ? 6 : some[i];
		all_do(count);
		CHECK_EQ(counted, threads * sections);
		all_do(meet);
	}
	return 0;
}
