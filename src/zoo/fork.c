/* SPDX-License-Identifier: MIT */
#include "zoo/fork.h"

#include "lock/epoch.h"
#include "lock/mutex.h"
#include "runtime/thread.h"
#include "zoo/extension.h"

/*
 * What its owner has told the monitor, and the kernel, it has told once: if it is this thread,
 * before the fork; else it is one that the child has not.
 */
static void hold_again(struct zoo_mutex *m, const struct zoo_lock *z)
{
	uint32_t sections = fg_sections;
	unsigned extended = zoo_extended();

	z->trylock(m);
	while (fg_sections > sections)
		fg_section_leave(fg_self());
	while (zoo_extended() > extended)
		zoo_extend_end();
}

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
		if (zoo_glibc_renew(m))
			fg_store_release(&m->kind, fresh);
	} else {
		m->s.u64[0] = m->s.u64[1] = 0;
		m->node = NULL;
		if (m->owner)
			hold_again(m, z);
		fg_store_release(&m->kind, fresh); /* pairs with the acquire in zoo_is_parents() */
	}
	_fg_epoch_unlock(taken);
}
