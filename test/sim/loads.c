/* SPDX-License-Identifier: MIT */
/* Programs by name: options that belong together. */
#include "loads.h"

#include <string.h>

#include "objects/objects.h"

static const struct {
	const char *name, *object;
	struct load load;
} loads[] = {
    /* Figure 1 and 2 of the FlexGuard paper: two cache lines inside, 100 cycles outside. */
    {"paper", "mutex", {.locks = 1, .think = 45 * NS}},
    /* Its figure 3a: 100 buckets; half of the operations only look, nothing is done outside. */
    {"hash-table", "mutex", {.locks = 100, .keys = KEYS_ZIPF, .half_look = true, .think = 60 * NS}},
    /* Its figure 3e: a lock in each leaf; the way down the tree is outside. */
    {"index",
     "mutex",
     {.locks = 4000000, .keys = KEYS_SELF_SIMILAR, .half_look = true, .think = 200 * NS}},
    /* A linked list that is locked hand over hand: its first lock is everybody's. */
    {"list", "mutex", {.locks = 65, .coupled = true, .think = US}},
    /* LevelDB's reads: a section before the search, one after it, at once that of the next. */
    {"gets", "mutex", {.locks = 1, .sections = 2, .think = US}},
    /* The threads of sysbench: a section is a call that gives the CPU to others. */
    {"yields", "mutex", {.locks = 2, .yields = true, .think = 100 * NS}},
    /* A log that is written under its lock: the owner sleeps in its section. */
    {"writes", "mutex", {.locks = 1, .sleeps = 20 * US, .think = 20 * US}},
    /* Each thread has a lock of its own in hand when it takes the one that all want. */
    {"nested", "mutex", {.locks = 1025, .nested = true, .think = US}},
    /* A buffer of 8 between producers and consumers: a mutex and two condition variables. */
    {"pipeline", "cond", {.think = US}},
    /* A leader sends all others off by a broadcast, and waits for the last of them. */
    {"broadcasts", "cond", {.broadcasts = true}},
    /* A round of work, between 5 and 10 us of it, and all wait for the last. */
    {"rounds", "barrier", {.think = 5 * US, .uneven = true}},
    /* The same, and eight sections of a mutex of all before the barrier. */
    {"bursts", "barrier", {.think = 5 * US, .uneven = true, .sections = 8}},
    /* Nine of ten only read. */
    {"readers", "rwlock", {.writes = 10, .think = US}},
    /* Threads that live for some operations: a server with one for each connection. */
    {"connections", "mutex", {.locks = 1, .think = US, .ends_after = 100}},
};

bool load_named(const char *name, const char **object)
{
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		if (!strcmp(loads[i].name, name)) {
			load = loads[i].load;
			load.locks += !load.locks;
			load.rounds = 6;
			*object = loads[i].object;
			return true;
		}
	return false;
}
