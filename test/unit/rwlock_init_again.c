/* SPDX-License-Identifier: MIT */
/*
 * A reader-writer lock that is initialised anew, at an address where somebody reads: in a child of
 * fork, as handlers of pthread_atfork() do, and in memory that is used again after its reader has
 * ended; by pthread_rwlock_init(), or by the static initialiser, whether or not the old one was
 * destroyed: a stack that is used again has new ones as well.  Nobody reads the new one.
 */
#include "../tools/check.h"

#include <sys/wait.h>

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t there;

static void *read_until_told(void *arg)
{
	CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
	pthread_barrier_wait(&there);
	pthread_barrier_wait(&there);
	if (!arg)
		CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return NULL;
}

static void *read_once(void *arg)
{
	CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return arg;
}

/* By several threads, so that readers are found in the table (the bias). */
static void read_often(void)
{
	for (int i = 0; i < 40; i++) {
		join(start(read_once, NULL));
		read_once(NULL);
	}
}

static void use_as_new(void)
{
	read_often();
	CHECK_EQ(pthread_rwlock_trywrlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	read_often();
	CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_destroy(&rw), 0);
}

static void *write_once(void *arg)
{
	CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return arg;
}

/* Destroyed in the child, while a writer of the parent waits for a reader of the parent. */
static void destroy_where_a_writer_waits(void)
{
	pthread_t reader, writer;
	pid_t child;
	int status;

	read_often();
	reader = start(read_until_told, NULL);
	pthread_barrier_wait(&there);
	writer = start(write_once, NULL);
	sleep_us(20000); /* until it has taken the bias back, most likely */
	child = fork();
	if (!child) {
		alarm(20);
		CHECK_EQ(pthread_rwlock_destroy(&rw), 0);
		rw = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
		use_as_new();
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	pthread_barrier_wait(&there);
	join(reader);
	join(writer);
	CHECK_EQ(pthread_rwlock_destroy(&rw), 0);
	rw = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}

int main(int argc, char **argv)
{
	pthread_t t;
	pid_t child;
	int status;

	check_begin(argv[0], 40);
	pthread_barrier_init(&there, NULL, 2);
	destroy_where_a_writer_waits();
	for (int initialiser = 0; initialiser < 2; initialiser++) {
		read_often();
		t = start(read_until_told, NULL);
		pthread_barrier_wait(&there);
		child = fork();
		if (!child) {
			alarm(20);
			if (initialiser)
				rw = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
			else
				CHECK_EQ(pthread_rwlock_init(&rw, NULL), 0);
			use_as_new();
			_exit(0);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
		pthread_barrier_wait(&there);
		join(t);
	}

	t = start(read_until_told, "ends as a reader");
	pthread_barrier_wait(&there);
	pthread_barrier_wait(&there);
	join(t);
	CHECK_EQ(pthread_rwlock_init(&rw, NULL), 0);
	use_as_new();

	for (int destroyed = 0; destroyed < 2; destroyed++) {
		CHECK_EQ(pthread_rwlock_init(&rw, NULL), 0);
		read_often();
		t = start(read_until_told, "ends as a reader");
		pthread_barrier_wait(&there);
		pthread_barrier_wait(&there);
		join(t);
		if (destroyed)
			CHECK_EQ(pthread_rwlock_destroy(&rw), 0);
		rw = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
		use_as_new();
	}
	return 0;
}
