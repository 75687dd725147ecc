/* SPDX-License-Identifier: MIT */
/* Of lock/rwlock.h, in the zoo's library. */
#ifndef FG_RWLOCK_OURS_H
#define FG_RWLOCK_OURS_H

#define FG_RW_OURS_SHARED 0x20000000u /* of the kind: process-shared, and the zoo's all the same */

bool _fg_rwlock_may_be_shared(void);

#endif
