/* SPDX-License-Identifier: MIT */
/* Reader-writer locks of the zoo, as zoo.h for mutexes. */
#ifndef FG_ZOO_RWLOCK_H
#define FG_ZOO_RWLOCK_H

#include "zoo/zoo.h"

/* In place of a pthread_rwlock_t (and of struct fg_rwlock). */
struct zoo_rwlock {
	uint32_t s[3];	 /* the lock's own */
	uint32_t wants;	 /* too: a writer is at it */
	uint32_t writer; /* tid of the one that has it */
	uint32_t unused[2];
	uint32_t shared; /* glibc's place: not 0 if process-shared and glibc's */
	uint32_t more[4];
	uint32_t kind; /* glibc's place, and FG_RW_OURS_SHARED */
	uint32_t end;
};
_Static_assert(sizeof(struct zoo_rwlock) == 56 && offsetof(struct zoo_rwlock, shared) == 28 &&
		   offsetof(struct zoo_rwlock, kind) == 48,
	       "in place");

struct zoo_rwlock_ops {
	/* False: the deadline has passed, or zoo_rwlock_too_many(). */
	bool (*rdlock)(struct zoo_rwlock *l, const struct fg_deadline *deadline);
	bool (*tryrd)(struct zoo_rwlock *l);
	void (*rdunlock)(struct zoo_rwlock *l);
	bool (*wrlock)(struct zoo_rwlock *l, const struct fg_deadline *deadline);
	bool (*trywr)(struct zoo_rwlock *l);
	void (*wrunlock)(struct zoo_rwlock *l);
};

#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	extern const struct zoo_rwlock_ops zoo_##id;
ZOO_RWLOCK_TABLE(ZOO)
#undef ZOO

static inline bool zoo_rwlock_writes(const struct zoo_rwlock *l)
{
	return fg_load_relaxed(&l->writer);
}

/*
 * On a word of the lock, which may be process-shared.  Results as fg_futex_wait() and
 * fg_futex_wake().
 */
int zoo_rwlock_wait(struct zoo_rwlock *l, uint32_t *word, uint32_t value,
		    const struct fg_deadline *deadline);
bool zoo_rwlock_is_shared(const struct zoo_rwlock *l);
int zoo_rwlock_wake(uint32_t *word, int count, bool shared);

/* Says so to the caller of rdlock or wrlock: false. */
bool zoo_rwlock_too_many(void);

#endif
