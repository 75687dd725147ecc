/* SPDX-License-Identifier: MIT */
/*
 * Locks that are in the kernel: a thread that finds one held makes one system call, in which it
 * sleeps.  Each call of the waiter is shown to another thread before it is made
 * (seccomp_unotify(2)).
 */
#include "../tools/check.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int listener = -2, tid, locked;

static int show_calls(void)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_semtimedop, 4, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 1, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLKW, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &program);
}

static void *wait_for_it(void *arg)
{
	(void)arg;
	STORE(tid, (int)syscall(SYS_gettid));
	STORE(listener, show_calls());
	if (listener < 0)
		return NULL;
	lock(&m);
	STORE(locked, 1);
	unlock(&m);
	return NULL;
}

static int shown(void)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

static void let_pass(void)
{
	struct seccomp_notif call;
	struct seccomp_notif_resp answer;

	memset(&call, 0, sizeof(call));
	CHECK_EQ(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call), 0);
	memset(&answer, 0, sizeof(answer));
	answer.id = call.id;
	answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	CHECK_EQ(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
}

/* In a system call, and not about to show one. */
static int sleeps(void)
{
	char path[64], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "r");
	if (!f)
		check_skip("no %s", path);
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	return line[0] >= '0' && line[0] <= '9' && !shown();
}

int main(int argc, char **argv)
{
	int calls = 0;
	pthread_t t;

	check_begin(argv[0], 40);
	lock(&m);
	t = start(wait_for_it, NULL);
	while (LOAD(listener) == -2)
		sched_yield();
	if (listener < 0)
		check_skip("no filters that notify here");
	while (!shown())
		sched_yield();
	do {
		if (shown()) {
			let_pass();
			calls++;
		}
		sched_yield();
	} while (!sleeps());
	CHECK_EQ(calls, 1);
	CHECK(!LOAD(locked));
	unlock(&m);
	while (!shown()) /* its unlock */
		sched_yield();
	CHECK(LOAD(locked));
	let_pass();
	join(t);
	return 0;
}
