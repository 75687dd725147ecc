/* SPDX-License-Identifier: MIT */
/* The functions behind prctl() and syscall(): what comes next for these names. */
#ifndef FG_NEXT_H
#define FG_NEXT_H

#pragma GCC visibility push(hidden)

/* NULL until they are looked for: at the start, or when one is first needed. */
extern int (*fg_next_prctl)(int option, ...);
extern long (*fg_next_syscall)(long nr, ...);
void fg_next_find(void);

#pragma GCC visibility pop

#endif
