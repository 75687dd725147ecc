/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter that kills for every call but those that glibc's locks and threads need: all
 * objects, contended, by threads that take their first lock behind the filter; with a filter for
 * all threads that are at it already; behind exec; in a child of fork; and later, when the library
 * would look for a monitor.  Under every policy.
 */
#include "../tools/check.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <threads.h>

#define THREADS 6
#define ROUNDS	150

/* ---- the filter ---------------------------------------------------------------- */

static const int needed[] = {
    SYS_exit,
    SYS_exit_group,
    SYS_write,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    /* threads */
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_clone,
    SYS_clone3,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_getrandom,
    /* this program */
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_wait4,
};

/* What the dynamic linker and the start of the C library need beside these, and check_begin(). */
static const int for_exec[] = {
    SYS_execve,	    SYS_openat,		 SYS_read,	SYS_pread64, SYS_close,	   SYS_fstat,
    SYS_newfstatat, SYS_set_tid_address, SYS_prlimit64,
#ifdef __x86_64__
    SYS_access,	    SYS_arch_prctl,	 SYS_alarm,	SYS_getpid,  SYS_readlink,
#else
    SYS_faccessat,  SYS_setitimer,
#endif
};

/* The operations of glibc's private and shared waits. */
static const unsigned operations[] = {
    FUTEX_WAIT,
    FUTEX_WAKE,
    FUTEX_WAIT_BITSET,
    FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME,
};

#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define IF(k) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), 0, 1)
#define LOW(i)                                           \
	(offsetof(struct seccomp_data, args) + 8 * (i) + \
	 4 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))

static struct sock_filter code[128];
static unsigned short length;

static void add(struct sock_filter f)
{
	code[length++] = f;
}

static struct sock_fprog filter(int exec)
{
	size_t i;

	length = 0;
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					 offsetof(struct seccomp_data, nr)));
	for (i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		add((struct sock_filter)IF(needed[i]));
		add((struct sock_filter)ALLOW);
	}
	for (i = 0; exec && i < sizeof for_exec / sizeof for_exec[0]; i++) {
		add((struct sock_filter)IF(for_exec[i]));
		add((struct sock_filter)ALLOW);
	}
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 1, 0));
	add((struct sock_filter)KILL);
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(1)));
	add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(unsigned)FUTEX_PRIVATE_FLAG));
	for (i = 0; i < 2; i++) {
		add((struct sock_filter)IF(operations[i]));
		add((struct sock_filter)ALLOW);
	}
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, operations[2], 2, 0));
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, operations[3], 1, 0));
	add((struct sock_filter)KILL);
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(5)));
	add((struct sock_filter)IF(FUTEX_BITSET_MATCH_ANY));
	add((struct sock_filter)ALLOW);
	add((struct sock_filter)KILL);
	return (struct sock_fprog){length, code};
}

enum how { BY_PRCTL, BY_SYSCALL, BY_SYSCALL_PRCTL, FOR_ALL };

static void lock_in(enum how how, int exec)
{
	struct sock_fprog p = filter(exec);

	errno = 4711;
	/* a mode that does not exist, and no filter */
	CHECK_EQ(prctl(PR_SET_SECCOMP, 3, 0, 0, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	switch (how) {
	case BY_PRCTL: CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p), 0); break;
	case BY_SYSCALL: CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p), 0); break;
	case BY_SYSCALL_PRCTL:
		CHECK_EQ(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p), 0);
		break;
	case FOR_ALL:
		CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
				 &p),
			 0);
		break;
	}
}

/* ---- the work ------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive, errorcheck, shared, robust;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once;
static sem_t sem;
static long sum, spun, written;
static int stop;

static void work(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

static void at_once(void)
{
	sleep_us(2000);
}

static void section(pthread_mutex_t *m, int n)
{
	lock(m);
	work(n);
	unlock(m);
}

/* Far enough that no clock is asked: the program does not ask one either. */
static const struct timespec soon = {.tv_nsec = 1000000}, far = {.tv_sec = INT32_MAX};

static void turn(int i)
{
	/* Some hold it for so long that the others sleep. */
	lock(&mutex);
	work(i % 16 ? 300 : 100000);
	sum++;
	if (i % 8 == 1)
		pthread_cond_timedwait(&cond, &mutex, &soon);
	unlock(&mutex);
	pthread_cond_broadcast(&cond);
	pthread_spin_lock(&spin);
	spun++;
	if (i % 32 == 0)
		work(200000);
	pthread_spin_unlock(&spin);
	section(&recursive, 100);
	section(&errorcheck, 100);
	section(&shared, 2000);
	section(&robust, 100);
	CHECK_EQ(pthread_mutex_timedlock(&mutex, &far), 0);
	unlock(&mutex);
	if (i % 8 == 0) {
		CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
		work(i % 32 ? 100 : 50000);
		written++;
	} else {
		CHECK_EQ(pthread_rwlock_timedrdlock(&rwlock, &far), 0);
		work(100);
	}
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	sem_post(&sem);
	CHECK_EQ(i % 2 ? sem_wait(&sem) : sem_timedwait(&sem, &far), 0);
}

