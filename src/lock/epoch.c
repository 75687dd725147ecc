/* SPDX-License-Identifier: MIT */
#include "lock/epoch.h"

#include "lock/lock.h"

static struct fg_lock one_at_a_time;

/* Relaxed: only this thread can have written its own id. */
static bool is_mine(void)
{
	uint32_t owner = fg_load_relaxed(&one_at_a_time.word) & FG_WORD_ID;

	return owner && owner == fg_self_tls.id;
}

bool _fg_epoch_lock(void)
{
	if (is_mine()) /* a signal handler, in the middle of another object */
		return false;
	_fg_lock(&one_at_a_time);
	return true;
}

void _fg_epoch_unlock(bool taken)
{
	if (taken)
		_fg_unlock(&one_at_a_time);
}

void _fg_enter_epoch(uint32_t *epoch, void (*empty)(void *object), void *object)
{
	uint32_t now = fg_epoch;
	bool taken = _fg_epoch_lock();

	if (fg_load_relaxed(epoch) != now) {
		empty(object);
		/* pairs with the acquire of whoever looks at it first */
		fg_store_release(epoch, now);
	}
	_fg_epoch_unlock(taken);
}

void _fg_epoch_after_fork(void)
{
	/* A handler has forked that interrupted this very thread: it will release it here too. */
	if (!is_mine())
		one_at_a_time = (struct fg_lock){0};
}
