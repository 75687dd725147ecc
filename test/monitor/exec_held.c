// SPDX-License-Identifier: MIT
/*
 * A thread that is not the leader executes another program while its io_uring has a read of a FUSE
 * file under way, and the file's server does not answer: it has the leader's place already, which
 * nothing was said of, and is in its old memory still.  It is not forgotten before it is through,
 * since the slot that it is bound to may make it count.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "harness.h"

#define FILE_ID 2
#define SIZE	(1 << 20)
/* By then it would be forgotten, at the second look: EXEC_NS, LOOK_NS, src/monitor/process.c. */
#define FORGET_S 13

static struct monitor m;
static char folder[] = "/tmp/fg-exec-held-XXXXXX";
static struct shared {
	uint32_t asked;	   /* the server has the read */
	uint32_t executes; /* the thread that is about to execute another program */
} *shared;

/* ---- a file whose server never answers a read ---- */

static void answer(int fuse, uint64_t unique, int error, const void *with, size_t size)
{
	char out[sizeof(struct fuse_out_header) + 512];
	struct fuse_out_header h = {(uint32_t)(sizeof(h) + size), error, unique};

	memcpy(out, &h, sizeof(h));
	if (size)
		memcpy(out + sizeof(h), with, size);
	(void)!write(fuse, out, h.len);
}

static void answer_or_not(int fuse, const struct fuse_in_header *in)
{
	const struct fuse_attr attr = {.ino = in->nodeid,
				       .nlink = 1,
				       .size = SIZE,
				       .mode = in->nodeid == FUSE_ROOT_ID ? S_IFDIR | 0755 :
									    S_IFREG | 0644};
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = 31,
					   .flags = FUSE_ASYNC_DIO | FUSE_ASYNC_READ,
					   .max_readahead = 65536,
					   .max_write = 65536};
	const struct fuse_attr_out attributes = {.attr_valid = 100, .attr = attr};
	const struct fuse_open_out direct = {.open_flags = FOPEN_DIRECT_IO};
	struct fuse_entry_out entry = {.nodeid = FILE_ID, .attr_valid = 100, .attr = attr};

	entry.attr.ino = FILE_ID;
	entry.attr.mode = S_IFREG | 0644;
	switch (in->opcode) {
	case FUSE_INIT: answer(fuse, in->unique, 0, &init, sizeof(init)); break;
	case FUSE_LOOKUP: answer(fuse, in->unique, 0, &entry, sizeof(entry)); break;
	case FUSE_GETATTR: answer(fuse, in->unique, 0, &attributes, sizeof(attributes)); break;
	case FUSE_OPEN: answer(fuse, in->unique, 0, &direct, sizeof(direct)); break;
	case FUSE_READ: __atomic_store_n(&shared->asked, 1, __ATOMIC_RELEASE); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	default: answer(fuse, in->unique, -ENOSYS, NULL, 0);
	}
}

static void serve(void *fuse)
{
	static char in[(1 << 17) + 4096] __attribute__((aligned(8)));

	while (read(*(int *)fuse, in, sizeof(in)) >= 0 || errno == EINTR || errno == ENOENT)
		answer_or_not(*(int *)fuse, (const struct fuse_in_header *)in);
}

/* The server; it alone has the file's other end. */
static pid_t mount_file(void)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char option[64];
	pid_t pid;

	if (fuse < 0)
		skip("no /dev/fuse: %s", strerror(errno));
	CHECK(mkdtemp(folder));
	snprintf(option, sizeof(option), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (unshare(CLONE_NEWNS) || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) ||
	    mount("fg", folder, "fuse", 0, option)) {
		rmdir(folder);
		skip("cannot mount by FUSE: %s", strerror(errno));
	}
	pid = spawn(serve, &fuse);
	close(fuse);
	return pid;
}

/* ---- the program that executes another one ---- */

