/* SPDX-License-Identifier: MIT */
/*
 * Bounded queues between producers and consumers.  Every item has to arrive
 * once, in its producer's order; a lost wake-up stops the queue for ever, since
 * no party polls.
 *
 *   -p N  producers, -c N consumers (default 3 and 3)   -q N  places (default 4)
 *   -d S  seconds, or -n N items a producer             -s N  seed
 *   -m M  signal|broadcast|mixed                        -w S  hang limit
 *   -k T  type of the mutex: normal|recursive|errorcheck|adaptive
 *   -T    most waits have a deadline near the moment of the signal
 *   -C    further consumers, which wait before they look, are cancelled in their waits
 *   -S    signals interrupt the waits
 */
#include "../tools/progress.h"

#include <getopt.h>

#define MAX_PARTIES 32
#define MAX_PLACES  64
#define EXTRA	    3

struct item {
	int producer;
	long number;
};

static int n_producers = 3, n_consumers = 3, places = 4, do_timed, do_cancel, do_signals,
	   kind = PTHREAD_MUTEX_NORMAL;
static long run_us, n_items;
static enum { SIGNAL, BROADCAST, MIXED } mode = SIGNAL;

static pthread_mutex_t mutex;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_full; /* on CLOCK_MONOTONIC */

/* Guarded by mutex. */
static struct item queue[MAX_PLACES];
static unsigned head, filled;
static int inside, closed;
static long last_taken[MAX_PARTIES]; /* by producer */
static long produced, consumed, cancelled, interrupted;

static int stop;
static uint64_t rng[2 * MAX_PARTIES + EXTRA];
static int tids[2 * MAX_PARTIES + EXTRA];

static void enter(void)
{
	CHECK_EQ(*(volatile int *)&inside, 0);
	*(volatile int *)&inside = 1;
}

static void leave(void)
{
	CHECK_EQ(*(volatile int *)&inside, 1);
	*(volatile int *)&inside = 0;
}

/* The caller is inside; returns inside.  All results but these two are wrong. */
static int wait_on(pthread_cond_t *c, uint64_t *r)
{
	struct timespec ts;
	clockid_t clock = CLOCK_REALTIME;
	int err;

	leave();
	if (!do_timed || !rnd_below(r, 4)) {
		err = pthread_cond_wait(c, &mutex);
		CHECK_EQ(err, 0);
	} else {
		long us = (long)rnd_below(r, 60) - 5;

		if (c == &not_full || (rnd(r) & 1))
			clock = CLOCK_MONOTONIC;
		ts = in_us(clock, us);
		if (c == &not_full && (rnd(r) & 1))
			err = pthread_cond_timedwait(c, &mutex, &ts);
		else if (c == &not_empty && clock == CLOCK_REALTIME && (rnd(r) & 1))
			err = pthread_cond_timedwait(c, &mutex, &ts);
		else
			err = pthread_cond_clockwait(c, &mutex, clock, &ts);
		if (err) {
			CHECK_EQ(err, ETIMEDOUT);
			CHECK(is_past(clock, ts));
		}
	}
	enter();
	return err;
}

static void notify(pthread_cond_t *c, uint64_t *r)
{
	if (mode == BROADCAST || (mode == MIXED && !rnd_below(r, 4)))
		CHECK_EQ(pthread_cond_broadcast(c), 0);
	else
		CHECK_EQ(pthread_cond_signal(c), 0);
}

/* Leaves and tells one of the others, before or after the unlock. */
static void leave_and_notify(pthread_cond_t *c, uint64_t *r)
{
	int early = (int)(rnd(r) & 1);

	if (early)
		notify(c, r);
	leave();
	unlock(&mutex);
	if (!early)
		notify(c, r);
}

static void *produce(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t *r = &rng[id];

	STORE(tids[id], (int)syscall(SYS_gettid));
	for (long i = 1; n_items ? i <= n_items : !LOAD(stop); i++) {
		progress_at(id, "producer in lock");
		lock(&mutex);
		enter();
		progress_at(id, "producer waits for a place");
		while (filled == (unsigned)places)
			wait_on(&not_full, r);
		queue[(head + filled++) % MAX_PLACES] = (struct item){id, i};
		produced++;
		progress_at(id, "producer in unlock and signal");
		leave_and_notify(&not_empty, r);
		if (!rnd_below(r, 3))
			for (volatile unsigned n = rnd_below(r, 3000); n; n--)
				;
		progress_made(id);
	}
	STORE(tids[id], 0);
	progress_at(id, NULL);
	return NULL;
}

