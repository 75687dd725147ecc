/* SPDX-License-Identifier: MIT */
/*
 * A program without the CPU's cycle counter, which the kernel takes from one that asks for that,
 * and with seccomp's strict mode: whoever reads it gets a SIGSEGV, also in the vDSO's clock.
 * glibc's locks read no clock, unless they are told a time and have to wait.
 */
#include "../tools/check.h"

#include <linux/seccomp.h>
#include <semaphore.h>
#include <sys/prctl.h>

#define THREADS 4
#define ROUNDS	400

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER,
		       recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t sem;
static long sum, written;

/* What is free, so that there is no call: the strict mode lets none pass. */
static void take_all(void)
{
	lock(&mutex);
	sum++;
	unlock(&mutex);
	lock(&recursive);
	lock(&recursive);
	unlock(&recursive);
	unlock(&recursive);
	/* a reader, and the writer after it, which looks for visible ones */
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_rwlock_rdlock(&rwlock), 0);
		CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
		CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
		written++;
		CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	}
	CHECK_EQ(pthread_spin_lock(&spin), 0);
	CHECK_EQ(pthread_spin_unlock(&spin), 0);
	CHECK_EQ(sem_wait(&sem), 0);
	CHECK_EQ(sem_post(&sem), 0);
	CHECK_EQ(pthread_cond_signal(&cond), 0);
}

enum how { BY_PRCTL, BY_SYSCALL, BY_SYSCALL_PRCTL, HOWS };

static void in_strict_mode(enum how how)
{
	static const struct timespec past;
	pid_t pid = fork();
	int status = 0;

	CHECK(pid >= 0);
	if (pid) {
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIP)
			check_skip("no strict mode here");
		/* A failed check cannot leave by exit_group(2), and is killed. */
		CHECK_EQ(status, 0);
		return;
	}
	/* A mode that does not exist takes nothing away. */
	CHECK_EQ(prctl(PR_SET_SECCOMP, 3, 0, 0, 0), -1);
	if ((how == BY_PRCTL   ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) :
	     how == BY_SYSCALL ? syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) :
				 syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) < 0)
		_exit(CHECK_SKIP);
	take_all();
	CHECK_EQ(pthread_mutex_timedlock(&mutex, &past), 0);
	CHECK_EQ(pthread_rwlock_tryrdlock(&rwlock), 0);
	syscall(SYS_exit, 0);
}

static void *worker(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		take_all();
		lock(&mutex);
		for (volatile int n = 0; n < 1000; n++)
			;
		unlock(&mutex);
	}
	return arg;
}

/* There are calls here, and waits. */
static void asked_for(enum how how)
{
	pthread_t t[THREADS];
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid) {
		check_child(pid);
		return;
	}
	sum = written = 0;
	if (how == BY_PRCTL ? prctl(PR_SET_TSC, PR_TSC_SIGSEGV) :
			      syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV))
		_exit(0); /* another CPU than x86 */
	for (int i = 0; i < THREADS; i++)
		t[i] = start(worker, NULL);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(sum, THREADS * ROUNDS);
	CHECK_EQ(written, 3 * THREADS * ROUNDS);
	_exit(0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	CHECK_EQ(sem_init(&sem, 0, 1), 0);
	CHECK_EQ(pthread_spin_init(&spin, 0), 0);
	for (int how = 0; how < HOWS; how++)
		in_strict_mode(how);
	asked_for(BY_PRCTL);
	asked_for(BY_SYSCALL_PRCTL);
	return 0;
}
