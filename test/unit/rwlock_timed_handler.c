/* SPDX-License-Identifier: MIT */
/*
 * Timed readers are interrupted by a signal handler that lasts until their time is over.  The
 * writer leaves meanwhile.  They get the lock all the same, in whichever instruction of the wait
 * the signal came: what can be had at once is not refused for the time's sake (POSIX,
 * pthread_rwlock_timedrdlock).
 */
#include "../tools/check.h"

#define READERS 16
#define ROUNDS	40
#define TIME_US 30000

static pthread_rwlock_t lock_;
static struct timespec until;
static int handled, released;
static __thread int in_time, interrupted; /* on a busy machine a reader's time may be over before */

static void handler(int sig)
{
	(void)sig;
	in_time = !is_past(CLOCK_REALTIME, until);
	STORE(interrupted, 1);
	ADD(handled, 1);
	while (!LOAD(released) || !is_past(CLOCK_REALTIME, until))
		sleep_us(500);
}

static void *reader(void *arg)
{
	int r = pthread_rwlock_timedrdlock(&lock_, &until);

	(void)arg;
	if (!r)
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	UNTIL(LOAD(interrupted));
	if (in_time)
		CHECK_EQ(r, 0);
	return NULL;
}

static void round_of(uint64_t *seed)
{
	pthread_t t[READERS];

	STORE(handled, 0);
	STORE(released, 0);
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	until = in_us(CLOCK_REALTIME, TIME_US);
	for (int i = 0; i < READERS; i++)
		t[i] = start(reader, NULL);
	sleep_us(rnd_below(seed, TIME_US / 2));
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(pthread_kill(t[i], SIGUSR1), 0);
	UNTIL(LOAD(handled) == READERS);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	STORE(released, 1);
	for (int i = 0; i < READERS; i++)
		join(t[i]);
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = handler};
	uint64_t seed = rnd_seed(1);

	(void)argc;
	check_begin(argv[0], 60);
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		round_of(&seed);
	return 0;
}
