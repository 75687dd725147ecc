/* SPDX-License-Identifier: MIT */
/* A robust shared mutex whose owning process is killed. */
#include "../tools/check.h"
#include <sys/mman.h>

int main(int argc, char **argv)
{
	struct shared {
		pthread_mutex_t m;
		int held;
	} *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;
	pid_t pid;

	check_begin(argv[0], 20);
	CHECK(s != MAP_FAILED);
	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutex_init(&s->m, &a), 0);
	for (int i = 0; i < 10; i++) {
		s->held = 0;
		pid = check_fork();
		if (!pid) {
			lock(&s->m);
			STORE(s->held, 1);
			if (i & 1)
				_exit(0);
			pause();
		}
		UNTIL(LOAD(s->held));
		if (!(i & 1))
			kill(pid, SIGKILL);
		CHECK_EQ(pthread_mutex_lock(&s->m), EOWNERDEAD);
		CHECK_EQ(pthread_mutex_consistent(&s->m), 0);
		unlock(&s->m);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
	}
	CHECK_EQ(pthread_mutex_destroy(&s->m), 0);
	return 0;
}
