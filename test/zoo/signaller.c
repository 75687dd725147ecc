/* SPDX-License-Identifier: MIT */
/*
 * The hybrid lock's own condition variable: a waiter is awake as long as the lock spins, whether
 * anybody has the lock or not.  It switches the lock, and so goes to sleep, when the latest
 * signaller is preempted, which a signaller that sleeps is not; and when there is no monitor that
 * would say so.
 *
 * The library's own objects are part of this program, which plays the monitor: it writes where its
 * own thread, the signaller, is.
 */
#include "plays_monitor.h"

#include "cond_ours.h"
#include "zoo/choose.h"
#include "zoo/hybrid.h"

#define AWAKE_NS 20000000 /* on a CPU: a hundred times what a waiter needs to make up its mind */

static struct zoo_mutex m;
static struct fg_cond cond;

static int unlock_it(void *mutex)
{
	return _fg_mutex_unlock(mutex);
}

static int lock_it(void *mutex)
{
	return _fg_mutex_lock_untraced(mutex, NULL);
}

static const struct fg_cond_mutex mutex = {unlock_it, lock_it, &m, (struct fg_mutex *)&m};

struct waiter {
	int done;
	pthread_t thread;
};

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	CHECK_EQ(lock_it(&m), 0);
	CHECK_EQ(_fg_chosen_cond_wait(&cond, &mutex, NULL), 0);
	CHECK_EQ(unlock_it(&m), 0);
	STORE(w->done, 1);
	return NULL;
}

static void begin(struct waiter *w)
{
	const uint32_t *target = (const uint32_t *)&cond; /* of struct zoo_ticket_cond */
	uint32_t drawn = LOAD(*target);

	*w = (struct waiter){0};
	w->thread = start(wait_for_it, w);
	AWAIT(LOAD(*target) != drawn);
	AWAIT(!LOAD(m.owner));
}

static bool blocks(void)
{
	return curr_of(LOAD(*state_of(&m))) == BLOCK;
}

/*
 * It looks again and again, stays awake, and the lock as it is.  False: this thread was off its CPU
 * for so long that the monitor that it plays passed for dead.
 */
static bool is_awake(const struct waiter *w)
{
	int64_t before = thread_cpu_ns(w->thread);

	AWAIT(blocks() || thread_cpu_ns(w->thread) - before > AWAKE_NS);
	CHECK(!LOAD(w->done));
	if (!fg_policy_has_monitor())
		return false;
	CHECK(!blocks());
	return true;
}

static void say(uint32_t state)
{
	STORE(fg_self()->slot->state, state);
}

static void signal_it(struct waiter *w)
{
	_fg_chosen_cond_signal(&cond);
	AWAIT(LOAD(w->done));
	join(w->thread);
}

/* The waiter of a lock that spins, whose last signaller was this thread. */
static bool begin_anew(struct waiter *w)
{
	struct waiter first;
	bool awake;

	m = (struct zoo_mutex){.kind = m.kind};
	memset(&cond, 0, sizeof cond);
	say(FG_STATE_ON);
	begin(&first);
	begin(w);
	awake = is_awake(&first); /* nobody has signalled */
	signal_it(&first);
	return awake && is_awake(w); /* nobody has the lock */
}

static bool preempted(void)
{
	struct waiter w;
	bool awake;

	monitor(true);
	awake = begin_anew(&w);
	say(FG_STATE_SLEEP);
	awake = awake && is_awake(&w);
	say(FG_STATE_ON);
	awake = awake && is_awake(&w);
	say(FG_STATE_RUNNABLE);
	AWAIT(blocks());
	awake = awake && fg_policy_has_monitor();
	say(FG_STATE_ON);
	signal_it(&w);
	return awake;
}

static bool monitor_dies(void)
{
	struct waiter w;
	bool awake;

	monitor(true);
	awake = begin_anew(&w);
	alive = false;
	AWAIT(blocks());
	signal_it(&w);
	return awake;
}

static void no_monitor(void)
{
	struct waiter w;

	monitor(false);
	m = (struct zoo_mutex){.kind = m.kind};
	begin(&w);
	AWAIT(blocks());
	signal_it(&w);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	CHECK(zoo_chosen()->lock->ticket_cond);
	while (!preempted())
		;
	while (!monitor_dies())
		;
	no_monitor();
	return 0;
}
