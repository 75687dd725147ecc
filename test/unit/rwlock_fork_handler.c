/* SPDX-License-Identifier: MIT */
/*
 * A writer sleeps until a reader leaves, and a signal handler of its forks.  In the child there is
 * no such reader: the writer gets the lock there, and the parent's when the reader has left.
 */
#include "../tools/readers.h"

#include <signal.h>
#include <sys/wait.h>

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
static pthread_t writer;
static int reads, in_child;
static pid_t child;

static void fork_here(int sig)
{
	pid_t pid = fork();

	(void)sig;
	if (!pid) {
		in_child = 1;
		alarm(20);
	} else {
		STORE(child, pid);
	}
}

static void *read_until_the_child_has_written(void *arg)
{
	int status;

	CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
	STORE(reads, 1);
	sleep_us(30000); /* the writer sleeps by now, most likely */
	CHECK_EQ(pthread_kill(writer, SIGUSR1), 0);
	UNTIL(LOAD(child));
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
	pthread_t reader;

	(void)argc;
	check_begin(argv[0], 40);
	if (!getenv("CHECK_PRELOAD"))
		check_skip("glibc's writer waits for ever in the child");
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	writer = pthread_self();
	readers_begin(&lock_);
	read_in_turn(); /* so that the reader is where those of a lock are that is read */
	reader = start(read_until_the_child_has_written, NULL);
	UNTIL(LOAD(reads));
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	if (in_child)
		_exit(0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	join(reader);
	readers_end();
	return 0;
}
