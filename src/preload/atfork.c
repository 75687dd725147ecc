/* SPDX-License-Identifier: MIT */
/*
 * What pthread_atfork() calls, in whichever library; and that function itself, which libraries that
 * were linked before 2003 have from libc.  A child's handlers run in the order in which they were
 * registered, and ours throws away what the parent's threads have left in locks.  So it has to be
 * the first: one before it may start threads, and ours would take these, and what they wait for,
 * for the parent's.  But the constructors of the program's libraries run before ours.
 */
#include <pthread.h>

#include "lock/start.h"
#include "preload/next.h"
#include "preload/preload.h"

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);

FG_EXPORT(__register_atfork);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso)
{
	fg_next_find();
	_fg_register_at_fork(); /* which comes here as well */
	return fg_next_register_atfork(prepare, parent, child, dso);
}

#ifdef FG_VERSIONS_pthread_atfork
/* libc registers these for itself, which is never unloaded: for nobody is the same. */
FG_EXPORT(pthread_atfork);
int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	return __register_atfork(prepare, parent, child, NULL);
}
#endif
