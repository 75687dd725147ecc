/* SPDX-License-Identifier: MIT */
/*
 * The bridge between a mutex of ours and a condition variable of libc's: a signal by a thread that
 * has had the mutex since the waiter released it comes after the waiter is asleep in libc's eyes,
 * and is made without the bridge, as whoever waits for a stopped process keeps nobody else from
 * signalling.  Where there is no such wait the bridge is left alone.  The signaller may know the
 * object by another address than the waiter: a process may map a process-shared one twice.
 */
#include "../tools/check.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "lock/bridge.h"

enum { BRIDGES = 4, ROUNDS = 50, MAPPINGS = 5 };

static pthread_mutex_t table[BRIDGES], *used;
static uint32_t waits[BRIDGES];
static int released, asleep, tried, woken;
static char *object[MAPPINGS], *signalled;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static int lock_bridge(void *bridge)
{
	used = bridge;
	if (LOAD(released))
		STORE(tried, 1);
	return pthread_mutex_lock(bridge);
}

static int unlock_bridge(void *bridge)
{
	return pthread_mutex_unlock(bridge);
}

static void renew(struct fg_bridges *b)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	for (uint32_t i = 0; i < b->count; i++)
		table[i] = fresh;
}

static struct fg_bridges bridges = {.table = table,
				    .waits = waits,
				    .size = sizeof(table[0]),
				    .count = BRIDGES,
				    .shift = 4,
				    .lock = lock_bridge,
				    .unlock = unlock_bridge,
				    .renew = renew};

static int unlock_own(void *mutex)
{
	return pthread_mutex_unlock(mutex);
}

static int lock_own(void *mutex)
{
	return pthread_mutex_lock(mutex);
}

/* libc's wait.  The mutex has been released, and libc does not know of the waiter yet. */
static int wait_like_libc(void *bridge, void *arg)
{
	STORE(released, 1);
	UNTIL(LOAD(tried) || LOAD(woken));
	sleep_us(1000); /* for what must not come */
	CHECK(!LOAD(woken));
	STORE(asleep, 1);
	CHECK_EQ(pthread_mutex_unlock(bridge), 0);
	UNTIL(LOAD(woken));
	CHECK_EQ(pthread_mutex_lock(bridge), 0);
	return arg ? 7 : 0;
}

static int wake_like_libc(void *o)
{
	CHECK(o == signalled);
	CHECK(LOAD(asleep));
	CHECK_EQ(pthread_mutex_trylock(used), 0);
	CHECK_EQ(pthread_mutex_unlock(used), 0);
	STORE(woken, 1);
	return 8;
}

static int wake_nobody(void *o)
{
	CHECK(o == signalled);
	return 9;
}

static void *signaller(void *arg)
{
	UNTIL(LOAD(released));
	lock(&m);
	unlock(&m);
	CHECK_EQ(_fg_bridge_wake(&bridges, signalled, wake_like_libc), 8);
	return arg;
}

static int refuse(void *mutex)
{
	(void)mutex;
	return EPERM;
}

/* One page of memory, at places that follow each other. */
static void map_object(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("object", MFD_CLOEXEC);
	char *at = mmap(NULL, MAPPINGS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(fd >= 0 && at != MAP_FAILED);
	CHECK_EQ(ftruncate(fd, (off_t)page), 0);
	for (int i = 0; i < MAPPINGS; i++) {
		object[i] = mmap(at + i * page, page, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, fd, 0);
		CHECK(object[i] == at + i * page);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct fg_cond_mutex own = {unlock_own, lock_own, &m, NULL}, not_held = own;

	(void)argc;
	check_begin(argv[0], 20);
	not_held.unlock = refuse;
	renew(&bridges);
	map_object();
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t t;

		asleep = tried = woken = 0;
		signalled = object[i % MAPPINGS];
		t = start(signaller, NULL);
		lock(&m);
		CHECK_EQ(_fg_bridge_wait(&bridges, object[0], &own, wait_like_libc, &own), 7);
		unlock(&m);
		join(t);
		STORE(released, 0);
		CHECK_EQ(_fg_bridge_wait(&bridges, object[0], &not_held, wait_like_libc, NULL),
			 EPERM);
		used = NULL;
		CHECK_EQ(_fg_bridge_wake(&bridges, signalled, wake_nobody), 9);
		CHECK(!used);
	}
	return 0;
}
