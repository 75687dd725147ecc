/* SPDX-License-Identifier: MIT */
/*
 * What an emulated CPU's kernel lacks: prints the names, of test/cross/limits, of those things that
 * are seen not to work.  Nothing here is FlexGuard's, nor uses a lock of glibc but the robust one.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t robust;

static void *die_holding(void *arg)
{
	pthread_mutex_lock(&robust);
	return arg;
}

static int rseq(void)
{
	return __rseq_size > 0;
}

static int robust_lists(void)
{
	void *head;
	size_t size;

	return !syscall(SYS_get_robust_list, 0, &head, &size);
}

/* The next thread hears that the owner has died: by the kernel, or by glibc itself on some CPUs. */
static int robust_threads(void)
{
	pthread_mutexattr_t a;
	pthread_t t;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &a);
	pthread_create(&t, NULL, die_holding, NULL);
	pthread_join(t, NULL);
	return pthread_mutex_trylock(&robust) == EOWNERDEAD;
}

static int robust_shared(void)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	return !pthread_mutex_init(&robust, &a);
}

/* The kernel writes the owner as the CPU reads it. */
static int pi_owner(void)
{
	static uint32_t word;

	return !syscall(SYS_futex, &word, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL) &&
	       (word & FUTEX_TID_MASK) == (uint32_t)syscall(SYS_gettid);
}

/* A program that needs less may lock all its memory within the usual limit of 8 MB. */
static int memory_lock(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};
	struct rlimit limit = {8 << 20, 8 << 20};

	return !setrlimit(RLIMIT_MEMLOCK, &limit) && !syscall(SYS_capset, &header, none) &&
	       !mlockall(MCL_CURRENT | MCL_FUTURE);
}

/* The child has the memory of its parent, which waits. */
static int vfork_shares(void)
{
	volatile int seen = 0;
	pid_t child = vfork();

	if (!child) {
		seen = 1;
		_exit(0);
	}
	return child > 0 && waitpid(child, NULL, 0) == child && seen;
}

static void end_here(int sig)
{
	(void)sig;
	pthread_exit(NULL);
}

static void *pause_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

/* A thread ends in a signal handler: the frame of the signal is unwound. */
static int exit_in_handler(void)
{
	pthread_t t;

	alarm(5);
	signal(SIGUSR1, end_here);
	return !pthread_create(&t, NULL, pause_for_ever, NULL) && !pthread_kill(t, SIGUSR1) &&
	       !pthread_join(t, NULL);
}

/* Each in a process of its own: 0 where it works. */
static void probe(const char *name, int (*works)(void))
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(!works());
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		printf("%s\n", name);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	probe("rseq", rseq);
	probe("robust", robust_lists);
	probe("robust-threads", robust_threads);
	probe("robust-shared", robust_shared);
	probe("pi-owner", pi_owner);
	probe("memory-lock", memory_lock);
	probe("vfork", vfork_shares);
	probe("exit-in-handler", exit_in_handler);
	return 0;
}
