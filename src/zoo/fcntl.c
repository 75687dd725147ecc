/* SPDX-License-Identifier: MIT */
/*
 * Record locks, the futex paper's baseline for tdb: a byte of a file for each mutex.
 *
 * Those of fcntl(F_SETLK) are a process's, not a thread's; open file description locks (Linux 3.15)
 * are of the description, so each thread opens the file once more.  The file has no name.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/libc.h"
#include "zoo/zoo.h"

static int file = -1;  /* of the process, and its own description */
static struct stat as; /* what it is: the program may close what it does not know */
static uint64_t bytes; /* given out */
static pthread_key_t descriptor_key;
static uint32_t highest;	/* number of a descriptor of ours, ever */
static __thread int descriptor; /* this thread's + 1 */

/*
 * By a descriptor's number: mutexes that are held through it, and whether its thread has ended;
 * atomic.  Others may unlock them, and to close it unlocks what is left.  The usual limit of
 * descriptors is 1024; those beyond these are not closed.
 */
#define COUNTED 65536
#define ENDED	0x80000000u
static uint32_t held[COUNTED];

static __attribute__((noreturn)) void fail(const char *what, long error)
{
	dprintf(STDERR_FILENO,
		"flexguard: --lock fcntl: cannot %s (a descriptor for each thread): %s\n", what,
		strerror((int)-error));
	_exit(125);
}

/* By the kernel's names: libc's are cancellation points, and pthread_mutex_lock() is none. */
static void close_now(int fd)
{
	fg_syscall6(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* Descriptors out of the way of programs that expect low numbers; below the usual limit, 1024. */
#define HIGH 512

static int moved_up(int fd)
{
	int high = fd < HIGH ? (int)fg_syscall6(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH, 0, 0, 0) : -1;
	uint32_t seen = fg_load_relaxed(&highest);

	if (high >= 0) {
		close_now(fd);
		fd = high;
	}
	while (seen < (uint32_t)fd && !fg_cas_relaxed(&highest, &seen, (uint32_t)fd))
		;
	return fd;
}

static void open_file(void)
{
	file = memfd_create("flexguard-zoo", MFD_CLOEXEC);
	if (file < 0)
		fail("create a file", -errno);
	file = moved_up(file);
	fstat(file, &as);
}

/*
 * Descriptions are shared with the parent: what is unlocked by one here would be unlocked there.
 * So the child has a file of its own, and none of its parent's threads' descriptors.
 */
static void child_of_fork(void)
{
	struct stat s;

	for (int fd = 0; fd <= (int)highest; fd++)
		if (!fstat(fd, &s) && s.st_dev == as.st_dev && s.st_ino == as.st_ino)
			close_now(fd);
	memset(held, 0, sizeof(held));
	descriptor = 0;
	open_file();
}

/* Whoever is the last of its thread and those who unlock what that has left closes it. */
static void forget(int fd, uint32_t is)
{
	if (is != ENDED)
		return;
	held[fd] = 0;
	close_now(fd);
}

/* In each round: a destructor of the program's that locks later opens another one. */
static void thread_ends(void *unused)
{
	int fd = descriptor - 1;

	(void)unused;
	descriptor = 0;
	if (fd < COUNTED)
		forget(fd, fg_or_acq_rel(&held[fd], ENDED) | ENDED);
}

static const char *start(void)
{
	static bool started;
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	if (started)
		return NULL;
	started = true;
	open_file();
	if (fcntl(file, F_OFD_SETLK, &l))
		return "this kernel has no open file description locks (fcntl(2), Linux 3.15)";
	l.l_type = F_UNLCK;
	fcntl(file, F_OFD_SETLK, &l);
	pthread_atfork(NULL, NULL, child_of_fork);
	pthread_key_create(&descriptor_key, thread_ends);
	return NULL;
}

static int my_descriptor(void)
{
	char path[40];
	long fd;

	if (fg_likely(descriptor))
		return descriptor - 1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = fg_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		fail("open the file", fd);
	fd = moved_up((int)fd);
	descriptor = (int)fd + 1;
	fg_libc_pthread_setspecific()(descriptor_key, &descriptor);
	return (int)fd;
}

static long set(int fd, uint64_t byte, short type, int how)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};

	return fg_syscall6(SYS_fcntl, fd, how, (long)&l, 0, 0, 0);
}

static uint64_t byte_of(struct zoo_mutex *m)
{
	uint64_t byte = __atomic_load_n(&m->s.u64[0], __ATOMIC_ACQUIRE), fresh;

	if (fg_likely(byte))
		return byte;
	fresh = __atomic_add_fetch(&bytes, 1, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(&m->s.u64[0], &byte, fresh, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE) ?
		   fresh :
		   byte;
}

/* The owner's descriptor, for the thread that unlocks. */
static uint32_t *owner_of(struct zoo_mutex *m)
{
	return &m->s.u32[2];
}

static void is_mine(struct zoo_mutex *m, int fd)
{
	fg_store_relaxed(owner_of(m), (uint32_t)fd + 1);
	if (fd < COUNTED)
		fg_add_relaxed(&held[fd], 1);
}

static bool trylock(struct zoo_mutex *m)
{
	int fd = my_descriptor();
	long r;

	/* Again for the owner: its own description locks it again. */
	if (fg_load_relaxed(owner_of(m)) == (uint32_t)fd + 1)
		return false;
	r = set(fd, byte_of(m), F_WRLCK, F_OFD_SETLK);
	if (r && r != -EAGAIN && r != -EACCES)
		fail("lock", r);
	if (!r)
		is_mine(m, fd);
	return !r;
}

/* A deadlock of the program's, as with any other lock.  Not varied. */
#define DEADLOCK_SLEEP_NS 100000000u

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	int fd = my_descriptor();
	long r;

	(void)deadline; /* they have none */
	while (fg_load_relaxed(owner_of(m)) == (uint32_t)fd + 1)
		zoo_sleep_ns(DEADLOCK_SLEEP_NS);
	do {
		r = set(fd, byte_of(m), F_WRLCK, F_OFD_SETLKW);
		if (r && r != -EINTR)
			fail("lock", r);
	} while (r);
	is_mine(m, fd);
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	int owners = (int)fg_load_relaxed(owner_of(m)) - 1;

	fg_store_relaxed(owner_of(m), 0);
	set(owners, byte_of(m), F_UNLCK, F_OFD_SETLK);
	/* In a child one that it has from its parent was not counted. */
	if (owners >= 0 && owners < COUNTED && fg_load_relaxed(&held[owners]) & ~ENDED)
		forget(owners, fg_add_acq_rel(&held[owners], -1u) - 1);
}

const struct zoo_lock zoo_fcntl = {
    .lock = lock, .trylock = trylock, .unlock = unlock, .untried = true, .start = start};