static void read_under_way(int ring, const struct io_uring_params *p)
{
	static char to[4096] __attribute__((aligned(4096)));
	char file[sizeof(folder) + 8];
	struct io_uring_sqe *sqe = mmap(NULL, p->sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE,
					MAP_SHARED, ring, (off_t)IORING_OFF_SQES);
	char *sq = mmap(NULL, p->sq_off.array + p->sq_entries * sizeof(uint32_t),
			PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);

	CHECK(sqe != MAP_FAILED && sq != MAP_FAILED);
	snprintf(file, sizeof(file), "%s/file", folder);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_READ;
	sqe->fd = open(file, O_RDONLY | O_DIRECT | O_CLOEXEC);
	CHECK(sqe->fd >= 0);
	sqe->addr = (uintptr_t)to;
	sqe->len = sizeof(to);
	*(uint32_t *)(sq + p->sq_off.array) = 0;
	__atomic_store_n((uint32_t *)(sq + p->sq_off.tail), 1, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1);
}

static void *become(void *arg)
{
	struct client *c = arg;
	struct io_uring_params p = {0};
	int ring = (int)syscall(SYS_io_uring_setup, 2, &p);

	CHECK(ring >= 0);
	bind_thread(c, 2);
	WAIT_FOR(c->slots[2].bound == (uint32_t)gettid());
	read_under_way(ring, &p);
	WAIT_FOR(__atomic_load_n(&shared->asked, __ATOMIC_ACQUIRE));
	__atomic_store_n(&shared->executes, (uint32_t)gettid(), __ATOMIC_RELEASE);
	execl("/proc/self/exe", "exec_held", "image", NULL);
	fail("exec");
}

static void child(void *arg)
{
	struct client c;
	pthread_t thread;

	client_join(&c, m.name, 8);
	CHECK(!pthread_create(&thread, NULL, become, &c));
	for (;;)
		pause();
}

/* Its other threads are gone, the leader among them. */
static bool is_alone(pid_t pid)
{
	char tasks[32];
	struct stat st;

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	CHECK(!stat(tasks, &st));
	return st.st_nlink == 3;
}

/*
 * The kernel waits for the read before it lets the thread have the leader's place, as Linux 6.12
 * does: what is tried here cannot come about.
 */
static bool waits_first(pid_t pid)
{
	uint32_t thread = __atomic_load_n(&shared->executes, __ATOMIC_ACQUIRE);
	char path[64], in[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/wchan", pid, thread);
	f = thread ? fopen(path, "re") : NULL;
	if (f) {
		(void)!fgets(in, sizeof(in), f);
		fclose(f);
	}
	return !strncmp(in, "io_uring_cancel", strlen("io_uring_cancel")) && !is_alone(pid);
}

static void end(pid_t pid, pid_t server)
{
	CHECK(!kill(pid, SIGKILL));
	CHECK(!kill(server, SIGKILL) && waitpid(server, NULL, 0) == server);
	CHECK(waitpid(pid, NULL, 0) == pid);
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	monitor_stop(&m);
}

static bool has_io_uring(void)
{
	struct io_uring_params p = {0};
	int ring = (int)syscall(SYS_io_uring_setup, 2, &p);

	if (ring >= 0)
		close(ring);
	return ring >= 0;
}

int main(int argc, char **argv)
{
	uint64_t until;
	pid_t server, pid;

	(void)argv;
	for (; argc == 2;) /* the other program */
		pause();
	test_begin();
	if (!has_io_uring())
		skip("no io_uring: %s", strerror(errno));
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	server = mount_file();
	monitor_start(&m, NULL);
	pid = spawn(child, NULL);
	WAIT_FOR(__atomic_load_n(&shared->executes, __ATOMIC_ACQUIRE));
	WAIT_FOR(is_alone(pid) || waits_first(pid));
	if (!is_alone(pid)) {
		end(pid, server);
		skip("this kernel waits for io_uring before a thread takes the leader's place");
	}
	for (until = fg_now_ns() + FORGET_S * 1000000000ull; fg_now_ns() < until; usleep(100000))
		CHECK(monitor_report(m.name).processes == 1);
	kill(server, SIGKILL); /* the read fails, and the exec goes on */
	WAIT_FOR(monitor_report(m.name).processes == 0);
	end(pid, server);
	return 0;
}
