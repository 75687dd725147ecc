/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter for all threads, which kills for each call but those that this program makes
 * itself, comes while its threads hand a token on by syscall(SYS_futex, ...) and look for it.  From
 * then on there is no call that the program has not made.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "../tools/futex.h"

enum { ROUNDS = 4000 };

static const int needed[] = {SYS_exit,	       SYS_exit_group,	   SYS_write,
			     SYS_rt_sigreturn, SYS_mmap,	   SYS_munmap,
			     SYS_mprotect,     SYS_madvise,	   SYS_nanosleep,
			     SYS_futex,	       SYS_rt_sigprocmask, SYS_clock_nanosleep};

#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define IF(k) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), 0, 1)

static struct sock_filter code[64];
static unsigned short length;

static void add(struct sock_filter f)
{
	code[length++] = f;
}

/* Of futex, waits and wakes. */
static void make_filter(void)
{
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					 offsetof(struct seccomp_data, nr)));
	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		if (needed[i] == SYS_futex)
			continue;
		add((struct sock_filter)IF((unsigned)needed[i]));
		add((struct sock_filter)ALLOW);
	}
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 1, 0));
	add((struct sock_filter)KILL);
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					 offsetof(struct seccomp_data, args[1]) +
					     4 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)));
	add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
					 ~(unsigned)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)));
	add((struct sock_filter)IF(FUTEX_WAIT));
	add((struct sock_filter)ALLOW);
	add((struct sock_filter)IF(FUTEX_WAKE));
	add((struct sock_filter)ALLOW);
	add((struct sock_filter)IF(FUTEX_WAIT_BITSET));
	add((struct sock_filter)ALLOW);
	add((struct sock_filter)KILL);
}

static uint32_t turn;

static void *take_turns(void *arg)
{
	uint32_t me = (uint32_t)(long)arg, now;

	for (int n = 0; n < ROUNDS; n++) {
		while ((now = LOAD(turn)) % 2 != me)
			futex_wait(&turn, now);
		STORE(turn, now + 1);
		futex_wake(&turn, 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sock_fprog p = {.filter = code};
	pthread_t t[2];

	(void)argc;
	check_begin(argv[0], 30);
	make_filter();
	p.len = length;
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	for (long i = 0; i < 2; i++)
		t[i] = start(take_turns, (void *)i);
	UNTIL(LOAD(turn) > ROUNDS / 2);
	if (RESULT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p)))
		check_skip("no filter for all threads can be installed here");
	for (int i = 0; i < 2; i++)
		join(t[i]);
	CHECK_EQ(turn, 2 * ROUNDS);
	return 0;
}
