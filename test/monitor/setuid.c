// SPDX-License-Identifier: MIT
/*
 * An attack: an ordinary user connects, hands the connection to an accomplice and executes a
 * program whose memory it may not read; then the accomplice says hello for it.  Were its threads
 * bound, then `pending` and `owner_id`, which the accomplice writes, would be a question about its
 * memory, and `blocked` the answer.  Programs: setuid, with a file capability, one that may be
 * executed and not read. Variants: the hello comes from the attacker, before the exec or at the
 * same time as it.  Nothing in the slots may tell a secret from a wrong guess; that they do tell it
 * of a program of the user's own shows that the question would be answered.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include "harness.h"
#include "../tools/copy_self.h"

#define USER	   1001
#define SECRET	   0x1234567u
#define AT	   ((void *)0x200000000000)
#define SLEEPS	   50
#define READY_FD   101 /* the victim's end of a pipe */
#define PROCEED_FD 100

enum hello { ACCOMPLICE, BEFORE, TOGETHER, CHILD, HELLOS };

static struct monitor m;
static char folder[] = "/tmp/flexguard-setuid-XXXXXX", victim_path[sizeof(folder) + 8];

/*
 * The program that is attacked: sleeps with its secret in memory, a slot's number where the monitor
 * looks for one.
 */
static int victim(void)
{
	uint32_t *word = mmap(AT, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	static struct fg_slot slots[2];
	struct client own = {.slots = slots};
	char byte;

	CHECK(word == AT);
	*word = SECRET;
	bind_thread(&own, 1);
	for (;;) {
		for (int i = 0; i < SLEEPS; i++)
			usleep(100);
		if (write(READY_FD, "", 1) != 1 || read(PROCEED_FD, &byte, 1) != 1)
			return 0;
	}
}

static struct fg_hello hello(void)
{
	return (struct fg_hello){FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
}

static void be_user(void)
{
	CHECK(!setresgid(USER, USER, USER) && !setresuid(USER, USER, USER));
}

struct attack {
	int sock, ready[2], proceed[2];
	enum hello by;
};

static void attacker(void *arg)
{
	struct attack *a = arg;
	struct fg_hello h = hello();
	char name[16];

	be_user();
	a->sock = client_connect(m.name);
	CHECK(a->sock >= 0);
	CHECK(dup2(a->ready[1], READY_FD) == READY_FD &&
	      dup2(a->proceed[0], PROCEED_FD) == PROCEED_FD);
	snprintf(name, sizeof(name), "%d", a->sock);
	/* The connection goes on to the process at the other end of this. */
	{
		union {
			struct cmsghdr header;
			char space[CMSG_SPACE(sizeof(int))];
		} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
		struct iovec iov = {name, 1};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = &control,
				     .msg_controllen = sizeof(control)};

		memcpy(CMSG_DATA(&control.header), &a->sock, sizeof(int));
		if (a->by == BEFORE || a->by == TOGETHER)
			CHECK(send(a->sock, &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h));
		CHECK(sendmsg(a->ready[1], &msg, MSG_NOSIGNAL) == 1);
		if (a->by == BEFORE)
			CHECK(read(PROCEED_FD, name, 1) == 1);
	}
	execl(victim_path, victim_path, "victim", NULL);
	_exit(127);
}

static int take_socket(int from)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int sock;

	CHECK(recvmsg(from, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg));
	memcpy(&sock, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return sock;
}

static int take_welcome(int sock, int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))] = {0};
	struct fg_welcome welcome;
	struct iovec iov = {&welcome, sizeof(welcome)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};

	CHECK(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == sizeof(welcome));
	if (welcome.error)
		return welcome.error;
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), 2 * sizeof(int));
	return 0;
}

static void let_it_sleep(struct attack *a)
{
	char byte;

	CHECK(write(a->proceed[1], "", 1) == 1);
	CHECK(read(a->ready[0], &byte, 1) == 1);
}

/*
 * What the slots say of this guess: whether there was a slot, and how often the thread slept as its
 * owner.
 */
static uint64_t ask(struct attack *a, struct fg_slot *slots, uint32_t guess, bool *bound)
{
	uint64_t before = slots[1].blocked;

	slots[1].owner_id = guess;
	slots[1].pending = (uintptr_t)AT;
	let_it_sleep(a);
	let_it_sleep(a);
	*bound |= slots[1].bound != 0;
	return slots[1].blocked - before;
}

static void say_hello(void *arg)
{
	struct fg_hello h = hello();
	struct attack *a = arg;

	be_user();
	CHECK(send(a->sock, &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h));
}

/*
 * The accomplice, which is the test itself.  1: the slots say something; 0 they do not, or -errno
 * of the hello.
 */
