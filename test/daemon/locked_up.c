/* SPDX-License-Identifier: MIT */
/*
 * A program that locks itself up after its start: from then on the kernel kills it for a socket.
 * Threads contend for MILLISECONDS, before and after.  Usage: locked-up MILLISECONDS [THREADS]
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int stop;

static void *work(void *arg)
{
	volatile unsigned long n = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&mutex);
		for (int i = 0; i < 20; i++)
			n = n + 1;
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(filter) / sizeof(filter[0]), filter};
	int ms = argc > 1 ? atoi(argv[1]) : 1000;
	int n = argc > 2 ? atoi(argv[2]) : 4;
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	pthread_t t[MOST];
	pthread_attr_t small;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
		puts("no seccomp here");
		return 77;
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < n && i < MOST; i++)
		if (pthread_create(&t[i], &small, work, NULL))
			abort();
	puts("ready");
	fflush(stdout);
	nanosleep(&ts, NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < n && i < MOST; i++)
		pthread_join(t[i], NULL);
	puts("done");
	return 0;
}
