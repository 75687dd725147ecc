/* SPDX-License-Identifier: MIT */
#include "zoo/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/options.h"
#include "zoo/hybrid.h"
#include "zoo/pairname.h"

/* The program's mutexes, if a rwlock is chosen. */
#define MUTEXES_OF_RWLOCKS .lock = &zoo_futex, .lock_can = ZOO_TIMED | ZOO_SHARED

/* First the mutexes, in the order of their table: a pair's name has indices of it. */
static const struct {
	const char *name;
	struct zoo_choice choice;
} locks[] = {
#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	{name, {.lock = &zoo_##id, .lock_can = can}},
    ZOO_TABLE(ZOO)
#undef ZOO
#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	{name, {MUTEXES_OF_RWLOCKS, .rwlock = &zoo_##id, .rwlock_can = can}},
	ZOO_RWLOCK_TABLE(ZOO)
#undef ZOO
};

const struct zoo_choice *zoo_choice;

static __attribute__((cold, noreturn)) void refuse(const char *name, const char *why)
{
	dprintf(STDERR_FILENO, "flexguard: --lock %s: %s\n", name, why);
	_exit(125);
}

/* False: there is no such lock. */
static bool named(const char *name, struct zoo_choice *c)
{
	struct zoo_pair pair;

	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		if (!strcmp(name, locks[i].name)) {
			*c = locks[i].choice;
			return true;
		}
	if (!zoo_pair_by_name(name, &pair))
		return false;
	zoo_pair_choose(locks[pair.fast].choice.lock, locks[pair.slow].choice.lock);
	c->lock = pair.cond ? &zoo_hybridpaircond : &zoo_hybridpair;
	c->lock_can = 0;
	return true;
}

/* At the first lock, which may come before any constructor; the environment is there by then. */
__attribute__((noinline, cold)) const struct zoo_choice *zoo_choose(void)
{
	static struct zoo_choice choice;
	const char *name = secure_getenv(FG_LOCK_ENV), *why;
	struct zoo_choice c = {MUTEXES_OF_RWLOCKS};

	/* `flexguard run` has tried it too: this is for users who preload the library by hand. */
	if (name && *name && !named(name, &c))
		refuse(name, "no such lock (flexguard locks)");
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
