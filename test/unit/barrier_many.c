/* SPDX-License-Identifier: MIT */
/*
 * Barriers that have been used for so long that the count of those that have left turns
 * over: nobody makes a system call who has nobody to wake, and destroy ends.
 */
#include "../tools/check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "lock/barrier.h"

/* The barrier of one as it is after so many rounds, of which `fewer` have not been left yet. */
static struct fg_barrier after(uint64_t rounds, uint32_t fewer)
{
	struct fg_barrier b;

	fg_barrier_setup(&b, 1);
	b.word = (uint32_t)(rounds << 1);
	b.left = (uint32_t)(rounds - fewer) * FG_BARRIER_LEAVER;
	return b;
}

static void *destroy(void *arg)
{
	fg_barrier_drain(arg);
	return NULL;
}

static void refuse_futexes(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof f / sizeof *f, f};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		check_skip("no seccomp filters here");
}

int main(int argc, char **argv)
{
	static const uint64_t turns[] = {1ull << 30, 1ull << 31, 1ull << 32};
	struct fg_barrier b;
	pthread_t t;
	pid_t child;

	(void)argc;
	check_begin(argv[0], 20);
	for (int i = 0; i < 3; i++) {
		uint32_t before;

		b = after(turns[i], 1);
		before = b.left;
		t = start(destroy, &b);
		UNTIL(LOAD(b.left) != before); /* it says that it sleeps */
		sleep_us(2000);
		CHECK(fg_barrier_arrive(&b));
		join(t);
	}
	child = check_fork();
	if (!child) {
		refuse_futexes();
		for (int i = 0; i < 3; i++) {
			b = after(turns[i] - 3, 0);
			for (int n = 0; n < 6; n++)
				CHECK(fg_barrier_arrive(&b));
			fg_barrier_drain(&b);
		}
		_exit(0);
	}
	check_child(child);
	return 0;
}
