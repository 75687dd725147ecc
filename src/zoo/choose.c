/* SPDX-License-Identifier: MIT */
#include "zoo/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/options.h"
#include "zoo/hybrid.h"
#include "zoo/pairname.h"

static const struct {
	const char *name;
	const struct zoo_lock *lock;
	unsigned can;
} locks[] = {
#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	{name, &zoo_##id, can},
    ZOO_TABLE(ZOO)
#undef ZOO
};

static const struct {
	const char *name;
	const struct zoo_rwlock_ops *rwlock;
	unsigned can;
} rwlocks[] = {
#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	{name, &zoo_##id, can},
    ZOO_RWLOCK_TABLE(ZOO)
#undef ZOO
};

const struct zoo_choice *zoo_choice;

static __attribute__((cold, noreturn)) void refuse(const char *name, const char *why)
{
	dprintf(STDERR_FILENO, "flexguard: --lock %s: %s\n", name, why);
	_exit(125);
}

static struct zoo_choice named(const char *name)
{
	/* If it names a rwlock, the program's mutexes are these. */
	struct zoo_choice c = {.lock = &zoo_futex, .lock_can = ZOO_TIMED | ZOO_SHARED};
	struct zoo_pair pair;

	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		if (!strcmp(name, locks[i].name))
			c.lock = locks[i].lock, c.lock_can = locks[i].can;
	for (size_t i = 0; i < sizeof(rwlocks) / sizeof(rwlocks[0]); i++)
		if (!strcmp(name, rwlocks[i].name))
			c.rwlock = rwlocks[i].rwlock, c.rwlock_can = rwlocks[i].can;
	if (zoo_pair_by_name(name, &pair)) {
		zoo_pair_choose(locks[pair.fast].lock, locks[pair.slow].lock);
		c.lock = pair.cond ? &zoo_hybridpaircond : &zoo_hybridpair;
		c.lock_can = 0;
	}
	return c;
}

/* At the first lock, which may come before any constructor; the environment is there by then. */
__attribute__((noinline, cold)) const struct zoo_choice *zoo_choose(void)
{
	static struct zoo_choice choice;
	const char *name = secure_getenv(FG_LOCK_ENV), *why;
	struct zoo_choice c = named(name ? name : "");

	/* `flexguard run` has tried it too: this is for users who preload the library by hand. */
	why = c.lock->start ? c.lock->start() : NULL;
	if (why)
		refuse(name, why);
	/* If threads of a constructor come at once, all write the same. */
	fg_store_relaxed(&choice.lock, c.lock);
	fg_store_relaxed(&choice.lock_can, c.lock_can);
	fg_store_relaxed(&choice.rwlock, c.rwlock);
	fg_store_relaxed(&choice.rwlock_can, c.rwlock_can);
	fg_store_release(&zoo_choice, &choice);
	return &choice;
}

/* Before main, so that what a lock cannot do is not found out in the middle. */
__attribute__((constructor)) static void start(void)
{
	zoo_chosen();
}
