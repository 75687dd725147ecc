/* SPDX-License-Identifier: MIT */
/* Of lock/rwlock.h: process-shared ones stay glibc's, whose users in other processes need not run FlexGuard. */
#ifndef FG_RWLOCK_OURS_H
#define FG_RWLOCK_OURS_H

#define FG_RW_OURS_SHARED 0u

static inline bool _fg_rwlock_may_be_shared(void)
{
	return false;
}

#endif
