/* SPDX-License-Identifier: MIT */
/*
 * A program that locks all its memory, present and future, may do so within 8 MB, the usual limit:
 * what a library reserves counts as well.  Threads that come afterwards contend as ever.
 */
#include "../tools/check.h"
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { THREADS = 16, ROUNDS = 500, STACK = 64 * 1024 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long count;

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&m);
		*(volatile long *)&count += 1;
		unlock(&m);
	}
	return NULL;
}

/* The limit is not for those with CAP_IPC_LOCK. */
static void give_up_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2];

	memset(none, 0, sizeof none);
	CHECK_EQ(syscall(SYS_capset, &header, none), 0);
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	pthread_t t[THREADS];
	pthread_attr_t a;

	check_begin(argv[0], 20);
	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (limit.rlim_max < 8 << 20)
		check_skip("only %lu bytes may be locked here", (unsigned long)limit.rlim_max);
	limit.rlim_cur = limit.rlim_max = 8 << 20;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	give_up_capabilities();
	lock(&m);
	unlock(&m);
	CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, STACK), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], &a, work, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(count, THREADS * ROUNDS);
	return 0;
}
