/* SPDX-License-Identifier: MIT */
/* fg_spin_*: the API's names for lock/spin.h. */
#include "api/adapt.h"

#include <errno.h>

#include "lock/spin.h"

FG_SAME_LAYOUT(fg_spin_t, int32_t);
_Static_assert(FG_SPIN_FREE == FG_SPIN_INIT_, "the header's initialiser");

int fg_spin_init(fg_spin_t *spin)
{
	fg_store_release(&spin->fg_state, FG_SPIN_FREE);
	return 0;
}

int fg_spin_destroy(fg_spin_t *spin)
{
	return 0;
}

int fg_spin_lock(fg_spin_t *spin)
{
	_fg_spin_lock(&spin->fg_state, FG_CALLER);
	return 0;
}

int fg_spin_trylock(fg_spin_t *spin)
{
	/* A held lock is left alone: no store to its line. */
	if (fg_load_relaxed(&spin->fg_state) != FG_SPIN_FREE)
		return EBUSY;
	return _fg_spin_trylock(&spin->fg_state, fg_self()) ? 0 : EBUSY;
}

int fg_spin_unlock(fg_spin_t *spin)
{
	_fg_spin_unlock(&spin->fg_state);
	return 0;
}
