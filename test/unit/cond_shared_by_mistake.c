/* SPDX-License-Identifier: MIT */
/*
 * A condition variable in shared memory that is not process-shared.  What
 * signals of the wrong process do is open, but the process that waits on it must not
 * suffer: its own signal still arrives, and the wrong process does not hang.
 */
#include "../tools/check.h"

#include <sys/mman.h>

struct shared {
	pthread_cond_t cond;
	pthread_mutex_t mutex; /* process-shared */
	int waiting, go;       /* guarded by mutex */
};

static void *wait_for_go(void *arg)
{
	struct shared *s = arg;

	lock(&s->mutex);
	s->waiting++;
	while (!s->go)
		CHECK_EQ(pthread_cond_wait(&s->cond, &s->mutex), 0);
	unlock(&s->mutex);
	return NULL;
}

static void child_of(struct shared *s)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		t[i] = start(wait_for_go, s);
	for (int ready = 0; !ready; sleep_us(1000)) {
		lock(&s->mutex);
		ready = s->go;
		unlock(&s->mutex);
	}
	CHECK_EQ(pthread_cond_signal(&s->cond), 0);
	CHECK_EQ(pthread_cond_broadcast(&s->cond), 0);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				0);
	struct timespec soon;
	pid_t child;

	(void)argc;
	check_begin(argv[0], 30);
	CHECK(s != MAP_FAILED);
	if (!getenv("CHECK_PRELOAD"))
		check_skip("glibc itself may hang here");
	mutex_pshared(&s->mutex);
	CHECK_EQ(pthread_cond_init(&s->cond, NULL), 0);
	child = check_fork();
	if (!child)
		child_of(s);
	for (int ready = 0; !ready; sleep_us(1000)) {
		lock(&s->mutex);
		ready = s->waiting == 2;
		unlock(&s->mutex);
	}
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(pthread_cond_signal(&s->cond), 0);
		CHECK_EQ(pthread_cond_broadcast(&s->cond), 0);
	}
	lock(&s->mutex);
	soon = in_us(CLOCK_REALTIME, 5000);
	/* Spurious or timed out. */
	while (pthread_cond_timedwait(&s->cond, &s->mutex, &soon) == 0)
		;
	s->go = 1;
	unlock(&s->mutex);
	check_child(child);
	return 0;
}
