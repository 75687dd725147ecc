/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A critical thread has lost its CPU: its slot counts that, and a lock that can switch is asked to
 * (FG_ROLE_MODE).
 */
#ifndef FG_SWITCH_H
#define FG_SWITCH_H

#include "marks.h"
#include "threads.h"

/* Its process's own slots are all that it can name. */
__noinline int ask_to_switch(__u32 index, __u32 number)
{
	struct fg_slot *slot = slot_at(index, number);

	if (slot)
		WRITE_ONCE(slot->mode, 1);
	return 0;
}

static __always_inline void preempted_while_critical(struct thread *t, struct fg_slot *slot)
{
	__u32 mode = READ_ONCE(slot->role) >> FG_ROLE_MODE;

	__sync_fetch_and_add(&slot->preempted, 1);
	if (mode)
		ask_to_switch(t->index, mode);
}

#endif
