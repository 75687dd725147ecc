/* SPDX-License-Identifier: MIT */
/*
 * In place of src/lock/chosen/cond_ours.h, which says what these are for: the condition variable of
 * the zoo (zoo/cond.c).
 */
#ifndef FG_COND_OURS_H
#define FG_COND_OURS_H

#include "lock/cond.h"

int _fg_chosen_cond_wait(struct fg_cond *c, const struct fg_cond_mutex *m,
			 const struct fg_deadline *deadline);
void _fg_chosen_cond_signal(struct fg_cond *c);
void _fg_chosen_cond_broadcast(struct fg_cond *c);
void _fg_chosen_cond_destroy(struct fg_cond *c);

#endif
