// SPDX-License-Identifier: MIT
/*
 * A thread keeps the domain that it was bound to while it sleeps.  So that domain and its process's
 * index are nobody else's as long as the process lives: not when its hellos fail one after the
 * other, nor when it becomes another user in one thread.  An exec, which ends the other threads,
 * and the process's end give them back.  A process does not keep the domains of many users.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "harness.h"

#define USER 1001 /* and those after it */

static struct monitor m;
static struct shared {
	uint32_t ready, domain, other;
} *shared;

static int hello(uint32_t from, int64_t offset, uint32_t *domain)
{
	struct fg_hello h = {FG_PROTO_MAGIC, FG_ABI_VERSION, FG_PIECE, from, offset};
	int sock = client_connect(m.name), fds[2];
	struct fg_welcome w = {0};

	CHECK(sock >= 0 && !client_exchange(sock, &h, sizeof(h), &w, fds));
	close(sock);
	if (!w.error) {
		close(fds[0]);
		close(fds[1]);
		if (domain)
			*domain = w.domain;
	}
	return w.error;
}

static int hello_until_answered(uint32_t *domain)
{
	int err;

	while ((err = hello(0, tls_offset(), domain)) == -EAGAIN)
		usleep(1000);
	return err;
}

static void become(uid_t uid)
{
	CHECK(!setresuid(uid, uid, uid));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* A thread that is bound, and sleeps as the owner of a lock. */
static void join_and_sleep(void)
{
	static struct client c;
	static struct actor a;

	client_join(&c, m.name, FG_PIECE);
	shared->domain = c.welcome.domain;
	actor_start(&a, &c, 1, -1, SCHED_OTHER);
	actor_get_up(&a);
	actor_acquire(&a);
	actor_lie_down(&a);
	WAIT_FOR(__atomic_load_n(&c.counters->dom[c.welcome.domain].blocked, __ATOMIC_RELAXED) ==
		 1);
}

static void wait_for_end(void)
{
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* The second piece has to be taken away first: each hello until then fails.  No third one. */
static void fails_twice(void *unused)
{
	int failed = 0;

	become(USER);
	join_and_sleep();
	CHECK(!hello(FG_PIECE, tls_offset(), NULL));
	while (failed < 2 && hello(0, tls_offset() + 64, NULL) == -EAGAIN)
		failed++;
	wait_for_end();
}

static void becomes_another_in_one_thread(void *unused)
{
	join_and_sleep();
	/* The system call: glibc would change all threads. */
	CHECK(!syscall(SYS_setresuid, USER, USER, USER));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(!hello_until_answered(&shared->other) && shared->other != shared->domain);
	wait_for_end();
}

static char *self;

static void becomes_another_and_executes(void *unused)
{
	join_and_sleep();
	CHECK(!syscall(SYS_setresuid, USER, USER, USER));
	CHECK(!hello_until_answered(&shared->other) && shared->other != shared->domain);
	execl(self, self, m.name, NULL);
	fail("execl: %s", strerror(errno));
}

static void says_hello_after_exec(const char *name)
{
	uint32_t domain;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memcpy(m.name, name, strlen(name) + 1);
	CHECK(!hello_until_answered(&domain));
	CHECK(write(STDOUT_FILENO, "x", 1) == 1);
	for (;;)
		pause();
}

static void becomes_many(void *unused)
{
	int err = 0, n;

	join_and_sleep();
	for (n = 0; n < 20 && !err; n++) {
		CHECK(!syscall(SYS_setresuid, USER + n, 0, 0));
		err = hello_until_answered(NULL);
	}
	CHECK(n > 3 && n < 10 && err == -EDQUOT);
	wait_for_end();
}

static void newcomer(void *unused)
{
	become(USER + 100);
	CHECK(!hello(0, tls_offset(), &shared->other));
}

static uint32_t domain_of_newcomer(void)
{
	reap(spawn(newcomer, NULL));
	return shared->other;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void check(const char *what, void (*process)(void *))
{
	pid_t pid;

	*shared = (struct shared){0};
	pid = spawn(process, NULL);
	WAIT_FOR(__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) || waitpid(pid, NULL, WNOHANG));
	CHECK(shared->ready);
	if (domain_of_newcomer() == shared->domain)
		fail("%s: another user got its domain, %u, and its thread is still there", what,
		     shared->domain);
	end(pid);
	WAIT_FOR(domain_of_newcomer() == shared->domain);
}

static void check_exec(void)
{
	int out[2];
	char byte;
	pid_t pid;

	*shared = (struct shared){0};
	CHECK(!pipe(out));
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(dup2(out[1], STDOUT_FILENO) == STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		becomes_another_and_executes(NULL);
	}
	close(out[1]);
	CHECK(read(out[0], &byte, 1) == 1);
	WAIT_FOR(domain_of_newcomer() == shared->domain);
	end(pid);
	close(out[0]);
}

int main(int argc, char **argv)
{
	if (argc == 2)
		says_hello_after_exec(argv[1]);
	test_begin();
	if (geteuid())
		skip("only root can be several users");
	self = realpath("/proc/self/exe", NULL);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	monitor_start(&m, NULL);
	for (int i = 0; i < 5; i++)
		check("hellos that fail", fails_twice);
	check("another user in one thread", becomes_another_in_one_thread);
	check("many users", becomes_many);
	check_exec();
	monitor_stop(&m);
	return 0;
}
