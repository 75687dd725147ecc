// SPDX-License-Identifier: MIT
/*
 * Case 18: nothing that the monitor opens reaches a program that its process
 * starts, or a "detached" monitor would live on in there.
 */
#include <dirent.h>
#include <sys/syscall.h>
#include "harness.h"

static int list(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int extra = 0;

	CHECK(d);
	while ((e = readdir(d))) {
		char target[128] = "";

		if (atoi(e->d_name) <= 2 || atoi(e->d_name) == dirfd(d))
			continue;
		if (readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1) < 0 || !target[0])
			continue;
		if (strstr(target, "bpf") || strstr(target, "btf") || strstr(target, "socket:") ||
		    strstr(target, "eventpoll") || strstr(target, "pidfd") ||
		    strstr(target, "timerfd")) {
			fprintf(stderr, "inherited: %s\n", target);
			extra++;
		}
	}
	return extra ? 1 : 0;
}

static void *serve(void *arg)
{
	void **args = arg;

	return (void *)(intptr_t)fg_monitor_serve(args[0], *(int *)args[1], FG_NO_LOCK,
						  *(int *)args[2]);
}

static void run(void *arg)
{
	execl("/proc/self/exe", "cloexec", "list", NULL);
}

int main(int argc, char **argv)
{
	char name[64];
	struct fg_monitor *m;
	struct client c;
	pthread_t thread;
	int stop[2], fd;
	void *args[3], *err;

	test_begin();
	if (argc > 1)
		return list();
	/* What the test runner left open is not the monitor's. */
	syscall(SYS_close_range, 3, ~0u, 0);
	m = monitor_open_or_skip(NULL);
	snprintf(name, sizeof(name), "@flexguard-test-%d", getpid());
	fd = fg_monitor_listen(name, 0666);
	CHECK(fd >= 0 && !pipe(stop));
	args[0] = m;
	args[1] = &fd;
	args[2] = &stop[0];
	CHECK(!pthread_create(&thread, NULL, serve, args));
	client_join(&c, name, 8);
	reap(spawn(run, NULL));
	close(stop[1]);
	CHECK(!pthread_join(thread, &err) && !err);
	reap(spawn(run, NULL));
	fg_monitor_close(m);
	return 0;
}
