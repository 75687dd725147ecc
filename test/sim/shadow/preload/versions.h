/* SPDX-License-Identifier: MIT */
/* Before the one that versions.py makes: nothing is exported, objects call fg__NAME. */
#ifndef FG_VERSIONS_H
#define FG_VERSIONS_H

#define FG_VERSIONS_sem_wait(as)
#define FG_VERSIONS_sem_timedwait(as)
#define FG_VERSIONS_sem_clockwait(as)

#endif
