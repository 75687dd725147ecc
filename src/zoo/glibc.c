/* SPDX-License-Identifier: MIT */
/*
 * Glibc's own mutexes of other kinds than the program asked for: what would it be like if they were
 *
 *   glibc-adaptive   PTHREAD_MUTEX_ADAPTIVE_NP: spins for a while that it learns, then blocks
 *   glibc-robust     PTHREAD_MUTEX_ROBUST: recovers from an owner that died (set_robust_list(2)); the
 *                    zoo makes what it finds consistent, since the program does not know
 *   glibc-pi         PTHREAD_PRIO_INHERIT: the kernel orders waiters by priority, and boosts the owner
 *
 * src/zoo/mutex.c does it, at the first lock: types other than the default one stay what they are.
 */
#include "lock/mutex.h"
#include "zoo/zoo.h"

const struct zoo_lock zoo_adaptive = {.glibc_kind = FG_KIND_ADAPTIVE};
const struct zoo_lock zoo_robust = {.glibc_kind = FG_KIND_ROBUST};
const struct zoo_lock zoo_pi = {.glibc_kind = FG_KIND_INHERIT};
