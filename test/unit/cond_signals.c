/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers run during waits, with and without SA_RESTART; no wait returns EINTR, none ends
 * before its time.
 */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, in_handler = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int done, tid, handled, tokens;

static void handler(int sig)
{
	lock(&in_handler); /* not the one that the wait is about */
	handled++;
	unlock(&in_handler);
}

static void *wait_much(void *arg)
{
	STORE(tid, (int)syscall(SYS_gettid));
	for (int i = 0; i < 100; i++) {
		struct timespec ts;
		int r;

		lock(&m);
		ts = in_us(CLOCK_REALTIME, 3000);
		do {
			r = pthread_cond_timedwait(&c, &m, &ts);
			CHECK(r == 0 || r == ETIMEDOUT);
		} while (!r && !tokens);
		if (r)
			CHECK(is_past(CLOCK_REALTIME, ts));
		tokens = 0;
		unlock(&m);
	}
	STORE(done, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	for (int restart = 0; restart < 2; restart++) {
		struct sigaction sa;
		pthread_t t;

		memset(&sa, 0, sizeof sa);
		sa.sa_handler = handler;
		sa.sa_flags = restart ? SA_RESTART : 0;
		sigaction(SIGUSR1, &sa, NULL);
		done = tid = handled = 0;
		t = start(wait_much, NULL);
		UNTIL(LOAD(tid));
		for (int i = 0; !LOAD(done); i++) {
			syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
			sleep_us(50);
			if (i % 40 == 0) {
				lock(&m);
				tokens = 1;
				CHECK_EQ(pthread_cond_signal(&c), 0);
				unlock(&m);
			}
		}
		join(t);
		CHECK(handled > 0);
	}
	return 0;
}
