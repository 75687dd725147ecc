/* SPDX-License-Identifier: MIT */
/* What FLEXGUARD_LOCK names (choose.c). */
#ifndef FG_ZOO_CHOOSE_H
#define FG_ZOO_CHOOSE_H

#include "zoo/rwlock.h"
#include "zoo/zoo.h"

struct zoo_choice {
	const struct zoo_lock *lock;
	unsigned lock_can;		     /* ZOO_* of table.h */
	const struct zoo_rwlock_ops *rwlock; /* NULL: FlexGuard's own */
	unsigned rwlock_can;
};

/* NULL before the first lock. */
extern const struct zoo_choice *zoo_choice;
const struct zoo_choice *zoo_choose(void);

static inline const struct zoo_choice *zoo_chosen(void)
{
	const struct zoo_choice *c = fg_load_acquire(&zoo_choice); /* pairs with zoo_choose() */

	return fg_likely(c != NULL) ? c : zoo_choose();
}

#endif
