/* SPDX-License-Identifier: MIT */
#include "sys/filter.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "arch/arch.h"
#include "sys/clock.h"
#include "sys/libc.h"
#include "sys/spread.h"

uint32_t fg_filters;
static uint32_t own; /* of these, not there when the process began */

bool fg_filter_is_own(void)
{
	return fg_load_seq_cst(&own);
}

/*
 * Calls that threads are about to make.  Where 104 yield while they wait for a semaphore, these
 * lines move 0.4 times an operation, and if they are 16, 70 times (simulated, 1 us).
 */
#define COUNTERS 256u
static struct {
	uint32_t calls;
} __attribute__((aligned(64))) about[COUNTERS];

/*
 * How long a filter waits for them: a look for a monitor takes a quarter of a second at most.  Not
 * varied.
 */
#define CALLS_WAIT_NS  1000000000u
#define CALLS_SLEEP_NS 50000
/* Sleeps that take as long: without a vDSO no clock tells (clock.c, read_nothing()). */
#define CALLS_SLEEPS (CALLS_WAIT_NS / CALLS_SLEEP_NS)

bool fg_call_begins(uint32_t whose)
{
	uint32_t *calls = &about[whose % COUNTERS].calls;

	/* Dekker with fg_filter_comes(): it sees the count, or we see the filter. */
	__atomic_fetch_add(calls, 1, __ATOMIC_SEQ_CST);
	if (fg_likely(!fg_load_seq_cst(&fg_filters)))
		return true;
	fg_call_ends(whose);
	return false;
}

void fg_call_ends(uint32_t whose)
{
	uint32_t *calls = &about[whose % COUNTERS].calls;

	/*
	 * 0: a signal handler that came in between has forked, and this is the child.  No
	 * compare-and-swap: a thousand threads that begin at once would repeat it for 70 ms.
	 */
	if (fg_load_relaxed(calls) && !fg_add_release(calls, -1u))
		fg_add_release(calls, 1);
}

static void forget_calls(void)
{
	for (uint32_t i = 0; i < COUNTERS; i++)
		if (fg_load_relaxed(&about[i].calls)) /* a child need not have the pages */
			fg_store_relaxed(&about[i].calls, 0);
}

void fg_filter_after_fork(void)
{
	forget_calls();
}

static void (*tell)(void); /* fg_filter_setup() */

static void (*calls_last)(void); /* fg_filter_before() */

void fg_filter_before(void (*before)(void))
{
	fg_store_release(&calls_last, before);
}

static bool are_calling(void)
{
	for (uint32_t i = 0; i < COUNTERS; i++)
		/* Dekker with fg_call_begins(); so sequentially consistent, too. */
		if (fg_load_seq_cst(&about[i].calls))
			return true;
	return false;
}

static void without_calls(bool filtered)
{
	/* Dekker with fg_filter_setup(): it sees the filter, or we see whom to tell. */
	void (*changed)(void) = fg_load_seq_cst(&tell);

	fg_clock_without_calls(filtered);
	if (changed)
		changed();
}

void fg_filter_comes(void)
{
	static const struct timespec a_while = {.tv_nsec = CALLS_SLEEP_NS};
	uint32_t slept = 0;
	uint64_t began;
	bool first;

	if (!fg_load_relaxed(&fg_filters)) { /* the last time that they may call */
		void (*before)(void) = fg_load_acquire(&calls_last);

		fg_clock_prepare();
		if (before)
			before();
	}
	__atomic_fetch_add(&own, 1, __ATOMIC_SEQ_CST);
	first = !__atomic_fetch_add(&fg_filters, 1, __ATOMIC_SEQ_CST);
	if (first)
		without_calls(true);
	/*
	 * A second one waits as well, without sleep: it may be for all threads (TSYNC), and the
	 * first was not, or still waits.
	 */
	for (began = fg_now_ns();
	     are_calling() && slept < CALLS_SLEEPS && fg_now_ns() - began < CALLS_WAIT_NS;) {
		if (first)
			slept += !fg_syscall6(SYS_nanosleep, (long)&a_while, 0, 0, 0, 0, 0);
		else
			fg_pause();
	}
	/* What has not ended now has been left (longjmp, cancellation): not waited for again. */
	if (are_calling())
		forget_calls();
}

void fg_filter_failed(void)
{
	__atomic_fetch_sub(&own, 1, __ATOMIC_SEQ_CST);
	if (__atomic_fetch_sub(&fg_filters, 1, __ATOMIC_SEQ_CST) == 1)
		without_calls(false);
}

