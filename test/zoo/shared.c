/* SPDX-License-Identifier: MIT */
/*
 * A process-shared mutex in a file that two processes map at different addresses, one of them
 * twice. Sums that are not atomic are guarded by it.  It outlives the process that used it first.
 */
#include "shared.h"

#define ROUNDS 30000

struct page {
	pthread_mutex_t m;
	pthread_mutex_t outlives;
	long sum, again;
};

static void work(struct page *a, struct page *b)
{
	int rounds = check_rounds(ROUNDS);

	for (int i = 0; i < rounds; i++) {
		/* Locked at one address, unlocked at the other. */
		CHECK_EQ(pthread_mutex_lock(&a->m), 0);
		*(volatile long *)&b->sum += 1;
		*(volatile long *)&a->again += 1;
		CHECK_EQ(b->sum, a->again);
		CHECK_EQ(pthread_mutex_unlock(&b->m), 0);
	}
}

static void lock_and_unlock(pthread_mutex_t *m)
{
	CHECK_EQ(pthread_mutex_lock(m), 0);
	CHECK_EQ(pthread_mutex_unlock(m), 0);
}

/* A process that gives up root, if it has it, goes on. */
static void as_nobody(pthread_mutex_t *m)
{
	lock_and_unlock(m);
	if (geteuid() == 0)
		CHECK_EQ(seteuid(65534), 0);
	lock_and_unlock(m);
}

/* Another process, which ends in order. */
static void in_child(void (*what)(pthread_mutex_t *), pthread_mutex_t *m)
{
	int status;
	pid_t child = fork();

	if (!child) {
		what(m);
		exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	int fd = memfd_create("shared", 0);
	pthread_mutexattr_t attr;
	struct page *p;

	check_begin(argv[0], 60);
	CHECK_EQ(ftruncate(fd, 4096), 0);
	p = map(fd, NULL);
	CHECK_EQ(pthread_mutexattr_init(&attr), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutex_init(&p->m, &attr), 0);
	CHECK_EQ(pthread_mutex_init(&p->outlives, &attr), 0);
	in_child(lock_and_unlock, &p->outlives);
	in_child(lock_and_unlock, &p->outlives);
	in_child(as_nobody, &p->outlives);
	lock_and_unlock(&p->outlives);
	CHECK_EQ(pthread_mutex_destroy(&p->outlives), 0);

	in_both(fd, p, work);
	CHECK_EQ(p->sum, 2 * check_rounds(ROUNDS));
	CHECK_EQ(pthread_mutex_trylock(&p->m), 0);
	CHECK_EQ(pthread_mutex_unlock(&p->m), 0);
	CHECK_EQ(pthread_mutex_destroy(&p->m), 0);
	return 0;
}
