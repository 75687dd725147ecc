// SPDX-License-Identifier: MIT
/*
 * A process that says hello again after an exec keeps its index and gets another array.  Until the
 * publisher has put that in the earlier one's place nobody is bound: the parent of the program
 * may have the earlier array mapped.  Here the publisher's threads are stopped (by ptrace) before
 * the second hello, and go on after it has been answered.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include "harness.h"

static struct monitor m;
static int to_child[2], to_parent[2];

static void say(int fd)
{
	CHECK(write(fd, "", 1) == 1);
}

static void hear(int fd)
{
	char byte;

	CHECK(read(fd, &byte, 1) == 1);
}

/* ---- the publisher's threads --------------------------------------------------- */

#define THREADS 32
static pid_t stopped[THREADS];
static int nr_stopped;

/*
 * It waits for work, in a condition variable: it holds no mutex that the monitor's loop would wait
 * for.
 */
static bool has_no_work(pid_t tid)
{
	unsigned long addr, op;
	char path[64];
	int nr, n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", m.pid, tid);
	f = fopen(path, "re");
	if (!f)
		skip("%s: %s", path, strerror(errno));
	n = fscanf(f, "%d %lx %lx", &nr, &addr, &op);
	fclose(f);
	return n == 3 && nr == SYS_futex && (op & 0x7f) == FUTEX_WAIT_BITSET;
}

/* All threads of the monitor but its loop's.  False if one of them has something to do. */
static bool find_publishers(void)
{
	char path[64];
	struct dirent *e;
	bool idle = true;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", m.pid);
	d = opendir(path);
	CHECK(d);
	nr_stopped = 0;
	while ((e = readdir(d))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0 || tid == m.pid)
			continue;
		CHECK(nr_stopped < THREADS);
		stopped[nr_stopped++] = tid;
		idle &= has_no_work(tid);
	}
	closedir(d);
	return idle;
}

static void stop_publishers(void)
{
	int i, status;

	WAIT_FOR(find_publishers());
	CHECK(nr_stopped >= 2);
	for (i = 0; i < nr_stopped; i++) {
		if (ptrace(PTRACE_SEIZE, stopped[i], NULL, NULL)) {
			if (errno == EPERM)
				skip("no process may be traced here");
			fail("ptrace: %s", strerror(errno));
		}
		CHECK(!ptrace(PTRACE_INTERRUPT, stopped[i], NULL, NULL));
		CHECK(waitpid(stopped[i], &status, __WALL) == stopped[i] && WIFSTOPPED(status));
	}
}

static void resume_publishers(void)
{
	for (int i = 0; i < nr_stopped; i++)
		CHECK(!ptrace(PTRACE_DETACH, stopped[i], NULL, NULL));
}

/* ---- the process ------------------------------------------------------------------ */

static int say_hello(struct client *c)
{
	struct fg_hello hello = {.magic = FG_PROTO_MAGIC,
				 .abi = FG_ABI_VERSION,
				 .want_slots = 8,
				 .tls_offset = tls_offset()};
	int sock = client_connect(m.name), fds[2], err;

	CHECK(sock >= 0);
	err = client_exchange(sock, &hello, sizeof(hello), &c->welcome, fds);
	close(sock);
	if (!err)
		err = c->welcome.error;
	if (err)
		return err;
	c->slots_fd = fds[0];
	c->slots = mmap(NULL, c->welcome.slots * sizeof(struct fg_slot), PROT_READ | PROT_WRITE,
			MAP_SHARED, fds[0], 0);
	CHECK(c->slots != MAP_FAILED);
	close(fds[1]);
	return 0;
}

/* The monitor binds a thread when it is switched out. */
static void be_switched_out(void)
{
	for (int i = 0; i < 50; i++)
		usleep(200);
}

static void first_image(void *unused)
{
	char name[sizeof(m.name)], slots[16], in[16], out[16];
	struct client c;

	client_join(&c, m.name, 8);
	bind_thread(&c, 1);
	WAIT_FOR(c.slots[1].bound == (uint32_t)gettid());
	snprintf(name, sizeof(name), "%s", m.name);
	/* Its descriptor outlives the exec, as an accomplice's mapping would. */
	snprintf(slots, sizeof(slots), "%d", dup(c.slots_fd));
	snprintf(in, sizeof(in), "%d", to_child[0]);
	snprintf(out, sizeof(out), "%d", to_parent[1]);
	say(to_parent[1]);
	hear(to_child[0]);
	execl("/proc/self/exe", "publisher", name, slots, in, out, NULL);
	fail("exec");
}

static int second_image(char **argv)
{
	int in = atoi(argv[3]), out = atoi(argv[4]), err;
	struct client earlier = {0}, c = {0};

	snprintf(m.name, sizeof(m.name), "%s", argv[1]);
	earlier.slots = mmap(NULL, 2 * sizeof(struct fg_slot), PROT_READ | PROT_WRITE, MAP_SHARED,
			     atoi(argv[2]), 0);
	if (earlier.slots == MAP_FAILED)
		fail("mmap of descriptor %s: %s", argv[2], strerror(errno));
	earlier.slots[1].bound = 0; /* by the first image, until now */
	bind_thread(&earlier, 1);
	err = say_hello(&c);
	be_switched_out();
	if (earlier.slots[1].bound)
		fail("bound in the array of the program before it (the hello: %s)", strerror(-err));
	if (err != -EAGAIN)
		fail("the hello: %s", strerror(-err));
	say(out);
	hear(in);
	/* The publisher comes round: the client, which asks again, is bound in its own. */
	WAIT_FOR(!say_hello(&c));
	bind_thread(&c, 1);
	WAIT_FOR(c.slots[1].bound == (uint32_t)gettid());
	CHECK(!earlier.slots[1].bound);
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid;

	test_begin();
	if (argc == 5)
		return second_image(argv);
	monitor_start(&m, NULL);
	CHECK(!pipe(to_child) && !pipe(to_parent)); /* not the monitor's */
	pid = spawn(first_image, NULL);
	close(to_parent[1]);
	hear(to_parent[0]);
	stop_publishers();
	say(to_child[1]);
	if (read(to_parent[0], &(char){0}, 1) != 1) {
		resume_publishers();
		reap(pid);
		fail("the second image says nothing");
	}
	resume_publishers();
	say(to_child[1]);
	reap(pid);
	monitor_stop(&m);
	return 0;
}
