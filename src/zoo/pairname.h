/* SPDX-License-Identifier: MIT */
/*
 * hybrid:FAST+BLOCKING, the name of a pair of the zoo's locks, and with "+cond" behind it of one
 * with the condition variable of the BPF Hybrid Lock; for the library and the command.
 *
 * FAST is one that does not stand more threads than CPUs: it is chosen for its spinning.
 * BLOCKING is one that does, without a monitor, and not glibc's, which has no place in a block of
 * ours.
 */
#ifndef FG_ZOO_PAIRNAME_H
#define FG_ZOO_PAIRNAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "zoo/table.h"

struct zoo_pair {
	size_t fast, slow; /* lines of ZOO_TABLE */
	bool cond;
};

static inline bool zoo_pair_by_name(const char *name, struct zoo_pair *p)
{
	static const struct {
		const char *name;
		unsigned can;
	} locks[] = {
#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) {name, can},
	    ZOO_TABLE(ZOO)
#undef ZOO
	};
	const size_t n = sizeof(locks) / sizeof(locks[0]);
	const char *fast, *slow, *end;

	if (strncmp(name, "hybrid:", 7))
		return false;
	fast = name + 7;
	slow = strchr(fast, '+');
	if (!slow)
		return false;
	slow++;
	end = slow + strcspn(slow, "+");
	p->cond = !strcmp(end, "+cond");
	if (*end && !p->cond)
		return false;
	p->fast = p->slow = n;
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(locks[i].name);

		if (!(locks[i].can & (ZOO_OVERSUBSCRIBED | ZOO_MONITOR)) &&
		    length == (size_t)(slow - 1 - fast) && !strncmp(locks[i].name, fast, length))
			p->fast = i;
		if ((locks[i].can & (ZOO_OVERSUBSCRIBED | ZOO_MONITOR)) == ZOO_OVERSUBSCRIBED &&
		    strncmp(locks[i].name, "glibc-", 6) && length == (size_t)(end - slow) &&
		    !strncmp(locks[i].name, slow, length))
			p->slow = i;
	}
	return p->fast < n && p->slow < n;
}

#endif
