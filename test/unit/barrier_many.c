/* SPDX-License-Identifier: MIT */
/*
 * Barriers that have been used for so long that the count of those that have left turns
 * over: no thread with nobody to wake makes a system call, and destroy ends.
 */
#include "../tools/no_call.h"

#include "lock/barrier.h"

/* The barrier of one as it is after so many rounds, of which `fewer` have not been left yet. */
static void after(struct fg_barrier *b, uint64_t rounds, uint32_t fewer)
{
	_fg_barrier_init(b, 1);
	*_fg_barrier_state(b) = rounds << 33;
	b->left = (uint32_t)(rounds - fewer) * FG_BARRIER_LEAVER;
}

static void *destroy(void *arg)
{
	_fg_barrier_destroy(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	static const uint64_t turns[] = {1ull << 30, 1ull << 31, 1ull << 32};
	struct fg_barrier b;
	pthread_t t;
	pid_t child;

	(void)argc;
	check_begin(argv[0], 20);
	for (int i = 0; i < 3; i++) {
		uint32_t before;

		after(&b, turns[i], 1);
		before = b.left;
		t = start(destroy, &b);
		UNTIL(LOAD(b.left) != before); /* it says that it sleeps */
		sleep_us(2000);
		CHECK(_fg_barrier_wait(&b));
		join(t);
	}
	child = check_fork();
	if (!child) {
		no_futex();
		for (int i = 0; i < 3; i++) {
			after(&b, turns[i] - 3, 0);
			for (int n = 0; n < 6; n++)
				CHECK(_fg_barrier_wait(&b));
			_fg_barrier_destroy(&b);
		}
		_exit(0);
	}
	check_child(child);
	return 0;
}
