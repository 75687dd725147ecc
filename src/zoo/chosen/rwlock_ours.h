/* SPDX-License-Identifier: MIT */
/*
 * In place of src/lock/chosen/rwlock_ours.h, which says what these are for: the rwlock of the zoo
 * (zoo/rwlock.c).
 */
#ifndef FG_RWLOCK_OURS_H
#define FG_RWLOCK_OURS_H

#include "lock/rwlock.h"

#define FG_RW_OURS_SHARED 0x20000000u /* of the kind: process-shared, and the zoo's all the same */

bool _fg_rwlock_may_be_shared(void);

static inline void _fg_chosen_rwlock_init(struct fg_rwlock *rw, int kind, bool shared)
{
	*rw = (struct fg_rwlock){.kind = (uint32_t)kind | (shared ? FG_RW_OURS_SHARED : 0)};
}

void _fg_chosen_rwlock_destroy(struct fg_rwlock *rw);
int _fg_chosen_rwlock_rdlock(struct fg_rwlock *rw, const struct fg_deadline *deadline,
			     const void *caller);
int _fg_chosen_rwlock_wrlock(struct fg_rwlock *rw, const struct fg_deadline *deadline,
			     const void *caller);
int _fg_chosen_rwlock_tryrdlock(struct fg_rwlock *rw);
int _fg_chosen_rwlock_trywrlock(struct fg_rwlock *rw);
int _fg_chosen_rwlock_unlock(struct fg_rwlock *rw);

#endif
