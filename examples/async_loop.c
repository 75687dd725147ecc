/* SPDX-License-Identifier: MIT */
/*
 * An event loop that waits for a pipe and for locks at once, and never sleeps for one of them
 * alone.  A lock is a word as a futex mutex has it: 0 free, 1 held, 2 held and somebody waits.
 *
 * make -C examples async_loop, or: cc async_loop.c -lflexguard-async -pthread
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <flexguard_async.h>

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKS 3

static uint32_t lock_word[LOCKS];
static int ends[2];

static void unlock(uint32_t *word)
{
	if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Has the locks at first, and releases one each time that it has written a line. */
static void *other(void *arg)
{
	(void)arg;
	for (int i = 0; i < LOCKS; i++) {
		if (write(ends[1], "a line\n", 7) != 7)
			return NULL;
		usleep(1000);
		unlock(&lock_word[i]);
	}
	return NULL;
}

/*
 * 1: taken at once; 0: watched, and the loop tries again when its number comes; -1: neither, so
 * that none would come.
 */
static int try_or_watch(struct fg_async *a, int i)
{
	int error;

	if (!__atomic_exchange_n(&lock_word[i], 2, __ATOMIC_ACQUIRE))
		return 1;
	error = fg_async_watch(a, &lock_word[i], 2, false, (uint64_t)i);
	if (!error)
		return 0;
	fprintf(stderr, "fg_async_watch: %s\n", strerror(error));
	return -1;
}

int main(void)
{
	struct epoll_event e = {.events = EPOLLIN}, ready;
	struct fg_async *a = fg_async_open();
	int error = errno, loop = epoll_create1(0), taken = 0, got;
	char line[100];
	pthread_t t;
	uint64_t i;

	if (!a) {
		fprintf(stderr, "fg_async_open: %s\n", strerror(error));
		return error == ENOSYS || error == EPERM ? 77 : 1;
	}
	if (loop < 0 || pipe(ends))
		return 1;
	for (i = 0; i < LOCKS; i++)
		lock_word[i] = 1;
	e.data.fd = ends[0];
	epoll_ctl(loop, EPOLL_CTL_ADD, ends[0], &e);
	e.data.fd = fg_async_fd(a);
	epoll_ctl(loop, EPOLL_CTL_ADD, e.data.fd, &e);
	for (i = 0; i < LOCKS; i++) {
		got = try_or_watch(a, (int)i);
		if (got < 0)
			return 1;
		taken += got;
	}
	if (pthread_create(&t, NULL, other, NULL))
		return 1;
	while (taken < LOCKS && epoll_wait(loop, &ready, 1, 30000) == 1) {
		if (ready.data.fd == ends[0]) {
			if (read(ends[0], line, sizeof(line)) > 0)
				puts("a line has come");
			continue;
		}
		while (fg_async_fetch(a, &i, &error)) {
			got = error ? -1 : try_or_watch(a, (int)i);
			if (got < 0)
				return 1;
			if (got)
				printf("lock %d is mine\n", (int)i);
			taken += got;
		}
	}
	pthread_join(t, NULL);
	fg_async_close(a);
	return taken == LOCKS ? 0 : 1;
}
