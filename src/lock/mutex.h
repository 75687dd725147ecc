/* SPDX-License-Identifier: MIT */
/*
 * The mutex: an fg_lock with the types of POSIX, in the 40 bytes of a
 * pthread_mutex_t.  `kind` stands where glibc has it and holds glibc's numbers,
 * so that its static initialisers are ours; everything else is ours alone.
 *
 * All functions return 0 or a positive error number.
 */
#ifndef FG_MUTEX_H
#define FG_MUTEX_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/lock.h"

enum {
	FG_KIND_NORMAL = 0,
	FG_KIND_RECURSIVE = 1,
	FG_KIND_ERRORCHECK = 2,
	FG_KIND_ADAPTIVE = 3,	  /* a hint to glibc; every mutex here adapts */
	FG_KIND_TYPE = 0x03,
	FG_KIND_FOREIGN = 0xf0,	  /* robust 0x10, PI 0x20, protect 0x40, shared 0x80: not ours */
	FG_KIND_NO_ELISION = 0x200, /* glibc's own note to itself */
};

struct fg_mutex {
	struct fg_lock lock;
	int32_t kind;
	uint32_t count; /* recursive: acquisitions beyond the first; guarded by the lock */
	uint64_t unused[2];
};
_Static_assert(sizeof(struct fg_mutex) == 40, "in place of pthread_mutex_t");
_Static_assert(offsetof(struct fg_mutex, kind) == 16, "glibc's static initialisers set it");

static inline bool fg_mutex_is_plain(const struct fg_mutex *m)
{
	uint32_t type = (uint32_t)m->kind & (FG_KIND_TYPE | FG_KIND_FOREIGN);

	return type == FG_KIND_NORMAL || type == FG_KIND_ADAPTIVE;
}

static inline bool fg_mutex_is_ours(const struct fg_mutex *m)
{
	return !(m->kind & FG_KIND_FOREIGN);
}

/* Recursive and errorcheck types: out of line. */
int fg_mutex_lock_typed(struct fg_mutex *m, struct fg_self *t, const struct fg_deadline *deadline);
int fg_mutex_trylock_typed(struct fg_mutex *m, struct fg_self *t);
int fg_mutex_unlock_typed(struct fg_mutex *m, struct fg_self *t);

/* 0; ETIMEDOUT with a deadline; EDEADLK (errorcheck, own already); EAGAIN (recursion too deep). */
static inline int fg_mutex_lock_until(struct fg_mutex *m, const struct fg_deadline *deadline)
{
	struct fg_self *t = fg_self();

	if (fg_likely(fg_mutex_is_plain(m)))
		return fg_lock_until(&m->lock, t, deadline);
	return fg_mutex_lock_typed(m, t, deadline);
}

/* 0 or EBUSY; EAGAIN (recursion too deep). */
static inline int fg_mutex_trylock(struct fg_mutex *m)
{
	struct fg_self *t = fg_self();

	if (fg_likely(fg_mutex_is_plain(m)))
		return fg_trylock(&m->lock, t) ? 0 : EBUSY;
	return fg_mutex_trylock_typed(m, t);
}

/* 0; EPERM (recursive, errorcheck: not the owner). */
static inline int fg_mutex_unlock(struct fg_mutex *m)
{
	struct fg_self *t = fg_self();

	if (fg_likely(fg_mutex_is_plain(m))) {
		fg_unlock(&m->lock, t);
		return 0;
	}
	return fg_mutex_unlock_typed(m, t);
}

/* 0 or EBUSY. */
static inline int fg_mutex_destroy(struct fg_mutex *m)
{
	if (fg_load_relaxed(&m->lock.word) & FG_WORD_ID)
		return EBUSY;
	m->kind = -1; /* as glibc does; not ours any more, and glibc says EINVAL to it */
	return 0;
}

#endif
