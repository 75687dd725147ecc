/* SPDX-License-Identifier: MIT */
/*
 * Words that cannot be waited for: each is fetched with its error, once, the others go on, nothing
 * reads memory that is gone, and the helper sleeps.  And a thread that is being cancelled.
 */
#include "../tools/check.h"
#include <flexguard_async.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>

static int next(struct fg_async *a, uint64_t *cookie)
{
	struct pollfd p = {.fd = fg_async_fd(a), .events = POLLIN};
	int error = -1;

	while (!fg_async_fetch(a, cookie, &error))
		CHECK_EQ(poll(&p, 1, 30000), 1);
	return error;
}

static void wake(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
}

static uint32_t good[2];
static bool closed;

static void *is_cancelled(void *arg)
{
	struct fg_async *a = arg;
	uint64_t cookie;
	int error;

	CHECK_EQ(pthread_cancel(pthread_self()), 0);
	CHECK_EQ(fg_async_watch(a, &good[0], good[0], false, 7), 0);
	CHECK(!fg_async_fetch(a, &cookie, &error));
	CHECK(fg_async_cancel(a, 7));
	fg_async_close(a);
	closed = true;
	pthread_testcancel();
	return NULL;
}

int main(int argc, char **argv)
{
	struct fg_async *a;
	uint64_t cookie;
	uint32_t *gone;
	int error;

	check_begin(argv[0], 60);
	a = fg_async_open();
	if (!a)
		check_skip("no futex_waitv(2) here: %s", strerror(errno));
	gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(gone != MAP_FAILED);
	CHECK_EQ(fg_async_watch(a, &good[0], 0, false, 1), 0);

	/* Not aligned. */
	CHECK_EQ(fg_async_watch(a, (uint32_t *)((char *)&gone[1] + 1), 0, false, 2), 0);
	CHECK_EQ(next(a, &cookie), EINVAL);
	CHECK_EQ(cookie, 2);

	/* No memory from the beginning, at two addresses. */
	CHECK_EQ(fg_async_watch(a, NULL, 0, false, 3), 0);
	CHECK_EQ(next(a, &cookie), EFAULT);
	CHECK_EQ(cookie, 3);

	/* No memory any more, when the helper looks again for another reason. */
	CHECK_EQ(fg_async_watch(a, gone, 0, false, 4), 0);
	CHECK_EQ(fg_async_watch(a, &good[1], 0, false, 5), 0);
	CHECK_EQ(munmap(gone, 4096), 0);
	CHECK_EQ(fg_async_watch(a, &good[1], 7, false, 6), 0);
	for (int seen = 0; seen != 3;) {
		error = next(a, &cookie);
		CHECK(cookie == 4 || cookie == 6);
		CHECK_EQ(error, cookie == 4 ? EFAULT : 0);
		seen |= cookie == 4 ? 1 : 2;
	}
	CHECK(!fg_async_fetch(a, &cookie, &error));

	/* The others have been watched all the time. */
	wake(&good[0]);
	CHECK_EQ(next(a, &cookie), 0);
	CHECK_EQ(cookie, 1);
	wake(&good[1]);
	CHECK_EQ(next(a, &cookie), 0);
	CHECK_EQ(cookie, 5);
	CHECK(!fg_async_fetch(a, &cookie, &error));

	/* It is one only afterwards. */
	CHECK(join(start(is_cancelled, a)) == PTHREAD_CANCELED);
	CHECK(closed);
	return 0;
}
