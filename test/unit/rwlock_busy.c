/* SPDX-License-Identifier: MIT */
/*
 * An unlock for another thread that finds a third one in the middle of another such unlock, in the
 * same place of the table, waits for it, as long as that may have no CPU.  In a signal handler that
 * has interrupted one of its own thread it ends nevertheless.
 */
#include "../tools/check.h"

#include <stdbool.h>

#include "lock/rwlock.h"
#include "lock/visible.h"

#define LONGER_MS 1000 /* than it has ever waited */

static struct fg_rwlock rw, others[64], *other = others;
static struct fg_visible_line *line; /* of the reader */
static int left;
static bool interrupted;

static void *unlocks(void *arg)
{
	CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	STORE(left, 1);
	return arg;
}

static void *unlocks_other(void *arg)
{
	CHECK_EQ(_fg_rwlock_unlock(other), 0);
	return arg;
}

static void *has_readers(void *answer)
{
	CHECK_EQ(_fg_rwlock_trywrlock(&rw), answer ? EBUSY : 0);
	if (!answer)
		CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	return answer;
}

static void read_visibly(struct fg_rwlock *l)
{
	for (int n = 0; n < 100000 && !l->bias; n++) {
		CHECK_EQ(_fg_rwlock_rdlock(l, NULL, NULL), 0);
		CHECK_EQ(_fg_rwlock_unlock(l), 0);
	}
	CHECK_EQ(_fg_rwlock_rdlock(l, NULL, NULL), 0);
	CHECK(fg_visible_reads(line, l));
}

void __real_fg_fence_heavy(uint32_t whose);
void __wrap_fg_fence_heavy(uint32_t whose);

/*
 * Between what an unlock says of an entry and its look at it.  By then the reader has left, and
 * reads the other lock, and now a handler unlocks that one.
 */
void __wrap_fg_fence_heavy(uint32_t whose)
{
	uint32_t column = fg_visible_column(&rw);

	if (line->released[column] == (uintptr_t)other && !interrupted) {
		interrupted = true;
		STORE(line->entry[column], (uintptr_t)&rw);
		CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	}
	__real_fg_fence_heavy(whose);
}

int main(int argc, char **argv)
{
	uint32_t column = fg_visible_column(&rw);
	uint64_t *released;
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 20);
	while (fg_visible_column(other) != column)
		other++;
	line = fg_visible_mine(fg_self());
	released = &line->released[column];
	read_visibly(&rw);
	CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	read_visibly(other);
	join(start(unlocks_other, NULL));
	CHECK(interrupted);
	CHECK_EQ(*released, 0);
	/* It reads the other one, by what has been stored there. */
	CHECK_EQ(_fg_visible_leave(fg_self(), &rw), FG_VISIBLE_GONE);

	read_visibly(&rw);
	/* As by a thread that has yet to see that this one does not read `other` any more. */
	STORE(*released, (uintptr_t)other);
	t = start(unlocks, NULL);
	for (int ms = 0; ms < LONGER_MS && !LOAD(left); ms++)
		sleep_us(1000);
	CHECK_EQ(LOAD(left), 0);
	join(start(has_readers, &rw));
	STORE(*released, 0);
	join(t);
	join(start(has_readers, NULL));
	return 0;
}
