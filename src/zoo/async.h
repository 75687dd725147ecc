/* SPDX-License-Identifier: MIT */
/*
 * Waiting for futexes without a thread that sleeps: the futex paper's FUTEX_FD and AFUTEX_WAIT, with
 * today's means.  A descriptor becomes readable (poll(2), epoll(7)) when one of the words watched was woken.
 * Franke, Russell, Kirkwood, OLS 2002, section 6; futex_waitv(2), Linux 5.16.
 *
 * One helper thread for 127 words.  All functions may be called by any thread.
 */
#ifndef FG_ZOO_ASYNC_H
#define FG_ZOO_ASYNC_H

#include <stdbool.h>
#include <stdint.h>

struct zoo_async;

#define ZOO_ASYNC_MAX 4096 /* words watched at once */

/* NULL with errno: ENOSYS (no futex_waitv), EMFILE, ENOMEM, EAGAIN (no thread). */
struct zoo_async *zoo_async_open(void);
/* The eventfd; owned by the object. */
int zoo_async_fd(const struct zoo_async *a);
/*
 * Watches a word until it is woken once, or found not to be `value`; then `cookie` can be fetched.  Wake-ups
 * are never lost: as with FUTEX_WAIT, one between this call and the sleep is seen by the changed value, so
 * who wakes must change the word before.  `shared`: woken by FUTEX_WAKE without FUTEX_PRIVATE_FLAG.
 * 0, ENOSPC, ENOMEM or EAGAIN (no thread).
 */
int zoo_async_watch(struct zoo_async *a, uint32_t *word, uint32_t value, bool shared, uint64_t cookie);
/* Forgets one that was not fetched yet; false: there is none.  After it, nothing touches the word. */
bool zoo_async_cancel(struct zoo_async *a, uint64_t cookie);
/* The next one that is due; false: none. */
bool zoo_async_fetch(struct zoo_async *a, uint64_t *cookie);
void zoo_async_close(struct zoo_async *a);

#endif
