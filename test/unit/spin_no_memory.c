/* SPDX-License-Identifier: MIT */
/*
 * Spinlocks work where no memory can be had for tables of threads, and where the owner is a
 * thread of another process, of which nothing is known here.
 */
#include "../tools/check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { THREADS = 4, ROUNDS = 2000 };

static pthread_spinlock_t lock_;
static volatile long sum;

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_spin_lock(&lock_), 0);
		sum++;
		if (i % 256 == 0)
			sched_yield();
		CHECK_EQ(pthread_spin_unlock(&lock_), 0);
	}
	return arg;
}

static void *once(void *arg)
{
	CHECK_EQ(pthread_spin_lock(&lock_), 0);
	CHECK_EQ(pthread_spin_unlock(&lock_), 0);
	return arg;
}

/* No mapping that reserves address space. */
static void no_reservations(void)
{
	struct sock_filter f[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3]) +
						   4 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_NORESERVE, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof f / sizeof *f, f};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		check_skip("no seccomp filters here");
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	check_begin(argv[0], 60);
	if (argc < 2) {
		char *again[] = {argv[0], "again", NULL};

		no_reservations();
		execv("/proc/self/exe", again);
		CHECK(!"exec");
	}
	CHECK_EQ(pthread_spin_init(&lock_, PTHREAD_PROCESS_SHARED), 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(sum, (long)THREADS * ROUNDS);
	/* All negative values are held; some of the bits may say by whom. */
	for (uint32_t bits = 0; bits < 64; bits++) {
		STORE(*(int32_t *)&lock_, (int32_t)(0x80000000u | bits * 0x01fff000u));
		t[0] = start(once, NULL);
		sleep_us(200);
		STORE(*(int32_t *)&lock_, 1);
		join(t[0]);
	}
	return 0;
}
