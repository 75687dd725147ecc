/* SPDX-License-Identifier: MIT */
/*
 * Handlers of pthread_atfork() that lock mutexes before a fork, and initialise them anew in the
 * child in place of a release: the child's thread has none of them then, in whatever order, and
 * what it holds beside them it goes on holding.
 */
#include "../tools/check.h"

#include <flexguard.h>
#include <stdbool.h>

#include "lock/held.h"

static fg_mutex_t m[3], beside;
static int order[3];

static void prepare(void)
{
	for (int i = 0; i < 3; i++)
		CHECK_EQ(fg_mutex_lock(&m[i]), 0);
}

static void in_parent(void)
{
	for (int i = 0; i < 3; i++)
		CHECK_EQ(fg_mutex_unlock(&m[i]), 0);
}

static void in_child(void)
{
	for (int i = 0; i < 3; i++)
		CHECK_EQ(fg_mutex_init(&m[order[i]],
				       i == 1 ? FG_MUTEX_ERRORCHECK : FG_MUTEX_NORMAL),
			 0);
}

static void holds_nothing(void)
{
	const struct fg_self *t = fg_self();

	CHECK_EQ(locks_announced(t), 0);
	CHECK_EQ(t->slot->cs, 0);
	CHECK_EQ(t->slot->pending, 0);
}

static void use(void)
{
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(fg_mutex_trylock(&m[i]), 0);
		CHECK_EQ(fg_mutex_unlock(&m[i]), 0);
	}
	holds_nothing();
	CHECK_EQ(fg_self()->only, FG_ONLY_NONE); /* the next lock comes the fast way */
}

static void fork_and_use(bool with_another)
{
	pid_t pid;

	if (with_another)
		CHECK_EQ(fg_mutex_lock(&beside), 0);
	pid = check_fork();
	if (!pid) {
		if (with_another) {
			CHECK(fg_self()->slot->cs || fg_self()->slot->pending);
			CHECK_EQ(fg_mutex_trylock(&beside), EBUSY);
			CHECK_EQ(fg_mutex_unlock(&beside), 0);
		}
		holds_nothing();
		use();
		_exit(0);
	}
	check_child(pid);
	if (with_another)
		CHECK_EQ(fg_mutex_unlock(&beside), 0);
	use();
}

int main(int argc, char **argv)
{
	static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};

	(void)argc;
	check_begin(argv[0], 30);
	CHECK_EQ(pthread_atfork(prepare, in_parent, in_child), 0);
	for (int i = 0; i < 3; i++) {
		memcpy(order, orders[i], sizeof(order));
		fork_and_use(false);
		fork_and_use(true);
	}
	return 0;
}
