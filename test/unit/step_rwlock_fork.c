/* SPDX-License-Identifier: MIT */
/*
 * After each instruction of a read lock, and of its unlock, a signal handler forks.  By then
 * another thread has unlocked for somebody, and has said so beside the entry of this one, but has
 * yet to see that this one had left; or it has indeed released that entry.  In the child, where it
 * is not, what the interrupted thread reads counts, and what it has unlocked does not; so it is
 * with what it reads later; and who unlocks for it there waits for nobody.  And in a child of that
 * child, which the same handler forks.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
#include <stdbool.h>

#include "lock/rwlock.h"
#include "lock/visible.h"

enum { POSITIONS = 300 };

static struct fg_rwlock rw, others[64], *other = others;
static struct fg_visible_line *line;
static uint32_t column;

static const struct fg_rwlock *unlocked; /* by the thread that has yet to see */
static bool says_so;			 /* it has written the notice as well */
static bool locks;			 /* it is the lock that is stopped, and not its unlock */
static int position, came;
static bool is_child;

static void forks(void)
{
	uint64_t mark = (uintptr_t)unlocked;
	int status;
	pid_t pid;

	if (step_count != position)
		return;
	came = step_ending = 1;
	/* By its new entry: it would hold nothing. */
	if (locks && unlocked == &rw && line->entry[column] == mark)
		return;
	if (unlocked && !line->released[column]) {
		line->released[column] = mark;
		if (says_so)
			line->notice |= FG_NOTICE_RELEASED;
	} else {
		mark = 0;
	}
	pid = fork();
	if (!pid) {
		is_child = true;
		check_end_after(20);
		pid = fork();
		CHECK(pid >= 0);
		if (pid)
			CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		return;
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		check_say("%s, after instruction %d, %s unlocked, notice %d",
			  locks ? "lock" : "unlock", position,
			  unlocked == &rw ? "it" :
			  unlocked	  ? "another one" :
					    "none",
			  says_so);
	CHECK_EQ(status, 0);
	if (mark && line->entry[column] != mark)
		line->released[column] = 0;
}

static void *unlocks(void *lock)
{
	CHECK_EQ(_fg_rwlock_unlock(lock), 0);
	return lock;
}

static void nobody_reads(struct fg_rwlock *l)
{
	CHECK_EQ(_fg_rwlock_trywrlock(l), 0);
	CHECK_EQ(_fg_rwlock_unlock(l), 0);
}

static void leave_to_another(struct fg_rwlock *l)
{
	CHECK_EQ(_fg_rwlock_trywrlock(l), EBUSY);
	join(start(unlocks, l));
	nobody_reads(l);
}

/* So that the table is where its readers are. */
static void read_often(struct fg_rwlock *l)
{
	for (int n = 0; n < 100000 && !l->bias; n++) {
		CHECK_EQ(_fg_rwlock_rdlock(l, NULL, NULL), 0);
		CHECK_EQ(_fg_rwlock_unlock(l), 0);
	}
	CHECK(l->bias);
}

static void read_there(struct fg_rwlock *l)
{
	read_often(l);
	CHECK_EQ(_fg_rwlock_rdlock(l, NULL, NULL), 0);
	leave_to_another(l);
}

static void check_in_child(void)
{
	if (locks)
		leave_to_another(&rw);
	else
		nobody_reads(&rw);
	/* In the place of which the other thread has said something. */
	read_there(unlocked == other ? other : &rw);
	read_there(unlocked == other ? &rw : other);
	_exit(0);
}

static void once(bool again)
{
	if (!locks)
		CHECK_EQ(_fg_rwlock_rdlock(&rw, NULL, NULL), 0);
	if (again) {
		join(start(unlocks, &rw));
		CHECK_EQ(_fg_rwlock_rdlock(&rw, NULL, NULL), 0);
	} else {
		line->notice = 0;
	}
	step_begin(forks);
	if (locks)
		CHECK_EQ(_fg_rwlock_rdlock(&rw, NULL, NULL), 0);
	else
		CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	step_end();
	if (is_child)
		check_in_child();
	if (locks)
		CHECK_EQ(_fg_rwlock_unlock(&rw), 0);
	CHECK(!line->entry[column]);
	line->released[column] = 0;
}

static void each(const struct fg_rwlock *lock, bool says, bool again)
{
	unlocked = lock;
	says_so = says;
	for (position = came = 1; came && position <= POSITIONS; position++) {
		came = 0;
		once(again);
	}
	CHECK(!came);
	CHECK(position > 10);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 100);
	line = fg_visible_mine(fg_self());
	column = fg_visible_column(&rw);
	while (fg_visible_column(other) != column)
		other++;
	read_often(&rw);
	read_often(other);
	for (int says = 0; says < 2; says++)
		for (int l = 0; l < 2; l++) {
			locks = l;
			each(&rw, says, false);
			each(other, says, false);
		}
	locks = false;
	each(NULL, false, true);
	return 0;
}
#endif
