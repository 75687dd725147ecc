/* SPDX-License-Identifier: MIT */
/*
 * An owner that dies with the lock, for locks that recover from it: a thread that ends, and a
 * process that is killed with a process-shared one.  Plain mutexes; the program does not know that
 * they recover.
 */
#include "../tools/check.h"
#include <sys/mman.h>
#include <sys/wait.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *die_with_it(void *arg)
{
	lock(arg);
	return NULL;
}

static void *take_it(void *arg)
{
	lock(arg);
	unlock(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutex_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;
	pid_t child;
	int status;

	check_begin(argv[0], 30);
	for (int i = 0; i < 20; i++) {
		pthread_t t[3];

		join(start(die_with_it, &m));
		for (int k = 0; k < 3; k++)
			t[k] = start(take_it, &m);
		for (int k = 0; k < 3; k++)
			join(t[k]);
		lock(&m);
		CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
		unlock(&m);
	}
	CHECK(shared != MAP_FAILED);
	CHECK_EQ(pthread_mutexattr_init(&attr), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutex_init(shared, &attr), 0);
	for (int i = 0; i < 20; i++) {
		child = fork();
		if (!child) {
			lock(shared);
			raise(SIGKILL);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(WTERMSIG(status), SIGKILL);
		lock(shared);
		unlock(shared);
	}
	return 0;
}
