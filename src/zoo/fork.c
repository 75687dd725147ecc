/* SPDX-License-Identifier: MIT */
#include "zoo/fork.h"

#include "lock/epoch.h"
#include "lock/mutex.h"

__attribute__((noinline, cold)) void zoo_renew(struct zoo_mutex *m, const struct zoo_lock *z)
{
	uint32_t kind = fg_load_relaxed(&m->kind), fresh;
	bool taken;

	fresh = (kind & ~(ZOO_EPOCH_MASK << ZOO_EPOCH_SHIFT)) |
		(fg_load_relaxed(&fg_epoch) & ZOO_EPOCH_MASK) << ZOO_EPOCH_SHIFT;
	if (kind & FG_KIND_ZOO_SHARED) {
		fg_cas_relaxed(&m->kind, &kind, fresh);
		return;
	}
	taken = _fg_epoch_lock();
	if (!zoo_is_parents(m)) {
		/* Another thread has been here. */
	} else if (z->glibcs) {
		zoo_glibc_renew(m);
		fg_store_release(&m->kind, fresh);
	} else {
		m->s.u64[0] = m->s.u64[1] = 0;
		m->node = NULL;
		if (m->owner)
			z->trylock(m);
		fg_store_release(&m->kind, fresh); /* pairs with the acquire in zoo_is_parents() */
	}
	_fg_epoch_unlock(taken);
}
