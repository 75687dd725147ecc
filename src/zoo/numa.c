/* SPDX-License-Identifier: MIT */
/*
 * On which NUMA node a thread runs: what the kernel keeps in the thread's rseq area since Linux 6.3
 * (cbae6bac29a8, "rseq: Extend struct rseq with numa node id"), or getcpu(2).
 *
 * FLEXGUARD_NODES=N, for tests: as if the CPUs had been dealt out to N nodes.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/rseq.h>

#include "zoo/zoo.h"

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27 /* linux/auxvec.h */
#endif
#define RSEQ_NODE_ID 20	  /* offset in struct rseq, linux/rseq.h */
#define NODES_MAX    1024 /* as Linux has at most (NODES_SHIFT) */

enum how { NOT_ASKED, RSEQ, CALL, PRETENDED };
static uint32_t how, pretended;

const char *zoo_numa_start(void)
{
	const char *nodes = secure_getenv("FLEXGUARD_NODES");
	char *end;
	long n;

	if (!nodes || !*nodes)
		return NULL;
	n = strtol(nodes, &end, 10);
	if (end == nodes || *end || n < 1 || n > NODES_MAX)
		return "FLEXGUARD_NODES is how many NUMA nodes are pretended, 1 to 1024";
	fg_store_relaxed(&pretended, (uint32_t)n);
	fg_store_relaxed(&how, PRETENDED);
	return NULL;
}

static __attribute__((noinline)) uint32_t ask(void)
{
	unsigned cpu, node;

	if (fg_load_relaxed(&how) == NOT_ASKED)
		fg_store_relaxed(&how, __rseq_size && getauxval(AT_RSEQ_FEATURE_SIZE) >=
							  RSEQ_NODE_ID + sizeof(uint32_t) ?
					   RSEQ :
					   CALL);
	if (getcpu(&cpu, &node)) /* a filter that knows it from the vDSO only */
		return 0;
	return fg_load_relaxed(&how) == PRETENDED ? cpu % fg_load_relaxed(&pretended) : node;
}

uint32_t zoo_numa_node(void)
{
	if (fg_unlikely(fg_load_relaxed(&how) != RSEQ))
		return ask();
	return fg_load_relaxed((const uint32_t *)((const char *)__builtin_thread_pointer() +
						  __rseq_offset + RSEQ_NODE_ID));
}
