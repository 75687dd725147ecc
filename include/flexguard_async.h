/* SPDX-License-Identifier: MIT */
/*
 * Waiting for futexes without a thread that sleeps: the futex paper's FUTEX_FD and asynchronous
 * wait, with today's means.  A descriptor becomes readable (poll(2), epoll(7)) when one of the
 * words watched was woken.  Franke, Russell, Kirkwood, OLS 2002, section 5; futex_waitv(2), Linux
 * 5.16.
 *
 * Link with -lflexguard-async; it needs no other part of FlexGuard, and works beside any lock whose
 * word is a futex.
 *
 * One helper thread for 127 words, with all signals blocked.  All functions may be called by any
 * thread, none by a signal handler, and none is a cancellation point.  A child of fork() has no
 * helpers: it opens an object of its own.
 */
#ifndef FLEXGUARD_ASYNC_H
#define FLEXGUARD_ASYNC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fg_async;

/* words watched at once, those that are due and not fetched included; not varied */
#define FG_ASYNC_MAX 4096

/*
 * NULL with errno: ENOSYS (the kernel has no futex_waitv), EPERM (a filter forbids it), EMFILE,
 * ENFILE, ENOMEM.
 */
struct fg_async *fg_async_open(void);
/* Also forgets all that is watched, as fg_async_cancel(); after it, nothing touches the words. */
void fg_async_close(struct fg_async *a);

/*
 * An eventfd(2), readable while something can be fetched, and sometimes when nothing can.  Owned by
 * the object: not to be read or closed.  fg_async_fetch() makes it unreadable when it finds
 * nothing.
 */
int fg_async_fd(const struct fg_async *a);

/*
 * Watches the 4-byte word until it is woken once, or found not to be `value`; then `cookie` can be
 * fetched.  No wake-up is lost if the word is changed before FUTEX_WAKE and does not become `value`
 * again at once: of several words that are woken together futex_waitv(2) names one, and the others
 * are known by what is in them.
 * `shared`: woken by FUTEX_WAKE without FUTEX_PRIVATE_FLAG.  The word is read by the kernel only:
 * one that is no memory (any more) is fetched with an error.
 *
 * 0, ENOSPC (FG_ASYNC_MAX), ENOMEM, or EAGAIN (no thread).
 */
int fg_async_watch(struct fg_async *a, uint32_t *word, uint32_t value, bool shared,
		   uint64_t cookie);

/*
 * Forgets one that was not fetched yet; false: there is none.  After it, nothing touches the word.
 * If it had been woken, or may have been, another waiter of the word is, in its place.
 */
bool fg_async_cancel(struct fg_async *a, uint64_t cookie);

/*
 * The next one that is due; false: none.  `error`: 0, or why it could not be waited for: EFAULT
 * (the word is not readable memory), EINVAL (it is not aligned to 4 bytes), or another error of
 * FUTEX_WAIT.
 */
bool fg_async_fetch(struct fg_async *a, uint64_t *cookie, int *error);

#ifdef __cplusplus
}
#endif

#endif
