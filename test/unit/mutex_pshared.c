/* SPDX-License-Identifier: MIT */
/* A process-shared mutex excludes the threads of two processes, mapped at two addresses. */
#include "../tools/check.h"
#include <sys/mman.h>

enum { ROUNDS = 20000 };

struct shared {
	pthread_mutex_t m;
	long count;
};

static void *work(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < ROUNDS; i++) {
		lock(&s->m);
		*(volatile long *)&s->count += 1;
		unlock(&s->m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = memfd_create("shared", 0);
	struct shared *s[2];
	pthread_t t[2];
	pid_t pid;

	check_begin(argv[0], 30);
	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, 4096), 0);
	for (int i = 0; i < 2; i++)
		CHECK((s[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) !=
		      MAP_FAILED);
	mutex_pshared(&s[0]->m);
	lock(&s[0]->m);
	pid = check_fork();
	if (!pid) {
		CHECK_EQ(pthread_mutex_trylock(&s[1]->m), EBUSY);
		s[0]->count = -1;
		work(s[1]); /* waits for the parent first */
		_exit(0);
	}
	UNTIL(LOAD(s[0]->count) == -1);
	s[0]->count = 0;
	unlock(&s[1]->m);
	for (int i = 0; i < 2; i++)
		t[i] = start(work, s[i]);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	check_child(pid);
	CHECK_EQ(s[0]->count, 3 * ROUNDS);
	return 0;
}
