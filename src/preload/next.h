/* SPDX-License-Identifier: MIT */
/* The functions behind prctl(), syscall() and __register_atfork(): what comes next for the name. */
#ifndef FG_NEXT_H
#define FG_NEXT_H

#pragma GCC visibility push(hidden)

/* NULL until they are looked for: at the start, or when one is first needed. */
extern int (*fg_next_prctl)(int option, ...);
extern long (*fg_next_syscall)(long nr, ...);
extern int (*fg_next_register_atfork)(void (*prepare)(void), void (*parent)(void),
				      void (*child)(void), void *dso);
void fg_next_find(void);

#pragma GCC visibility pop

#endif