static void on_cancel(void *arg)
{
	(void)arg;
	enter(); /* the mutex is ours again, or this fails in time */
	cancelled++;
	leave();
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

/*
 * One that may be cancelled waits first and looks then: nothing but a signal
 * brings it an item, so a signal that dies with it is an item that nobody takes.
 */
static void *consume(void *arg)
{
	int id = (int)(intptr_t)arg, old, blind = id >= n_producers + n_consumers;
	uint64_t *r = &rng[id];

	STORE(tids[id], (int)syscall(SYS_gettid));
	for (;;) {
		struct item it;

		progress_at(id, "consumer in lock");
		lock(&mutex);
		enter();
		progress_at(id, blind ? NULL : "consumer waits for an item");
		pthread_cleanup_push(on_cancel, NULL);
		if (blind && !closed)
			wait_on(&not_empty, r);
		while (!filled && !closed)
			wait_on(&not_empty, r);
		pthread_cleanup_pop(0);
		if (!filled) {
			leave();
			unlock(&mutex);
			break;
		}
		it = queue[head];
		head = (head + 1) % MAX_PLACES;
		filled--;
		CHECK_EQ(it.number, last_taken[it.producer] + 1);
		last_taken[it.producer] = it.number;
		consumed++;
		progress_at(id, "consumer in unlock and signal");
		/* Nothing from here to the next wait may be cut short. */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
		leave_and_notify(&not_full, r);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
		progress_made(id);
	}
	STORE(tids[id], 0);
	progress_at(id, NULL);
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&interrupted, 1, __ATOMIC_RELAXED);
}

static void *disturb(void *arg)
{
	int first = n_producers + n_consumers;
	pthread_t extra[EXTRA];
	uint64_t r = rnd_seed(3000);

	for (int i = 0; i < EXTRA && do_cancel; i++)
		extra[i] = start(consume, (void *)(intptr_t)(first + i));

	while (!LOAD(stop)) {
		int i = (int)rnd_below(&r, n_producers + n_consumers);

		sleep_us(rnd_below(&r, 200));
		if (do_signals && LOAD(tids[i]))
			syscall(SYS_tgkill, getpid(), LOAD(tids[i]), SIGUSR1);
		if (do_cancel) {
			i = (int)rnd_below(&r, EXTRA);
			CHECK_EQ(pthread_cancel(extra[i]), 0);
			CHECK(join(extra[i]) == PTHREAD_CANCELED);
			extra[i] = start(consume, (void *)(intptr_t)(first + i));
		}
	}
	for (int i = 0; i < EXTRA && do_cancel; i++) {
		CHECK_EQ(pthread_cancel(extra[i]), 0);
		CHECK(join(extra[i]) == PTHREAD_CANCELED);
		progress_at(first + i, NULL);
	}
	return NULL;
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:c:q:d:n:s:m:w:k:TCS")) != -1)
		switch (c) {
		case 'p': n_producers = atoi(optarg); break;
		case 'c': n_consumers = atoi(optarg); break;
		case 'q': places = atoi(optarg); break;
		case 'n': n_items = atol(optarg); break;
		case 'm':
			mode = *optarg == 's' ? SIGNAL : *optarg == 'b' ? BROADCAST : MIXED;
			break;
		case 'k':
			kind = mutex_type_by_name(optarg);
			if (kind < 0)
				_exit(CHECK_SETUP);
			break;
		case 'T': do_timed = 1; break;
		case 'C': do_cancel = 1; break;
		case 'S': do_signals = 1; break;
		default:
			if (!progress_option(c, &run_us))
				_exit(CHECK_SETUP);
		}
	if (n_producers < 1 || n_producers > MAX_PARTIES || n_consumers < 1 ||
	    n_consumers > MAX_PARTIES || places < 1 || places > MAX_PLACES)
		_exit(CHECK_SETUP);
	if (!run_us && !n_items)
		run_us = 2000000;
}

int main(int argc, char **argv)
{
	pthread_t watch, disturber = 0, p[MAX_PARTIES], c[MAX_PARTIES];
	pthread_condattr_t a;
	long sum = 0;

	check_begin(argv[0], 10);
	parse(argc, argv);
	mutex_of_type(&mutex, kind);
	pthread_condattr_init(&a);
	CHECK_EQ(pthread_condattr_setclock(&a, CLOCK_MONOTONIC), 0);
	CHECK_EQ(pthread_cond_init(&not_full, &a), 0);
	for (int i = 0; i < 2 * MAX_PARTIES + EXTRA; i++)
		rng[i] = rnd_seed(i);
	watch = progress_begin(run_us);
	if (do_signals) {
		struct sigaction sa;

		memset(&sa, 0, sizeof sa);
		sa.sa_handler = on_signal;
		sigaction(SIGUSR1, &sa, NULL);
	}
	start_numbered(c, n_consumers, n_producers, consume);
	start_numbered(p, n_producers, 0, produce);
	if (do_signals || do_cancel)
		disturber = start(disturb, NULL);
	if (run_us) {
		sleep_us((unsigned)run_us);
		STORE(stop, 1);
	}
	join_all(p, n_producers);
	STORE(stop, 1);
	if (disturber)
		join(disturber);
	lock(&mutex);
	closed = 1;
	CHECK_EQ(pthread_cond_broadcast(&not_empty), 0);
	unlock(&mutex);
	join_all(c, n_consumers);
	progress_end(watch);
	for (int i = 0; i < n_producers; i++)
		sum += last_taken[i];
	CHECK_EQ(consumed, produced);
	CHECK_EQ(sum, produced);
	CHECK_EQ(filled, 0);
	CHECK_EQ(pthread_cond_destroy(&not_empty), 0);
	CHECK_EQ(pthread_cond_destroy(&not_full), 0);
	CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
	check_say("passed: %ld items, %ld cancelled, %ld interrupted", consumed, cancelled,
		  interrupted);
	return 0;
}