static int attack(enum hello by)
{
	struct attack a = {.by = by};
	struct fg_slot *slots = MAP_FAILED;
	struct fg_hello h = hello();
	uint64_t right, wrong;
	bool bound = false;
	int fds[2], err;
	char byte;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, a.ready) &&
	      !pipe2(a.proceed, O_CLOEXEC));
	pid = spawn(attacker, &a);
	close(a.proceed[0]);
	a.sock = take_socket(a.ready[0]);
	if (by == BEFORE) {
		err = take_welcome(a.sock, fds);
		CHECK(!err);
		CHECK(write(a.proceed[1], "", 1) == 1);
	}
	CHECK(read(a.ready[0], &byte, 1) == 1); /* the victim runs */
	if (by == ACCOMPLICE) {
		CHECK(send(a.sock, &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h));
	} else if (by == CHILD) {
		reap(spawn(say_hello, &a));
	}
	if (by != BEFORE)
		err = take_welcome(a.sock, fds);
	if (!err)
		slots = mmap(NULL, 32 * sizeof(struct fg_slot), PROT_READ | PROT_WRITE, MAP_SHARED,
			     fds[0], 0);
	if (!err) {
		CHECK(slots != MAP_FAILED);
		wrong = ask(&a, slots, SECRET + 1, &bound);
		right = ask(&a, slots, SECRET, &bound);
		munmap(slots, 32 * sizeof(struct fg_slot));
		close(fds[0]);
		close(fds[1]);
		if (bound || right || wrong) {
			fprintf(stderr, "bound %d, right guess: %llu, wrong guess: %llu\n", bound,
				(unsigned long long)right, (unsigned long long)wrong);
			err = 1;
		}
	}
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(a.sock);
	close(a.ready[0]);
	close(a.ready[1]);
	close(a.proceed[1]);
	return err;
}

/* How many of the variants tell something. */
static int attack_all(const char *what)
{
	static const char *const names[] = {"the accomplice", "the attacker before",
					    "the attacker at once", "a child"};
	int rounds, told = 0;

	for (int by = 0; by < HELLOS; by++)
		for (rounds = by == TOGETHER ? 20 : 1; rounds; rounds--)
			if (attack((enum hello)by) == 1) {
				fprintf(stderr, "%s, hello by %s: its memory can be asked about\n",
					what, names[by]);
				told++;
				break;
			}
	return told;
}

static void exec_victim(void *arg)
{
	be_user();
	execl(victim_path, victim_path, "id", NULL);
	_exit(127);
}

/* The same questions about a program of one's own are answered: the test would notice. */
static void own_program(void *unused)
{
	struct client c;
	uint32_t *word = mmap(AT, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	be_user();
	*word = SECRET;
	client_join(&c, m.name, 8);
	bind_thread(&c, 1);
	c.slots[1].pending = (uintptr_t)word;
	c.slots[1].owner_id = SECRET + 1;
	for (int i = 0; i < SLEEPS; i++)
		usleep(100);
	CHECK(c.slots[1].bound && !c.slots[1].blocked);
	c.slots[1].owner_id = SECRET;
	for (int i = 0; i < SLEEPS; i++)
		usleep(100);
	CHECK(c.slots[1].blocked);
}

static void remove_files(void)
{
	unlink(victim_path);
	rmdir(folder);
}

int main(int argc, char **argv)
{
	struct {
		__le32 magic;
		struct {
			__le32 permitted, inheritable;
		} data[2];
	} capability = {VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
			{{1u << CAP_DAC_OVERRIDE, 0}}};
	pid_t pid;
	int status, told;

	if (argc == 2 && !strcmp(argv[1], "victim"))
		return victim();
	if (argc == 2 && !strcmp(argv[1], "id"))
		return geteuid() == 0 ? 0 : 1;
	test_begin();
	if (geteuid())
		skip("only root can make a setuid program");
	CHECK(mkdtemp(folder));
	snprintf(victim_path, sizeof(victim_path), "%s/victim", folder);
	monitor_start(&m, NULL);
	atexit(remove_files);
	CHECK(!chmod(folder, 0755));
	reap(spawn(own_program, NULL));

	copy_self(victim_path, 04755);
	pid = spawn(exec_victim, NULL);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status) {
		remove_files();
		skip("no setuid programs in /tmp");
	}
	told = attack_all("a setuid program");
	copy_self(victim_path, 0711);
	told += attack_all("a program that may not be read");
	copy_self(victim_path, 0755);
	if (!setxattr(victim_path, "security.capability", &capability, sizeof(capability), 0))
		told += attack_all("a program with a file capability");
	monitor_stop(&m);
	return told != 0;
}
