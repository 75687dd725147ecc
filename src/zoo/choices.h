/* SPDX-License-Identifier: MIT */
/*
 * What a program may choose for a lock of its own, in place of its process: both are the futex
 * paper's (Franke, Russell, Kirkwood, OLS 2002, sections 2 and 3.1.4).  libflexguard-zoo.so exports
 * them: dlsym(RTLD_DEFAULT, name) is NULL without.
 */
#ifndef FG_ZOO_CHOICES_H
#define FG_ZOO_CHOICES_H

#include <pthread.h>
#include <stdint.h>

/*
 * Releases the mutex as pthread_mutex_unlock() does, but passes it to the first that sleeps for it
 * ("futex_up_fair"), which the next release need not do.  0; EPERM (recursive, errorcheck: not the
 * owner); ENOTSUP: a mutex of a lock that has one way to be released, and it is still held.
 */
int zoo_mutex_unlock_fairly(pthread_mutex_t *mutex);

/*
 * How long waiters for this mutex spin before they sleep, in ns, in place of FLEXGUARD_SPIN_NS.
 * To be called before others use it; a process-shared one has it in all processes.  0; ENOTSUP: its
 * lock does not spin, or not for a time.
 */
int zoo_mutex_spin(pthread_mutex_t *mutex, uint32_t ns);

#endif
