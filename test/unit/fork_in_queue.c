/* SPDX-License-Identifier: MIT */
/*
 * The head of a queue forks, in a signal handler, when it has seen who is behind it.  In the child
 * that thread does not exist; another has its index, and its node, and is the head of another
 * lock's queue when the wait of the one that forked ends.  Nobody touches that node.  The policy
 * "spin": waiters stay in their queues.
 */
#include "../tools/check.h"

#include <signal.h>

#include "lock/lock.h"
#include "runtime/decide.h"

/* More than enough for a head to look behind itself. */
#define LOOKS_NS 5000000

static struct fg_lock l, other;
static uint32_t index_behind; /* of the thread behind the head */
static int forked, other_is_held, let_go;
static pid_t child;

static uint32_t my_index(void)
{
	return fg_id_index(fg_self()->id);
}

static bool has_role(uint32_t index, enum fg_role role)
{
	return fg_load_relaxed(&fg_slot_look(index)->role) == role;
}

static void *hold_other(void *arg)
{
	CHECK(my_index() != index_behind);
	_fg_lock(&other);
	STORE(other_is_held, 1);
	UNTIL(LOAD(let_go));
	_fg_unlock(&other);
	return arg;
}

static void *wait_for_other(void *arg)
{
	CHECK_EQ(my_index(), index_behind);
	_fg_lock(&other);
	_fg_unlock(&other);
	return arg;
}

static pthread_t in_child[2];

/* The lowest free index is the next thread's. */
static void before_the_wait_ends(void)
{
	check_begin("fork_in_queue, child", 60);
	in_child[0] = start(hold_other, NULL);
	UNTIL(LOAD(other_is_held));
	in_child[1] = start(wait_for_other, NULL);
	UNTIL(has_role(index_behind, FG_ROLE_HEAD));
	_fg_unlock(&l); /* for its owner, who is in the parent */
}

static void after_the_wait(void)
{
	const struct fg_node *node = fg_thread_of(index_behind)->node;

	CHECK_EQ(node->next, 0);
	CHECK_EQ(node->state & FG_NODE_STATE_MASK, FG_NODE_HEAD);
	CHECK(has_role(index_behind, FG_ROLE_HEAD));
	_fg_unlock(&l);
	STORE(let_go, 1);
	join(in_child[0]);
	join(in_child[1]);
	CHECK_EQ(other.word, 0);
	CHECK_EQ(other.tail, 0);
	CHECK_EQ(l.word, 0);
	_exit(0);
}

static void handler(int signal)
{
	(void)signal;
	child = fork();
	CHECK(child >= 0);
	if (!child)
		before_the_wait_ends();
	else
		STORE(forked, 1);
}

static uint32_t index_of_head;

static void *head(void *arg)
{
	STORE(index_of_head, my_index());
	_fg_lock(&l);
	if (!child)
		after_the_wait();
	_fg_unlock(&l);
	return arg;
}

static void *behind(void *arg)
{
	STORE(index_behind, my_index());
	_fg_lock(&l);
	_fg_unlock(&l);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler};
	pthread_t t[2];
	long long began;

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_SPIN);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	_fg_lock(&l);
	t[0] = start(head, NULL);
	UNTIL(LOAD(index_of_head) && has_role(index_of_head, FG_ROLE_HEAD));
	t[1] = start(behind, NULL);
	UNTIL(LOAD(index_behind) && has_role(index_behind, FG_ROLE_WAITING));
	began = thread_cpu_ns(t[0]);
	UNTIL(thread_cpu_ns(t[0]) - began > LOOKS_NS);
	CHECK_EQ(pthread_kill(t[0], SIGUSR1), 0);
	UNTIL(LOAD(forked));
	check_child(child);
	_fg_unlock(&l);
	join(t[0]);
	join(t[1]);
	CHECK_EQ(l.word, 0);
	CHECK_EQ(l.tail, 0);
	return 0;
}
