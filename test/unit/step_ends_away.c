/* SPDX-License-Identifier: MIT */
/*
 * A thread that has been given a lock ends while it puts away the role that came with it, at each
 * instruction: by pthread_exit() in a signal handler, which here is the step's.  Its offer is gone
 * then, the word says that it has the lock, and who joins next finds the role.  And so while
 * another thread is in the middle of releasing the lock for it, which goes on after that end.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
#include "lock/held.h"
#include "lock/links.h"
#include "lock/offer.h"
#include "lock/queue.h"

static struct fg_lock l;
static long at;
static uint32_t index_of, id_of, node;
static int ready, paused, resumes, over, is_released;
static __thread bool releases;

static uint32_t state(void)
{
	return LOAD(fg_thread_of(index_of)->node[node % FG_NODE_STEP].state) & FG_NODE_STATE_MASK;
}

static void between(void)
{
	if (!releases) {
		if (step_count == at) {
			step_ending = !is_released;
			pthread_exit(NULL);
		}
	} else if (!paused && state() == FG_NODE_HEAD) {
		STORE(paused, 1); /* the role is this thread's to pass on */
		UNTIL(LOAD(resumes));
	}
}

static void *ends(void *arg)
{
	struct fg_self *t = fg_self();
	uint32_t behind;

	index_of = fg_id_index(t->id);
	id_of = t->id;
	node = _fg_queue_join(&l, t, &behind);
	CHECK(node && !behind);
	CHECK(_fg_offer_make(&l, t));
	_fg_offer_keep(&l, t, node);
	t->only = address(&l) | FG_ONLY_SLOWLY;
	fg_set_role(t, FG_ROLE_NONE);
	STORE(ready, 1);
	if (is_released)
		UNTIL(LOAD(paused));
	step_begin(between);
	_fg_offer_put_away(t);
	step_ending = 0;
	step_end();
	STORE(over, 1);
	return arg;
}

static void *release_for_it(void *arg)
{
	fg_self();
	releases = true;
	step_begin(between);
	_fg_offer_take_back(&l, fg_self());
	step_end();
	return arg;
}

static bool role_is_found(void)
{
	const struct fg_thread *th = fg_thread_of(index_of);

	return !l.tail || th->node[node % FG_NODE_STEP].next == FG_NODE_HANDED;
}

static void reset(void)
{
	memset(&l, 0, sizeof(l));
	l.word = fg_self()->id; /* as of a former owner's gift */
	ready = paused = resumes = over = 0;
}

/*
 * `lost`: instructions at which the role goes with the thread: in which it joins, or passes the
 * role on.
 */
static void alone(void)
{
	int lost = 0, times = 0;

	for (at = 1; !over; at++, times++) {
		const struct fg_thread *th;

		reset();
		join(start(ends, NULL));
		th = fg_thread_of(index_of);
		if (over)
			break;
		CHECK_EQ(th->offer, 0);
		CHECK_EQ(l.word, id_of);
		lost += !role_is_found();
		memset((void *)th->node, 0, sizeof(th->node));
	}
	CHECK(times > 100);
	CHECK(lost * 25 <= times);
}

static void released_meanwhile(void)
{
	pthread_t a, f;
	int times = 0;

	for (at = 1; !over; at += 3, times++) {
		reset();
		a = start(ends, NULL);
		UNTIL(LOAD(ready));
		f = start(release_for_it, NULL);
		join(a);
		step_ending = 1;
		STORE(resumes, 1);
		join(f);
		memset((void *)fg_thread_of(index_of)->node, 0, sizeof(struct fg_node) * FG_NODES);
	}
	CHECK(times > 20);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 120);
	fg_self();
	alone();
	over = 0;
	is_released = 1;
	released_meanwhile();
	return 0;
}
#endif
