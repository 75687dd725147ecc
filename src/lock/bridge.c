/* SPDX-License-Identifier: MIT */
#include "lock/bridge.h"

#include "lock/epoch.h"

static void renew(void *bridges)
{
	struct fg_bridges *b = bridges;

	b->renew(b);
}

void *_fg_bridge_of(struct fg_bridges *b, const void *object, uint32_t shift)
{
	if (fg_unlikely(fg_load_acquire(&b->epoch) != fg_epoch))
		_fg_enter_epoch(&b->epoch, renew, b);
	return (char *)b->table + ((uintptr_t)object >> shift) % b->count * b->size;
}
