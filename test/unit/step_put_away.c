/* SPDX-License-Identifier: MIT */
/*
 * A thread that has been given a lock puts away the role that came with it, before it waits for
 * another one.  After every other instruction of that another thread releases the lock for it, and
 * after any later one the lock's memory goes.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
#include <sys/mman.h>

#include "lock/held.h"
#include "lock/offer.h"
#include "lock/queue.h"

static struct fg_lock *l;
static long taken_at, gone_after, taken_back, times;

static void *take_back(void *arg)
{
	CHECK(_fg_offer_take_back(l, fg_self()));
	return arg;
}

/* Not while the thread says that it is at it: who releases for it waits then. */
static void between(void)
{
	if (!taken_back && step_count >= taken_at && was_given(&fg_self_tls, address(l))) {
		join(start(take_back, NULL));
		taken_back = step_count;
	}
	if (taken_back && step_count == taken_back + gone_after)
		CHECK_EQ(munmap(l, 4096), 0);
}

/* False: it was over before the memory had to go. */
static bool put_away(void)
{
	struct fg_self *t = fg_self();
	uint32_t n, behind;

	l = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(l != MAP_FAILED);
	n = _fg_queue_join(l, t, &behind);
	CHECK(n && !behind);
	CHECK(_fg_offer_make(l, t));
	_fg_offer_keep(l, t, n);
	taken_back = 0;
	step_begin(between);
	_fg_offer_put_away(t);
	step_end();
	fg_set_role(t, FG_ROLE_NONE);
	if (taken_back && step_count >= taken_back + gone_after)
		return true;
	fg_thread_mine(t)->offer = 0;
	munmap(l, 4096);
	return false;
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 60);
	for (taken_at = 1; taken_at < 60; taken_at += 2)
		for (gone_after = 0; put_away(); gone_after++)
			times++;
	CHECK(times > 20);
	return 0;
}
#endif
