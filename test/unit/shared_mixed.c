/* SPDX-License-Identifier: MIT */
/*
 * A process-shared spinlock, semaphore, mutex, condition variable, reader-writer
 * lock and barrier, used at different addresses by a process that runs on FlexGuard and one that
 * does not.
 */
#include "../tools/check.h"

#include <semaphore.h>
#include <spawn.h>
#include <sys/mman.h>

enum { ROUNDS = 20000, TURNS = 500 };

struct shared {
	pthread_spinlock_t spin;
	sem_t mine, yours;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_rwlock_t rwlock;
	pthread_barrier_t barrier;
	volatile long by_spin, by_mutex, by_rwlock;
	int turn;
};

extern char **environ;

static struct shared *map(int fd)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(s != MAP_FAILED);
	return s;
}

static void take_turns(struct shared *s, int me)
{
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(pthread_mutex_lock(&s->mutex), 0);
		while (s->turn != me)
			CHECK_EQ(pthread_cond_wait(&s->cond, &s->mutex), 0);
		s->turn = !me;
		CHECK_EQ(pthread_cond_signal(&s->cond), 0);
		CHECK_EQ(pthread_mutex_unlock(&s->mutex), 0);
	}
}

static void use(struct shared *s, int me)
{
	int r = pthread_barrier_wait(&s->barrier);

	CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_spin_lock(&s->spin), 0);
		s->by_spin++;
		CHECK_EQ(pthread_spin_unlock(&s->spin), 0);
		CHECK_EQ(pthread_mutex_lock(&s->mutex), 0);
		s->by_mutex++;
		CHECK_EQ(pthread_mutex_unlock(&s->mutex), 0);
		CHECK_EQ(pthread_rwlock_wrlock(&s->rwlock), 0);
		s->by_rwlock++;
		CHECK_EQ(pthread_rwlock_unlock(&s->rwlock), 0);
	}
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(sem_wait(me ? &s->yours : &s->mine), 0);
		CHECK_EQ(sem_post(me ? &s->mine : &s->yours), 0);
	}
	take_turns(s, me);
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	pthread_rwlockattr_t rwlock;
	pthread_barrierattr_t barrier;
	pthread_mutexattr_t mutex;
	pthread_condattr_t cond;
	char *args[] = {argv[0], (char *)"peer", NULL}, *env[] = {NULL};
	struct shared *s;
	pid_t child;
	int fd;

	check_begin(argv[0], 60);
	if (argc > 1) {
		mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		use(map(99), 1);
		return 0;
	}
	fd = memfd_create("shared", 0);
	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, sizeof(*s)), 0);
	s = map(fd);
	pthread_mutexattr_init(&mutex);
	pthread_condattr_init(&cond);
	pthread_rwlockattr_init(&rwlock);
	pthread_barrierattr_init(&barrier);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
	pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
	pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_spin_init(&s->spin, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(sem_init(&s->mine, 1, 1), 0);
	CHECK_EQ(sem_init(&s->yours, 1, 0), 0);
	CHECK_EQ(pthread_mutex_init(&s->mutex, &mutex), 0);
	CHECK_EQ(pthread_cond_init(&s->cond, &cond), 0);
	CHECK_EQ(pthread_rwlock_init(&s->rwlock, &rwlock), 0);
	CHECK_EQ(pthread_barrier_init(&s->barrier, &barrier, 2), 0);

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, 99);
	CHECK_EQ(posix_spawn(&child, "/proc/self/exe", &actions, NULL, args, env), 0);
	use(s, 0);
	check_child(child);
	CHECK_EQ(s->by_spin, 2 * ROUNDS);
	CHECK_EQ(s->by_mutex, 2 * ROUNDS);
	CHECK_EQ(s->by_rwlock, 2 * ROUNDS);
	return 0;
}