static void *worker(void *arg)
{
	CHECK_EQ(pthread_once(&once, at_once), 0);
	for (int i = 0; i < ROUNDS; i++) {
		turn(i + (int)(intptr_t)arg);
		if (i % 16 == 0)
			pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void *waiter(void *arg)
{
	lock(&mutex);
	while (!stop)
		CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
	unlock(&mutex);
	return arg;
}

static void *endless(void *arg)
{
	int i = (int)(intptr_t)arg;

	while (!LOAD(stop))
		turn(i++);
	return NULL;
}

static void begin(pthread_t *t, void *(*f)(void *))
{
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start(f, (void *)i);
}

static void end(pthread_t *t)
{
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
}

static void all_objects(void)
{
	pthread_t t[THREADS], w;

	sum = spun = 0;
	stop = 0;
	w = start(waiter, NULL);
	begin(t, worker);
	end(t);
	lock(&mutex);
	stop = 1;
	pthread_cond_signal(&cond);
	unlock(&mutex);
	pthread_cond_broadcast(&cond);
	join(w);
	CHECK_EQ(sum, THREADS * ROUNDS);
	CHECK_EQ(spun, THREADS * ROUNDS);
}

static void prepare(void)
{
	pthread_mutexattr_t a;

	mutex_of_type(&recursive, PTHREAD_MUTEX_RECURSIVE);
	mutex_of_type(&errorcheck, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_mutex_init(&shared, &a), 0);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	CHECK_EQ(pthread_mutex_init(&robust, &a), 0);
	pthread_spin_init(&spin, 0);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
}

/* ---- the cases ------------------------------------------------------------------ */

static void cold(enum how how)
{
	lock_in(how, 0);
	all_objects();
}

static void for_all(void)
{
	pthread_t t[THREADS];

	begin(t, endless);
	sleep_us(5000);
	lock_in(FOR_ALL, 0);
	sleep_us(20000);
	STORE(stop, 1);
	end(t);
	all_objects();
}

static void forked(void)
{
	pid_t pid;

	all_objects();
	lock_in(BY_PRCTL, 0);
	lock(&mutex);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		unlock(&mutex);
		all_objects();
		_exit(0);
	}
	unlock(&mutex);
	check_child(pid);
	all_objects();
}

/* A clock that user space cannot read, as far as the library can tell: its file is empty. */
static int hide_clocksource(void)
{
	return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("/dev/null",
		     "/sys/devices/system/clocksource/clocksource0/current_clocksource", NULL,
		     MS_BIND, NULL);
}

static const char *const cases[] = {
    "prctl", "syscall", "syscall of prctl", "for all", "coarse clock", "exec", "fork", NULL};

static int run_case(char **argv, const char *name)
{
	check_begin(argv[0], 30);
	prepare();
	if (!strcmp(name, "prctl"))
		cold(BY_PRCTL);
	else if (!strcmp(name, "syscall"))
		cold(BY_SYSCALL);
	else if (!strcmp(name, "syscall of prctl"))
		cold(BY_SYSCALL_PRCTL);
	else if (!strcmp(name, "for all"))
		for_all();
	else if (!strcmp(name, "coarse clock") && !hide_clocksource())
		for_all();
	else if (!strcmp(name, "fork"))
		forked();
	else if (!strcmp(name, "late")) {
		lock_in(BY_PRCTL, 0);
		sleep_us(1200000); /* a monitor is looked for once in a second */
		all_objects();
	} else if (!strcmp(name, "exec")) {
		char *again[] = {argv[0], "none", NULL};

		lock_in(BY_PRCTL, 1);
		execv(argv[0], again);
		return CHECK_SETUP;
	} else {
		all_objects();
	}
	return 0;
}

/* In a process of its own; policy NULL: as the environment says. */
static pid_t begin_case(char **argv, const char *name, const char *policy)
{
	char *again[] = {argv[0], (char *)name, NULL};
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		if (policy)
			setenv("FLEXGUARD_POLICY", policy, 1);
		execv(argv[0], again);
		_exit(CHECK_SETUP);
	}
	return pid;
}

static void end_case(pid_t pid, const char *name, const char *policy)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		check_say("%s, policy %s: status %#x", name, policy ? policy : "(own)", status);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	static const char *const policies[] = {"default", "paper", "fallback",
					       "spin",	  "block", "spin-then-park"};
	int own = check_has_policy() || !getenv("CHECK_PRELOAD");
	const char *first = own ? NULL : policies[0];
	pid_t late;

	if (argc > 1)
		return run_case(argv, argv[1]);
	check_begin(argv[0], 100);
	if (prctl(PR_GET_SECCOMP) < 0)
		check_skip("no seccomp here");
	late = begin_case(argv, "late", first); /* it sleeps first */
	for (int p = 0; p < (own ? 1 : 6); p++)
		for (int c = 0; cases[c]; c++) {
			const char *policy = own ? NULL : policies[p];

			/* Spinning threads, more than CPUs: slow. */
			if (!strcmp(policies[p], "spin") && c > 0)
				continue;
			end_case(begin_case(argv, cases[c], policy), cases[c], policy);
		}
	end_case(late, "late", first);
	return 0;
}
