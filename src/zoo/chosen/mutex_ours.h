/* SPDX-License-Identifier: MIT */
/*
 * Part of lock/mutex.h, which says what these are for: the mutexes of the zoo, which have no short
 * ways.
 */
#ifndef FG_MUTEX_OURS_H
#define FG_MUTEX_OURS_H

enum {
	FG_KIND_ZOO = 0x40000000,	 /* glibc's, but asked through us */
	FG_KIND_ZOO_SHARED = 0x20000000, /* process-shared, and ours all the same */
};

static inline bool _fg_mutex_is_normal(const struct fg_mutex *m)
{
	(void)m;
	return false;
}

static inline bool _fg_mutex_is_ours(const struct fg_mutex *m)
{
	if (m->lock.tag & FG_KIND_ZOO && m->lock.tag != ~0u)
		return true;
	return !(m->lock.tag & FG_KIND_NATIVE);
}

bool _fg_mutex_may_be_shared(void);

static inline uint32_t _fg_mutex_kind(int type, bool shared)
{
	return ((uint32_t)type & FG_KIND_TYPE) | (shared ? FG_KIND_ZOO_SHARED : 0);
}

static inline void _fg_mutex_is_made(struct fg_mutex *m)
{
	(void)m;
}

/* Their mutexes have no place for these. */
static inline void _fg_mutex_waiters(struct fg_mutex *m, uint32_t more)
{
	(void)m;
	(void)more;
}

static inline bool _fg_mutex_wakes_at_release(struct fg_mutex *m)
{
	(void)m;
	return false;
}

static inline bool _fg_mutex_wake_at_release(struct fg_mutex *m, struct fg_waiter *n)
{
	(void)m;
	(void)n;
	return false;
}

int _fg_mutex_destroy(struct fg_mutex *m);

#endif
