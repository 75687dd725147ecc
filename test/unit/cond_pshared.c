/* SPDX-License-Identifier: MIT */
/* A process-shared condition variable and mutex between two processes: a queue of one place. */
#include "../tools/check.h"
#include <sys/mman.h>

enum { ITEMS = 3000 };

struct shared {
	pthread_mutex_t m;
	pthread_cond_t full, empty;
	int there, value;
};

int main(int argc, char **argv)
{
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				-1, 0);
	pid_t pid;

	check_begin(argv[0], 20);
	CHECK(s != MAP_FAILED);
	mutex_pshared(&s->m);
	cond_pshared(&s->full);
	cond_pshared(&s->empty);
	pid = check_fork();
	for (int i = 0; i < ITEMS; i++) {
		struct timespec ts = in_us(CLOCK_REALTIME, 60000000);

		lock(&s->m);
		if (!pid) {
			while (s->there)
				CHECK_EQ(pthread_cond_wait(&s->empty, &s->m), 0);
			s->there = 1;
			s->value = i;
			CHECK_EQ(pthread_cond_signal(&s->full), 0);
		} else {
			while (!s->there)
				CHECK_EQ(pthread_cond_timedwait(&s->full, &s->m, &ts), 0);
			CHECK_EQ(s->value, i);
			s->there = 0;
			CHECK_EQ(pthread_cond_broadcast(&s->empty), 0);
		}
		unlock(&s->m);
	}
	if (!pid)
		_exit(0);
	check_child(pid);
	CHECK_EQ(pthread_cond_destroy(&s->full), 0);
	return 0;
}
