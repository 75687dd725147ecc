/* SPDX-License-Identifier: MIT */
/*
 * Locks with time-slice extension ask for it when they have the lock, and not while they wait: the
 * kernel takes a request back when it grants it, which this program does in its place.  A thread
 * that has unlocked another thread's mutex still asks.  The library's objects are part of it.
 */
#include "../tools/check.h"

#include <sched.h>
#include <sys/rseq.h>

#include "runtime/policy.h"
#include "runtime/thread.h"
#include "zoo/extension.h"
#include "zoo/zoo.h"

static struct fg_counters counters;

static volatile unsigned char *request(void)
{
	return (volatile unsigned char *)__builtin_thread_pointer() + __rseq_offset +
	       FG_RSEQ_SLICE_CTRL;
}

struct waiter {
	const struct zoo_lock *z;
	struct zoo_mutex *m;
	volatile unsigned char *request;
	int asked;
};

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	STORE(w->request, request());
	w->z->lock(w->m, NULL);
	STORE(w->asked, 1 + *request());
	w->z->unlock(w->m);
	return NULL;
}

/* Does it wait, in the queue or asleep? */
static bool waits(const struct zoo_lock *z, struct zoo_mutex *m)
{
	return z == &zoo_ttasext || LOAD(m->s.p[1]) || LOAD(m->s.u32[0]) == 2;
}

static void one(const struct zoo_lock *z, bool monitor)
{
	struct zoo_mutex m = {0}, other = {0};
	struct waiter w = {.z = z, .m = &m};
	pthread_t t;

	fg_policy_monitor(monitor ? &counters : NULL, 1);
	CHECK(z->trylock(&m));
	CHECK_EQ(*request(), 1);
	CHECK(!z->trylock(&m));
	CHECK_EQ(*request(), 1); /* the lock that it has is what it asks for */
	*request() = 0;		 /* granted, and used up: one request for all locks that it has */
	z->lock(&other, NULL);
	CHECK_EQ(*request(), 0);
	z->unlock(&other);

	t = start(wait_for_it, &w);
	while (!LOAD(w.request))
		sched_yield();
	/* Until it waits, and asks for nothing. */
	for (int quiet = 0; quiet < 1000; sched_yield()) {
		counters.heartbeat_ns = fg_now_ns();
		quiet = waits(z, &m) && !*w.request ? quiet + 1 : 0;
	}
	CHECK(!LOAD(w.asked));
	z->unlock(&m);
	join(t);
	CHECK_EQ(w.asked, 2);
	CHECK_EQ(*request(), 0);
}

/* As in a program whose threads hand a mutex on. */
static void *unlock_it(void *arg)
{
	const struct waiter *w = arg;
	struct zoo_mutex own = {0};

	w->z->unlock(w->m);
	w->z->lock(&own, NULL);
	CHECK_EQ(*request(), 1);
	w->z->unlock(&own);
	CHECK_EQ(*request(), 0);
	return NULL;
}

static void *lock_for_another(void *arg)
{
	const struct waiter *w = arg;

	w->z->lock(w->m, NULL);
	return NULL;
}

static void elsewhere(const struct zoo_lock *z)
{
	struct zoo_mutex m = {0};
	struct waiter w = {.z = z, .m = &m};

	fg_policy_monitor(NULL, 1);
	join(start(lock_for_another, &w));
	join(start(unlock_it, &w));
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	if (__rseq_size == 0)
		check_skip("glibc has not registered rseq");
	one(&zoo_ttasext, true);
	one(&zoo_paperext, true);
	one(&zoo_paperext, false);
	elsewhere(&zoo_ttasext);
	elsewhere(&zoo_paperext);
	return 0;
}
