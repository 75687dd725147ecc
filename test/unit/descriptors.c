/* SPDX-License-Identifier: MIT */
/*
 * A program finds the descriptors that it expects: 3 is free at the start, all may be closed, none
 * may be had.
 */
#include "../tools/check.h"
#include <fcntl.h>
#include <sys/resource.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long count;

static void *work(void *arg)
{
	for (int i = 0; i < 3000; i++) {
		lock(&m);
		*(volatile long *)&count += 1;
		unlock(&m);
	}
	return NULL;
}

static void use(void)
{
	pthread_t t[3];

	count = 0;
	for (int i = 0; i < 3; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	CHECK_EQ(count, 9000);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	/* from a clean start, without and with room for more than the loader needs */
	if (argc == 1) {
		for (int i = 0; i < 2; i++) {
			pid_t pid = check_fork();

			if (!pid) {
				struct rlimit few = {4, 4};

				CHECK_EQ(syscall(SYS_close_range, 3u, ~0u, 0u), 0);
				if (i)
					CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
				execl("/proc/self/exe", argv[0], "child", (char *)NULL);
				_exit(1);
			}
			check_child(pid);
		}
		return 0;
	}
	CHECK_EQ(open("/dev/null", O_RDONLY), 3);
	use();
	CHECK_EQ(syscall(SYS_close_range, 3u, ~0u, 0u), 0);
	use();
	close(0);
	close(1);
	CHECK_EQ(open("/dev/null", O_RDONLY), 0);
	use();
	return 0;
}
