/* SPDX-License-Identifier: MIT */
/*
 * Cleanup handlers, as glibc's own waits have them.  With -fexceptions pthread_cleanup_push(3) is
 * an entry in a table, by which the unwinder finds what to do for a call.  longjmp() reads none;
 * who is cancelled asynchronously, or calls pthread_exit() in a signal handler, may be at another
 * instruction; and behind a function without such tables the unwinder finds nobody.  So libc is
 * told as well, and calls the handler when that frame is left, however that is.
 */
#ifndef FG_CLEANUP_H
#define FG_CLEANUP_H

#include <pthread.h>
#include <stdbool.h>

#include "sys/libc.h"

struct fg_cleanup {
	void (*routine)(void *);
	void *arg;
	bool due; /* the unwinder and libc both come to this frame */
	struct _pthread_cleanup_buffer buffer;
};

static inline void fg_cleanup_run(void *cleanup)
{
	struct fg_cleanup *c = cleanup;

	if (!c->due)
		return;
	c->due = false;
	c->routine(c->arg);
}

/* The unwinder's: by an exception, of which libc knows nothing. */
static inline void fg_cleanup_unwound(struct fg_cleanup *c)
{
	if (c->due)
		fg_libc__pthread_cleanup_pop()(&c->buffer, 1);
}

#define fg_cleanup_push(routine_, arg_)                                                        \
	do {                                                                                   \
		struct fg_cleanup fg_cleanup_ __attribute__((cleanup(fg_cleanup_unwound))) = { \
		    .routine = (routine_), .arg = (arg_), .due = true};                        \
	fg_libc__pthread_cleanup_push()(&fg_cleanup_.buffer, fg_cleanup_run, &fg_cleanup_)
#define fg_cleanup_pop(run_)                                         \
	fg_libc__pthread_cleanup_pop()(&fg_cleanup_.buffer, (run_)); \
	fg_cleanup_.due = false;                                     \
	}                                                            \
	while (0)

#endif
