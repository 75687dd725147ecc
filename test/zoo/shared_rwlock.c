/* SPDX-License-Identifier: MIT */
/*
 * A process-shared reader-writer lock in a file that two processes map at different addresses: it
 * is the zoo's and not glibc's, it excludes, and a sleeper of one process is woken by the other.
 */
#include "shared.h"

#define ROUNDS 10000

struct page {
	pthread_rwlock_t rw;
	int held, waits;
	long sum, again;
};

/* Locked at one address, unlocked at the other. */
static void work(struct page *p, struct page *q)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 3) {
			CHECK_EQ(pthread_rwlock_rdlock(&p->rw), 0);
			CHECK_EQ(*(volatile long *)&p->sum, *(volatile long *)&p->again);
		} else {
			CHECK_EQ(pthread_rwlock_wrlock(&p->rw), 0);
			*(volatile long *)&p->sum += 1;
			*(volatile long *)&p->again += 1;
		}
		CHECK_EQ(pthread_rwlock_unlock(&q->rw), 0);
	}
}

static char state_of(pid_t pid)
{
	char path[64], line[512] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	CHECK(f && fgets(line, sizeof(line), f));
	fclose(f);
	return strrchr(line, ')')[2];
}

/* Holds it until the parent sleeps for it. */
static void hold(struct page *p, int (*take)(pthread_rwlock_t *))
{
	CHECK_EQ(take(&p->rw), 0);
	__atomic_store_n(&p->held, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&p->waits, __ATOMIC_SEQ_CST) || state_of(getppid()) != 'S')
		usleep(1000);
	CHECK_EQ(pthread_rwlock_unlock(&p->rw), 0);
}

static void is_woken(int fd, struct page *p, int (*childs)(pthread_rwlock_t *),
		     int (*mine)(pthread_rwlock_t *))
{
	int status;
	pid_t child;

	p->held = p->waits = 0;
	child = fork();
	if (!child) {
		hold(map(fd, p), childs);
		_exit(0);
	}
	/* awake: only waiters for the lock sleep */
	while (!__atomic_load_n(&p->held, __ATOMIC_SEQ_CST))
		sched_yield();
	__atomic_store_n(&p->waits, 1, __ATOMIC_SEQ_CST);
	CHECK_EQ(mine(&p->rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&p->rw), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	int fd = memfd_create("shared", 0);
	pthread_rwlockattr_t attr;
	struct page *p;

	check_begin(argv[0], 60);
	CHECK_EQ(ftruncate(fd, 4096), 0);
	p = map(fd, NULL);
	CHECK_EQ(pthread_rwlockattr_init(&attr), 0);
	CHECK_EQ(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_rwlock_init(&p->rw, &attr), 0);
	CHECK_EQ(p->rw.__data.__shared, 0); /* which glibc would set */

	is_woken(fd, p, pthread_rwlock_wrlock, pthread_rwlock_rdlock);
	is_woken(fd, p, pthread_rwlock_wrlock, pthread_rwlock_wrlock);
	is_woken(fd, p, pthread_rwlock_rdlock, pthread_rwlock_wrlock);

	in_both(fd, p, work);
	CHECK_EQ(p->sum, 2 * ((ROUNDS + 2) / 3));
	CHECK_EQ(pthread_rwlock_trywrlock(&p->rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&p->rw), 0);
	CHECK_EQ(pthread_rwlock_destroy(&p->rw), 0);
	return 0;
}
