/* SPDX-License-Identifier: MIT */
/*
 * Waits through syscall() that are left in the middle, in a look or asleep: by asynchronous
 * cancellation, which runs the cleanup handlers of the frames below; by longjmp out of a signal
 * handler; by a handler that waits itself; by fork in a handler, whose child goes on in the same
 * wait; and by a child of vfork that waits.  Afterwards all threads go on waiting as before.
 */
#include <setjmp.h>

#include "../tools/futex.h"

static uint32_t word, never;
static int waits, cleaned;

static void cleanup(void *arg)
{
	(void)arg;
	ADD(cleaned, 1);
}

static void *wait_for_ever(void *arg)
{
	(void)arg;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cleanup_push(cleanup, NULL);
	for (;;) {
		STORE(waits, 1);
		futex_wait(&never, 0);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

/* Somebody changes it; this thread sees it, by a look or asleep. */
static void *change(void *arg)
{
	(void)arg;
	ADD(word, 1);
	CHECK(RESULT(futex_wake(&word, 1)) >= 0);
	return NULL;
}

static void works(void)
{
	uint32_t now = LOAD(word);
	pthread_t t = start(change, NULL);

	while (LOAD(word) == now)
		futex_wait(&word, now);
	join(t);
}

static void cancelled(uint64_t *seed)
{
	for (int i = 0; i < 60; i++) {
		pthread_t t;
		unsigned pause = rnd_below(seed, 20000);

		STORE(waits, 0);
		t = start(wait_for_ever, NULL);
		UNTIL(LOAD(waits));
		while (pause--)
			__asm__ volatile("");
		CHECK_EQ(pthread_cancel(t), 0);
		CHECK(join(t) == PTHREAD_CANCELED);
		CHECK_EQ(LOAD(cleaned), i + 1);
		works();
	}
}

/* ---- signals ------------------------------------------------------------------------ */

static sigjmp_buf out;
static volatile sig_atomic_t jumps;
static uint32_t handled; /* signals: what is waited for */
static pid_t child;

static void on_signal(int sig)
{
	struct timespec a_while = {.tv_nsec = 30000};
	int saved = errno;

	if (sig == SIGUSR1 && jumps)
		siglongjmp(out, 1);
	if (sig == SIGUSR2 && !child)
		child = fork();
	/* A wait of its own, for the same word and for another one. */
	futex(&never, FUTEX_WAIT_PRIVATE, 0, &a_while, NULL, 0);
	futex(&word, FUTEX_WAIT_PRIVATE, word, &a_while, NULL, 0);
	ADD(handled, 1);
	errno = saved;
}

struct shot {
	pthread_t at;
	unsigned pause;
	int sig;
};

static void *shoot(void *arg)
{
	struct shot *s = arg;

	UNTIL(LOAD(waits));
	while (s->pause--)
		__asm__ volatile("");
	CHECK_EQ(pthread_kill(s->at, s->sig), 0);
	return NULL;
}

static void interrupted(uint64_t *seed, int sig)
{
	struct shot s = {.at = pthread_self(), .pause = rnd_below(seed, 20000), .sig = sig};
	pthread_t t;

	STORE(waits, 0);
	STORE(handled, 0);
	t = start(shoot, &s);
	if (!sigsetjmp(out, 1)) {
		jumps = sig == SIGUSR1;
		STORE(waits, 1);
		while (!LOAD(handled)) {
			long r = RESULT(futex_wait(&handled, 0));

			CHECK(r == -EINTR || r == -EAGAIN || r == 0);
		}
	}
	jumps = 0;
	join(t);
	works();
}

static void forked(uint64_t *seed)
{
	for (int i = 0; i < 8; i++) {
		struct shot s = {
		    .at = pthread_self(), .pause = rnd_below(seed, 20000), .sig = SIGUSR2};
		pthread_t t;

		child = 0;
		STORE(handled, 0);
		STORE(waits, 0);
		t = start(shoot, &s);
		STORE(waits, 1);
		while (!LOAD(handled))
			futex_wait(&handled, 0);
		if (!child) { /* this is the child, with one thread */
			works();
			_exit(0);
		}
		join(t);
		check_child(child);
		works();
	}
}

static void from_vfork(void)
{
	struct timespec a_while = {.tv_nsec = 50000};
	pid_t pid;

	make_known(&never);
	for (int i = 0; i < 10; i++) {
		pid = vfork();
		CHECK(pid >= 0);
		if (!pid) {
			for (int k = 0; k < 4; k++)
				futex(&never, FUTEX_WAIT_PRIVATE, 0, &a_while, NULL, 0);
			_exit(0);
		}
		check_child(pid);
		works();
	}
	/* One that comes back from syscall() itself. */
	pid = check_clone();
	if (!pid) {
		futex(&never, FUTEX_WAIT_PRIVATE, 0, &a_while, NULL, 0);
		_exit(0);
	}
	check_child(pid);
}

int main(int argc, char **argv)
{
	(void)argc;
	struct sigaction sa = {.sa_handler = on_signal};
	uint64_t seed;

	check_begin(argv[0], 30);
	seed = rnd_seed(1);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	for (int i = 0; i < 50; i++)
		works();
	cancelled(&seed);
	child = 1;
	for (int i = 0; i < 40; i++)
		interrupted(&seed, i % 2 ? SIGUSR1 : SIGUSR2);
	forked(&seed);
	from_vfork();
	return 0;
}
