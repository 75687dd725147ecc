/* SPDX-License-Identifier: MIT */
/*
 * POSIX semaphores, in glibc's format: named ones live in files that other
 * processes share, whatever they run.  So glibc's functions post and sleep; this
 * is the part before the sleep.
 *
 *   64 bits   value in the low 32, threads that sleep in the high 32
 */
#ifndef FG_SEM_H
#define FG_SEM_H

#include "runtime/decide.h"

/* True if the value was above 0 and has been decremented. */
bool _fg_sem_trywait(uint64_t *sem);
/* The same, but for a value that is left to those that sleep. */
bool _fg_sem_fast(uint64_t *sem);
/*
 * The same, after spinning for a post as long as fg_decide() says so.  Leaves some values to those
 * that sleep.
 */
bool _fg_sem_spin(uint64_t *sem, const struct fg_deadline *deadline);
/* A hint. */
bool _fg_sem_is_empty(uint64_t *sem);
/* One that has slept has it.  Touches nothing of the semaphore, which may be gone. */
void _fg_sem_slept(const uint64_t *sem);

/* The whole of it, for semaphores of one process; no cancellation points. */

#define FG_SEM_MAX 0x7fffffffu

/* 0 or ETIMEDOUT */
int _fg_sem_wait(uint64_t *sem, const struct fg_deadline *deadline);
/* 0 or EOVERFLOW.  Async-signal-safe; touches nothing once another may have it. */
int _fg_sem_post(uint64_t *sem);

#endif
