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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/thread.h"
#include "sys/libc.h"
#include "zoo/zoo.h"

static int file = -1;  /* of the process, and its own description */
static uint64_t bytes; /* given out */
static pthread_key_t descriptor_key;

static __attribute__((noreturn)) void fail(const char *what)
{
	dprintf(STDERR_FILENO,
		"flexguard: --lock fcntl: cannot %s (a descriptor for each thread): %s\n", what,
		strerror(errno));
	_exit(125);
}

/* Descriptors out of the way of programs that expect low numbers; below the usual limit, 1024. */
#define HIGH 512

static void open_file(void)
{
	file = memfd_create("flexguard-zoo", MFD_CLOEXEC);
	if (file < 0)
		fail("create a file");
	if (file < HIGH) {
		int high = fcntl(file, F_DUPFD_CLOEXEC, HIGH);

		if (high >= 0) {
			close(file);
			file = high;
		}
	}
}

static void close_descriptor(void *d)
{
	close((int)(intptr_t)d - 1);
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
	pthread_atfork(NULL, NULL, open_file); /* a child shares its parent's descriptions */
	pthread_key_create(&descriptor_key, close_descriptor);
	return NULL;
}

static int my_descriptor(void)
{
	static __thread int mine = -1;
	static __thread uint32_t epoch;
	char path[40];

	if (fg_likely(mine >= 0 && epoch == fg_load_relaxed(&fg_epoch)))
		return mine;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	mine = open(path, O_RDWR | O_CLOEXEC);
	if (mine < 0)
		fail("open the file");
	epoch = fg_load_relaxed(&fg_epoch);
	fg_libc_pthread_setspecific()(descriptor_key, (void *)(intptr_t)(mine + 1));
	return mine;
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

static bool trylock(struct zoo_mutex *m)
{
	int mine = my_descriptor();

	/* Again for the owner: its own description locks it again. */
	if (fg_load_relaxed(owner_of(m)) == (uint32_t)mine + 1 ||
	    set(mine, byte_of(m), F_WRLCK, F_OFD_SETLK))
		return false;
	fg_store_relaxed(owner_of(m), (uint32_t)mine + 1);
	return true;
}

/* A deadlock of the program's, as with any other lock.  Not varied. */
#define DEADLOCK_SLEEP_NS 100000000u

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	int mine = my_descriptor();
	long r;

	(void)deadline; /* they have none */
	while (fg_load_relaxed(owner_of(m)) == (uint32_t)mine + 1)
		zoo_sleep_ns(DEADLOCK_SLEEP_NS);
	do {
		r = set(mine, byte_of(m), F_WRLCK, F_OFD_SETLKW);
		if (r && r != -EINTR) {
			errno = (int)-r;
			fail("lock");
		}
	} while (r);
	fg_store_relaxed(owner_of(m), (uint32_t)mine + 1);
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	int owners = (int)fg_load_relaxed(owner_of(m)) - 1;

	fg_store_relaxed(owner_of(m), 0);
	set(owners, byte_of(m), F_UNLCK, F_OFD_SETLK);
}

const struct zoo_lock zoo_fcntl = {
    .lock = lock, .trylock = trylock, .unlock = unlock, .untried = true, .start = start};
