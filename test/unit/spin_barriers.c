/* SPDX-License-Identifier: MIT */
/*
 * A barrier on all CPUs (membarrier(2)) is for the first that sleeps for a spinlock; those that
 * come while somebody sleeps for it need none of their own.
 */
#include "../tools/check.h"

#ifdef __x86_64__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "abi/stats.h"
#include "lock/spin.h"
#include "lock/gate.h"
#include "runtime/count.h"
#include "runtime/policy.h"

enum { THREADS = 8, SLEEPS = 200 };

static int32_t lock_ = FG_SPIN_FREE;
static struct fg_stats stats;
static long barriers;

/* In the place of membarrier: sleeps have time limits. */
static void on_membarrier(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	__atomic_fetch_add(&barriers, 1, __ATOMIC_RELAXED);
	uc->uc_mcontext.gregs[REG_RAX] = 0;
}

static void count_membarrier(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof code[0], code};
	struct sigaction sa = {.sa_sigaction = on_membarrier, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &sa, NULL);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		check_skip("no seccomp filters");
}

static long sleeps(void)
{
	uint64_t n = 0;

	for (int i = 0; i < FG_STATS_SHARDS; i++)
		n += LOAD(stats.shard[i].v[FG_STAT_PARKS]);
	return (long)n;
}

static void *wait_for_it(void *arg)
{
	_fg_spin_lock(&lock_, NULL);
	_fg_spin_unlock(&lock_);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	long slept, passed;

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_BLOCK);
	/* another lock's: all wait by the lock itself */
	_fg_gate(&lock_)->tag = ~_fg_gate_tag(&lock_);
	_fg_lock(_fg_gate(&lock_));
	fg_stats = &stats;
	_fg_spin_lock(&lock_, NULL);
	count_membarrier();
	for (int i = 0; i < THREADS; i++)
		t[i] = start(wait_for_it, NULL);
	while (sleeps() < SLEEPS)
		sleep_us(1000);
	passed = LOAD(barriers);
	slept = sleeps();
	_fg_spin_unlock(&lock_);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	printf("%ld barriers for %ld sleeps\n", passed, slept);
	CHECK(passed > 0 && passed <= slept / 4);
	return 0;
}
#else
int main(void)
{
	check_skip("counts system calls on x86-64");
}
#endif
