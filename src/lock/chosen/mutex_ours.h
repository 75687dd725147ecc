/* SPDX-License-Identifier: MIT */
/*
 * Included by lock/mutex.h, which says what these are for, and by nothing else: the mutex of
 * FlexGuard itself.
 */
#ifndef FG_MUTEX_OURS_H
#define FG_MUTEX_OURS_H

static inline bool _fg_mutex_is_normal(const struct fg_mutex *m)
{
	return !(m->lock.tag & (FG_KIND_TYPE | FG_KIND_NATIVE));
}

static inline bool _fg_mutex_is_ours(const struct fg_mutex *m)
{
	return !(m->lock.tag & FG_KIND_NATIVE);
}

/* They stay glibc's, whose users in other processes need not run FlexGuard. */
static inline bool _fg_mutex_may_be_shared(void)
{
	return false;
}

static inline uint32_t _fg_mutex_kind(int type, bool shared)
{
	(void)shared;
	return (uint32_t)type & FG_KIND_TYPE;
}

void _fg_mutex_forget(struct fg_mutex *m);

static inline void _fg_mutex_is_made(struct fg_mutex *m)
{
	if (fg_unlikely(fg_epoch))
		_fg_mutex_forget(m);
}

static inline void _fg_mutex_waiters(struct fg_mutex *m, uint32_t more)
{
	fg_add_relaxed(&m->lock.tag, more << FG_KIND_WAITERS);
}

static inline int _fg_mutex_destroy(struct fg_mutex *m)
{
	if (fg_load_relaxed(&m->lock.word) & FG_WORD_ID ||
	    fg_load_relaxed(&m->lock.tag) >> FG_KIND_WAITERS)
		return EBUSY;
	m->lock.tag = ~0u; /* as glibc does; not ours any more, and glibc says EINVAL to it */
	return 0;
}

bool _fg_mutex_wakes_at_release(struct fg_mutex *m);
bool _fg_mutex_wake_at_release(struct fg_mutex *m, struct fg_waiter *n);

#endif
