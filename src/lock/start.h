/* SPDX-License-Identifier: MIT */
#ifndef FG_START_H
#define FG_START_H

/*
 * Registers our handler for the child of a fork, once: the constructor does, unless another
 * library's handler comes earlier (preload/atfork.c).
 */
void _fg_register_at_fork(void);

#endif
