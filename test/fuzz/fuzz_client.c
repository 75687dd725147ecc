/* SPDX-License-Identifier: MIT */
/*
 * What a monitor sends to the library: any welcome, with any descriptors, and then
 * anything in the pages, while a thread takes locks.  No crash, no hang, mutual
 * exclusion, no descriptor left.
 *
 * Input: a byte (descriptors sent: count, kinds), a byte (length of the answer), the answer, and
 * what the pages are filled with, over and over.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "abi/protocol.h"
#include "abi/socket.h"
#include "lock/barrier.h"
#include "lock/lock.h"
#include "lock/rwlock.h"
#include "lock/spin.h"
#include "runtime/decide.h"
#include "runtime/monitor_client.h"

static char name[64];
static int listener = -1;

static struct {
	uint8_t answer[256];
	size_t length;
	int fds[3], nr;
} say;

static void *server(void *arg)
{
	char control[CMSG_SPACE(3 * sizeof(int))] = {0};
	struct iovec iov = {say.answer, say.length};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fd = accept(listener, NULL, NULL);
	struct fg_hello hello;
	struct cmsghdr *c;

	(void)arg;
	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(recv(fd, &hello, sizeof(hello), 0) == sizeof(hello));
	if (say.nr) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE((size_t)say.nr * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)say.nr * sizeof(int));
		memcpy(CMSG_DATA(c), say.fds, (size_t)say.nr * sizeof(int));
	}
	if (say.length)
		sendmsg(fd, &msg, MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

static void listen_once(void)
{
	struct sockaddr_un un;

	snprintf(name, sizeof(name), "@flexguard-fuzz-%d", (int)getpid());
	setenv(FG_SOCKET_ENV, name, 1);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(!bind(listener, (struct sockaddr *)&un, fg_socket_address(&un, name)));
	FUZZ_CHECK(!listen(listener, 4));
}

/* A file of this kind: right size, too short, a pipe's end. */
static int file(unsigned kind, size_t size, const struct input *fill, uint8_t **map)
{
	int fd, pair[2];

	*map = NULL;
	if (kind == 3) {
		FUZZ_CHECK(!pipe(pair));
		close(pair[0]);
		return pair[1];
	}
	size = kind == 2 ? size / 3 : size;
	fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, (off_t)size));
	FUZZ_CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)); /* or nothing is taken */
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	FUZZ_CHECK(*map != MAP_FAILED);
	for (size_t i = 0; fill->left && i < size; i += fill->left)
		memcpy(*map + i, fill->at, size - i < fill->left ? size - i : fill->left);
	return fd;
}

static struct fg_lock lock;
static struct fg_rwlock rwlock;
static int32_t spin = FG_SPIN_FREE;
static long sum, written; /* guarded by the two */

static void *work(void *arg)
{
	const struct fg_deadline soon = {.clock = CLOCK_MONOTONIC};

	(void)arg;
	for (int i = 0; i < 50; i++) {
		_fg_lock(&lock);
		sum++;
		_fg_unlock(&lock);
		if (!_fg_lock_slow(&lock, &soon))
			_fg_unlock(&lock);
		FUZZ_CHECK(!_fg_rwlock_wrlock_untraced(&rwlock, NULL));
		written++;
		_fg_rwlock_unlock(&rwlock);
		FUZZ_CHECK(!_fg_rwlock_rdlock_untraced(&rwlock, NULL));
		_fg_rwlock_unlock(&rwlock);
		_fg_spin_lock(&spin, FG_CALLER);
		_fg_spin_unlock(&spin);
	}
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint8_t *map[3] = {0};
	size_t sizes[3] = {64 * sizeof(struct fg_slot), sizeof(struct fg_counters), 4096};
	uint8_t kinds, length;
	pthread_t t[2];
	int before;

	if (listener < 0) {
		listen_once();
		fg_self();
	}
	before = open_files();
	kinds = input_byte(&in);
	length = input_byte(&in);
	say.length = length;
	input_take(&in, say.answer, length);
	say.nr = kinds & 3;
	for (int i = 0; i < say.nr; i++)
		say.fds[i] = file(kinds >> (2 + 2 * i) & 3, sizes[i], &in, &map[i]);

	FUZZ_CHECK(!pthread_create(&t[0], NULL, server, NULL));
	fg_policy_monitor(NULL, 0);
	fg_monitor_register();
	pthread_join(t[0], NULL);
	for (int i = 0; i < say.nr; i++)
		close(say.fds[i]);
	FUZZ_CHECK(open_files() == before);

	sum = written = 0;
	for (int i = 0; i < 2; i++)
		FUZZ_CHECK(!pthread_create(&t[i], NULL, work, NULL));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	FUZZ_CHECK(sum == 100 && written == 100);
	fg_policy_monitor(NULL, 0);
	FUZZ_CHECK(!fg_slots_map(NULL, 0, 0));
	for (int i = 0; i < say.nr; i++)
		if (map[i])
			munmap(map[i], (kinds >> (2 + 2 * i) & 3) == 2 ? sizes[i] / 3 : sizes[i]);
	return 0;
}
