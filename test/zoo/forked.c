/* SPDX-License-Identifier: MIT */
/*
 * A mutex that was held when its process forked is made anew in the child, held.  Who has it says
 * so to the monitor, or asks for a longer time slice, once as before and not once more: after the
 * release it says no more that it has something.  Nor does it say so of one that a thread held
 * which the child has not.
 *
 * The library's own objects are part of this program.
 */
#include "../tools/check.h"

#include <sched.h>
#include <sys/rseq.h>
#include <sys/wait.h>

#include "runtime/thread.h"
#include "sys/slice.h"
#include "zoo/fork.h"

static int asks(void)
{
	const volatile unsigned char *rseq = (volatile unsigned char *)__builtin_thread_pointer() +
					     __rseq_offset;

	return __rseq_size ? rseq[FG_RSEQ_SLICE_CTRL] : 0;
}

struct holder {
	const struct zoo_lock *z;
	struct zoo_mutex *m;
	int held, end;
};

static void lock_it(const struct zoo_lock *z, struct zoo_mutex *m)
{
	CHECK(z->lock(m, NULL));
	STORE(m->owner, zoo_tid());
}

static void unlock_it(const struct zoo_lock *z, struct zoo_mutex *m)
{
	STORE(m->owner, 0);
	z->unlock(m);
}

static void *hold(void *arg)
{
	struct holder *h = arg;

	lock_it(h->z, h->m);
	STORE(h->held, 1);
	while (!LOAD(h->end))
		sched_yield();
	unlock_it(h->z, h->m);
	return NULL;
}

static void in_the_child(const struct zoo_lock *z, struct zoo_mutex *mine, struct zoo_mutex *others,
			 uint32_t sections, int asked)
{
	CHECK(zoo_is_parents(mine));
	zoo_renew(mine, z);
	zoo_renew(others, z);
	CHECK_EQ(LOAD(fg_self()->slot->sections), sections);
	CHECK_EQ(asks(), asked);
	CHECK(!z->trylock(mine) && !z->trylock(others));
	unlock_it(z, mine);
	CHECK_EQ(LOAD(fg_self()->slot->sections), 0);
	CHECK_EQ(asks(), 0);
}

static void one(const struct zoo_lock *z)
{
	struct zoo_mutex mine = {0}, others = {0};
	struct holder h = {.z = z, .m = &others};
	pthread_t t = start(hold, &h);
	uint32_t sections;
	int status, asked;
	pid_t child;

	while (!LOAD(h.held))
		sched_yield();
	lock_it(z, &mine);
	sections = fg_self()->slot->sections;
	asked = asks();
	child = fork();
	if (!child) {
		in_the_child(z, &mine, &others, sections, asked);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	unlock_it(z, &mine);
	STORE(h.end, 1);
	join(t);
}

int main(int argc, char **argv)
{
	static const struct zoo_lock *const locks[] = {
	    &zoo_hybridmcs, &zoo_hybridcas,  &zoo_hybridticket, &zoo_hybridclh,
	    &zoo_paper,	    &zoo_paperbuilt, &zoo_paperperlock, &zoo_paperblockingexit,
	    &zoo_ttasext,   &zoo_paperext,   &zoo_futex,	&zoo_mcs,
	};

	check_begin(argv[0], 60);
	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		one(locks[i]);
	return 0;
}
