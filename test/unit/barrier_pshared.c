/* SPDX-License-Identifier: MIT */
/* A process-shared barrier holds between processes. */
#include "../tools/check.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
	struct {
		pthread_barrier_t barrier;
		int round[2];
	} *o = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attr;
	pid_t child;
	int me;

	(void)argc;
	check_begin(argv[0], 30);
	CHECK(o != MAP_FAILED);
	CHECK_EQ(pthread_barrierattr_init(&attr), 0);
	CHECK_EQ(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_barrier_init(&o->barrier, &attr, 2), 0);
	child = check_fork();
	me = child == 0;
	for (int round = 1; round <= 500; round++) {
		int r;

		STORE(o->round[me], round);
		r = pthread_barrier_wait(&o->barrier);
		CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
		CHECK(LOAD(o->round[!me]) == round || LOAD(o->round[!me]) == round + 1);
	}
	if (!child)
		_exit(0);
	check_child(child);
	CHECK_EQ(pthread_barrier_destroy(&o->barrier), 0);
	return 0;
}
