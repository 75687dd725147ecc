/* SPDX-License-Identifier: MIT */
/*
 * fg_async: 300 words through one descriptor; none lost, none twice; cancelled ones stay away, and
 * keep no wake-up of others; a lock taken so.
 */
#include "../tools/check.h"
#include <flexguard_async.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define WORDS 300

static uint32_t *words; /* shared: some are woken by a child */

static void wake(uint32_t *word, bool shared)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG), INT_MAX, NULL,
		NULL, 0);
}

static bool is_shared(int i)
{
	return i % 2;
}

static void *wake_private(void *arg)
{
	(void)arg;
	for (int i = 0; i < WORDS; i++)
		if (!is_shared(i))
			wake(&words[i], false);
	return NULL;
}

static uint64_t next(struct fg_async *a)
{
	struct pollfd p = {.fd = fg_async_fd(a), .events = POLLIN};
	uint64_t cookie;
	int error;

	while (!fg_async_fetch(a, &cookie, &error))
		CHECK_EQ(poll(&p, 1, 30000), 1);
	CHECK_EQ(error, 0);
	return cookie;
}

/* Held, contended: as src/zoo/futex.c, by two threads that never sleep in the lock. */
static void lock_by_poll(struct fg_async *a, uint32_t *lock)
{
	while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE)) {
		CHECK_EQ(fg_async_watch(a, lock, 2, true, 1), 0);
		CHECK_EQ(next(a), 1);
	}
}

static void unlock_it(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, lock, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *add_up(void *arg)
{
	struct fg_async *a = fg_async_open();
	uint32_t *lock = arg;

	CHECK(a);
	for (int i = 0; i < 2000; i++) {
		lock_by_poll(a, lock);
		*(volatile uint32_t *)&lock[1] += 1;
		unlock_it(lock);
	}
	fg_async_close(a);
	return NULL;
}

static void *wait_for_wake(void *word)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL);
	return NULL;
}

/* A watch is woken in the place of a thread that sleeps behind it, and forgotten: that one is. */
static void pass_a_wake_up_on(bool close)
{
	static uint32_t word;
	struct fg_async *a = fg_async_open();
	pthread_t t;

	CHECK(a);
	CHECK_EQ(fg_async_watch(a, &word, 0, false, 7), 0);
	sleep_us(20000);
	t = start(wait_for_wake, &word);
	sleep_us(20000);
	CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1), 1);
	if (!close)
		CHECK(fg_async_cancel(a, 7));
	fg_async_close(a);
	join(t);
}

int main(int argc, char **argv)
{
	static char seen[WORDS];
	struct fg_async *a;
	pthread_t t, u;
	uint64_t cookie;
	pid_t child;
	int status;

	check_begin(argv[0], 60);
	a = fg_async_open();
	if (!a && errno == ENOSYS) {
		puts("skipped: this kernel has no futex_waitv(2) (Linux 5.16)");
		return 77;
	}
	CHECK(a);
	words = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(words != MAP_FAILED);
	for (int round = 0; round < 20; round++) {
		memset(seen, 0, sizeof(seen));
		for (int i = 0; i < WORDS; i++)
			CHECK_EQ(fg_async_watch(a, &words[i], words[i], is_shared(i), (uint64_t)i),
				 0);
		/* nobody wakes these before they are forgotten */
		for (int i = 0; i < WORDS; i += 7) {
			CHECK(fg_async_cancel(a, (uint64_t)i));
			CHECK(!fg_async_cancel(a, (uint64_t)i));
		}
		t = start(wake_private, NULL);
		child = fork();
		if (!child) {
			for (int i = 0; i < WORDS; i++)
				if (is_shared(i))
					wake(&words[i], true);
			_exit(0);
		}
		for (int n = 0; n < WORDS - (WORDS + 6) / 7; n++) {
			cookie = next(a);
			CHECK(cookie < WORDS && cookie % 7 && !seen[cookie]);
			seen[cookie] = 1;
		}
		join(t);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
		CHECK(!fg_async_fetch(a, &cookie, &status));
	}
	/* One that is different already. */
	CHECK_EQ(fg_async_watch(a, &words[0], words[0] + 1, false, 5), 0);
	CHECK_EQ(next(a), 5);
	fg_async_close(a);

	t = start(add_up, &words[1024]);
	u = start(add_up, &words[1024]);
	join(t);
	join(u);
	CHECK_EQ(words[1025], 4000);

	for (int round = 0; round < 10; round++)
		pass_a_wake_up_on(round % 2);
	return 0;
}
