/* SPDX-License-Identifier: MIT */
/*
 * A lock that a thread has left behind and another releases: the release is not put down to the
 * thread that has its index by now, which publishes the locks that it holds, no more and no fewer;
 * in the child of a fork the thread that forked does, too.
 */
#include "../tools/check.h"

#include "lock/lock.h"

static struct fg_lock left, mine[3];
static uint32_t index_of_left;
static int taken, released;

static void *leave_one_behind(void *arg)
{
	_fg_lock(&left);
	index_of_left = fg_id_index(fg_self()->id);
	return NULL;
}

/* What the monitor is told: locks beside the pending one; pending or not. */
static void publishes(uint32_t cs, bool pending)
{
	CHECK_EQ(fg_self()->slot->cs, cs);
	CHECK_EQ(fg_self()->slot->pending != 0, pending);
}

static void *same_index(void *arg)
{
	_fg_lock(&mine[0]);
	CHECK_EQ(fg_id_index(fg_self()->id), index_of_left);
	STORE(taken, 1);
	UNTIL(LOAD(released));
	_fg_lock(&mine[1]);
	publishes(1, true);
	_fg_lock(&mine[2]);
	publishes(2, true);
	_fg_unlock(&mine[2]);
	_fg_unlock(&mine[1]);
	_fg_unlock(&mine[0]);
	publishes(0, false);
	return NULL;
}

/* Its own releases by others do count. */
static void *right_one(void *arg)
{
	_fg_lock(&mine[0]);
	_fg_lock(&mine[1]);
	STORE(taken, 2);
	UNTIL(LOAD(released) == 2);
	_fg_lock(&mine[2]);
	publishes(1, true);
	_fg_unlock(&mine[2]);
	_fg_unlock(&mine[0]);
	publishes(0, false);
	return NULL;
}

static void *release_one(void *arg)
{
	UNTIL(LOAD(taken) == 2);
	_fg_unlock(&mine[1]);
	STORE(released, 2);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	pid_t child;

	check_begin(argv[0], 30);
	join(start(leave_one_behind, NULL));
	t = start(same_index, NULL);
	UNTIL(LOAD(taken));
	_fg_unlock(&left);
	STORE(released, 1);
	join(t);

	t = start(right_one, NULL);
	release_one(NULL);
	join(t);

	taken = released = 0;
	child = check_fork();
	if (!child) {
		t = start(release_one, NULL);
		right_one(NULL);
		join(t);
		_exit(0);
	}
	check_child(child);
	return 0;
}
