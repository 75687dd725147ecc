/* SPDX-License-Identifier: MIT */
/*
 * In the child of a fork there is no writer that waits: its readers need not wait for one that has
 * come in the parent, and has not got the lock there.
 */
#include "../tools/asleep.h"

/* Should each of them wait for as long as one does for a writer, it takes more than a minute. */
#define READS 20000

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
static int reads, let_go, tid;

static void *read_on(void *arg)
{
	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	STORE(reads, 1);
	UNTIL(LOAD(let_go));
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return arg;
}

static void *write_once(void *arg)
{
	STORE(tid, (int)syscall(SYS_gettid));
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return arg;
}

static void read_often(void)
{
	for (int i = 0; i < READS; i++) {
		CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	}
}

int main(int argc, char **argv)
{
	pthread_t reader, writer;
	pid_t pid;

	(void)argc;
	check_begin(argv[0], 60);
	reader = start(read_on, NULL);
	UNTIL(LOAD(reads));
	writer = start(write_once, NULL);
	UNTIL(LOAD(tid) && is_asleep(LOAD(tid)));
	pid = check_fork();
	if (!pid) {
		read_often();
		_exit(0);
	}
	check_child(pid);
	STORE(let_go, 1);
	join(reader);
	join(writer);
	return 0;
}
