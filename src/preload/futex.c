/* SPDX-License-Identifier: MIT */
/*
 * The waits of other libraries.  Rust's std, parking_lot, GLib, Qt, libstdc++'s atomic::wait,
 * Abseil and others sleep by syscall(SYS_futex, ...), which is a function of libc's that
 * others can stand before.  Their waits for private words may begin a little later, with a look at
 * the word (lock/futex_look.h); all other calls, and all that wakes, go on as they came.
 *
 * FLEXGUARD_FUTEX=on; off by default, and without assembly for the architecture
 * (docs/design/preload.md).
 */
#include "preload/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "abi/options.h"
#include "arch/arch.h"
#include "lock/futex_look.h"
#include "preload/next.h"
#include "runtime/environment.h"
#include "runtime/look.h"
#include "runtime/trace.h"
#include "sys/atomic.h"
#include "sys/clock.h"
#include "sys/filter.h"

/* The number that fg__syscall sends to fg_syscall_futex(); while it is off, a number of no call. */
int fg_futex_number __attribute__((visibility("hidden"), used)) = -1;

/*
 * Private, of any waker: shared words are other processes' as well, a waker that asks for some bits
 * may not mean this one, and inheritance and requeueing are the kernel's affair.
 */
static bool is_plain_wait(long nr, int op, uint32_t bits)
{
	op &= ~FUTEX_CLOCK_REALTIME;
	return nr == SYS_futex && (op == FUTEX_WAIT_PRIVATE || (op == FUTEX_WAIT_BITSET_PRIVATE &&
								bits == FUTEX_BITSET_MATCH_ANY));
}

/* A wait that ended in one of these had a word that can be read. */
static bool was_accepted(long r)
{
	return r == 0 || (r == -1 && (errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT));
}

#ifdef FG_BROKEN_FUTEX /* a test proves that the tests notice */
static uint32_t looking;
#define LOOKS(n)	   __atomic_fetch_add(&looking, (n), __ATOMIC_SEQ_CST)
#define LEAVES_OUT(nr, op) ((nr) == SYS_futex && (op) == FUTEX_WAKE_PRIVATE && looking)
#else
#define LOOKS(n)	   ((void)0)
#define LEAVES_OUT(nr, op) false
#endif

static long sleep_known(long nr, long a, long b, long c, long d, long e, long f)
{
	const uint32_t *word = (const uint32_t *)a;
	uint64_t since = _fg_futex_sleeps(word);
	long r = fg_next_syscall(nr, a, b, c, d, e, f);

	if (since)
		_fg_futex_slept(word, since, r == 0);
	return r;
}

static long wait(long nr, long a, long b, long c, long d, long e, long f)
{
	const uint32_t *word = (const uint32_t *)a;
	long r;

	if (!_fg_futex_is_known(word)) {
		r = fg_next_syscall(nr, a, b, c, d, e, f);
		if (was_accepted(r))
			_fg_futex_accepted(word);
		return r;
	}
	/*
	 * A time limit is the kernel's to read, and to refuse: it may be nonsense, or at a bad
	 * address.  A relative one begins after the look.
	 */
	LOOKS(1);
	if (_fg_futex_look(word, (uint32_t)c) && !d) {
		errno = EAGAIN;
		r = -1;
	} else {
		r = sleep_known(nr, a, b, c, d, e, f);
	}
	LOOKS(-1);
	return r;
}

long fg_syscall_futex(long nr, long a, long b, long c, long d, long e, long f, const void *caller)
{
	uint64_t since;
	long r;

	if (LEAVES_OUT(nr, (int)b))
		return 0;
	if (!is_plain_wait(nr, (int)b, (uint32_t)f) || fg_is_filtered())
		return fg_next_syscall(nr, a, b, c, d, e, f);
	if (!fg_is_traced())
		return wait(nr, a, b, c, d, e, f);
	since = fg_now_ns();
	r = wait(nr, a, b, c, d, e, f);
	fg_trace_wait(since, (const void *)a, caller);
	return r;
}

#define X(id, name, help) " " name
static const char choices[] = FG_FUTEX_TABLE(X);
#undef X

static enum fg_futex_choice choice(void)
{
	static const char *const names[] = {
#define X(id, name, help) name,
		FG_FUTEX_TABLE(X)
#undef X
	};
	const char *wanted = secure_getenv(FG_FUTEX_ENV);

	if (!wanted || !*wanted)
		return FG_FUTEX_OFF;
	for (unsigned i = 0; i < FG_FUTEX_COUNT; i++)
		if (!strcmp(wanted, names[i]))
			return (enum fg_futex_choice)i;
	fg_env_say_unknown("value", FG_FUTEX_ENV, wanted, choices);
	return FG_FUTEX_OFF;
}

__attribute__((constructor)) static void start(void)
{
	if (choice() == FG_FUTEX_OFF)
		return;
#ifdef FG_FORWARD_SYSCALL
	fg_next_find();
	fg_look_setup();
	fg_store_release(&fg_futex_number, SYS_futex);
#endif
}