void fg_filter_takes_counter(bool takes)
{
	/* Dekker with fg_filter_setup(), as in without_calls(). */
	void (*changed)(void);

	fg_clock_without_counter(takes);
	changed = fg_load_seq_cst(&tell);
	if (changed)
		changed();
}

/* ---- what the process was started with --------------------------------------- */

struct reader {
	long fd, have, next;
	char piece[1024];
};

/* The beginning of the next line of a file; false at its end. */
static bool next_line(struct reader *r, char *line, size_t size)
{
	size_t length = 0;

	for (;;) {
		if (r->next == r->have) {
			r->have = fg_syscall6(SYS_read, r->fd, (long)r->piece, sizeof(r->piece), 0,
					      0, 0);
			r->next = 0;
			if (r->have <= 0) {
				r->have = 0;
				return false;
			}
		}
		if (r->piece[r->next++] == '\n')
			break;
		if (length < size - 1)
			line[length++] = r->piece[r->next - 1];
	}
	line[length] = 0;
	return true;
}

/* The number behind a name, if the line begins with that. */
static bool field(const char *line, const char *name, long *value)
{
	size_t length = strlen(name);

	if (strncmp(line, name, length))
		return false;
	*value = strtol(line + length, NULL, 10);
	return true;
}

/*
 * proc(5).  Where there is no /proc, nobody knows: -1.  A kernel that says nothing of filters was
 * built without them.
 */
static void read_status(long *mode, long *filters)
{
	struct reader r = {.fd = fg_syscall6(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/status",
					     O_RDONLY | O_CLOEXEC, 0, 0, 0)};
	char line[64];

	*mode = *filters = -1;
	if (r.fd < 0)
		return;
	*mode = 0;
	while (next_line(&r, line, sizeof(line)))
		if (field(line, "Seccomp:", mode) || field(line, "Seccomp_filters:", filters))
			continue;
	fg_syscall6(SYS_close, r.fd, 0, 0, 0, 0, 0);
}

static bool lets_calls_pass(long filters)
{
	const char *known = secure_getenv(FG_FILTERS_ENV);

	if (!known || !*known)
		return false;
	return !strcmp(known, "allow") || (filters > 0 && strtol(known, NULL, 10) == filters);
}

void fg_filter_setup(void (*changed)(void))
{
	static bool done;
	long mode, filters;

	if (fg_likely(fg_load_acquire(&done)))
		return;
	__atomic_store_n(&tell, changed, __ATOMIC_SEQ_CST);
	/*
	 * Installed by another library's constructor, before ours: seen, and a look now could be
	 * what it kills for.
	 */
	if (fg_load_seq_cst(&fg_filters)) {
		changed();
		fg_store_release(&done, true);
		return;
	}
	read_status(&mode, &filters);
	if (mode != 0 && !lets_calls_pass(filters)) {
		fg_clock_prepare();
		fg_store_relaxed(&fg_filters, 1);
		without_calls(true);
	}
	fg_store_release(&done, true);
}

/* ---- who am I ---------------------------------------------------------------- */

/* glibc's own mutex knows; one that nobody waits for needs no call. */
uint32_t fg_tid_of_libc(void)
{
	pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
	uint32_t tid;

	fg_libc_pthread_mutex_lock()(&mine);
	tid = (uint32_t)mine.__data.__owner;
	fg_libc_pthread_mutex_unlock()(&mine);
	return tid;
}

#define STRUCT_PTHREAD 4096 /* it is smaller, and the thread pointer at its start or its end */

ptrdiff_t fg_tid_place(void)
{
	const char *at = NULL, *self = __builtin_thread_pointer();
	uint32_t whose = fg_spread();

	if (!fg_call_begins(whose))
		return 0;
	/* a kernel without CONFIG_CHECKPOINT_RESTORE does not say */
	fg_syscall6(SYS_prctl, PR_GET_TID_ADDRESS, (long)&at, 0, 0, 0, 0);
	fg_call_ends(whose);
	if (!at || at == self || at - self > STRUCT_PTHREAD || self - at > STRUCT_PTHREAD)
		return 0;
	return *(const uint32_t *)at == fg_tid_of_libc() ? at - self : 0;
}

uint32_t fg_tid(void)
{
	uint32_t tid, whose = fg_spread();

	if (!fg_call_begins(whose))
		return fg_tid_of_libc();
	tid = (uint32_t)fg_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
	fg_call_ends(whose);
	return tid;
}
