/* SPDX-License-Identifier: MIT */
#include "cli/common/names.h"

#include <string.h>

#include "abi/options.h"
#include "zoo/pairname.h"

#define X(id, name, ...) name,
static const char *const lock_name[] = {FG_LOCK_TABLE(X) ZOO_TABLE(X) ZOO_RWLOCK_TABLE(X)};
const char *const fg_policy_name[] = {FG_POLICY_TABLE(X)};
static const char *const futex_name[] = {FG_FUTEX_TABLE(X)};
#undef X

/* Each name with ", " before it; users of these skip the first two bytes. */
#define X(id, name, ...) ", " name
static const char locks[] = FG_LOCK_TABLE(X) ZOO_TABLE(X)
    ZOO_RWLOCK_TABLE(X) ", hybrid:FAST+BLOCKING";
static const char policies[] = FG_POLICY_TABLE(X);
static const char futexes[] = FG_FUTEX_TABLE(X);
#undef X

int fg_lock_by_name(const char *name)
{
	struct zoo_pair pair;

	for (size_t i = 0; i < sizeof(lock_name) / sizeof(lock_name[0]); i++)
		if (!strcmp(name, lock_name[i]))
			return (int)i;
	return zoo_pair_by_name(name, &pair) ? FG_LOCK_COUNT : -1;
}

int fg_policy_by_name(const char *name)
{
	for (int i = 0; i < FG_POLICY_COUNT; i++)
		if (!strcmp(name, fg_policy_name[i]))
			return i;
	return -1;
}

int fg_futex_by_name(const char *name)
{
	for (int i = 0; i < FG_FUTEX_COUNT; i++)
		if (!strcmp(name, futex_name[i]))
			return i;
	return -1;
}

const char *fg_lock_names(void)
{
	return locks + 2;
}

const char *fg_policy_names(void)
{
	return policies + 2;
}

const char *fg_futex_names(void)
{
	return futexes + 2;
}
