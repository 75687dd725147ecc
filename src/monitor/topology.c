/* SPDX-License-Identifier: MIT */
#include "monitor/topology.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "abi/protocol.h"

/* Data caches of more levels than the kernel has ever named. */
#define INDICES 10

/* The node's number in the place of enum fg_near's. */
#define NODE_SHIFT 5

/* The file's first number, as in "8-15,24-31"; -1: there is no such file. */
static int first_number(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%d", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

/* The first of the CPUs that share its last-level cache. */
static int cache_of(const char *root, int cpu)
{
	char path[256];
	int first = cpu, level, highest = -1;

	for (int i = 0; i < INDICES; i++) {
		snprintf(path, sizeof(path), "%s/cpu/cpu%d/cache/index%d/level", root, cpu, i);
		level = first_number(path);
		if (level < 0)
			break;
		if (level < highest)
			continue;
		highest = level;
		snprintf(path, sizeof(path), "%s/cpu/cpu%d/cache/index%d/shared_cpu_list", root,
			 cpu, i);
		first = first_number(path);
	}
	return first;
}

/* Calls put() for each number of a list as "0-3,8". */
static void for_each_number(const char *path, void (*put)(int number, void *arg), void *arg)
{
	FILE *f = fopen(path, "re");
	int from, to, c = ',';

	if (!f)
		return;
	while (c == ',' && fscanf(f, "%d", &from) == 1) {
		to = from;
		c = getc(f);
		if (c == '-') {
			if (fscanf(f, "%d", &to) != 1)
				break;
			c = getc(f);
		}
		for (int i = from; i >= 0 && i <= to && i < FG_MAX_CPUS; i++)
			put(i, arg);
	}
	fclose(f);
}

struct node {
	const char *root;
	uint8_t *near;
	int n, number, caches;
	int cache[FG_NEAR_CACHE + 1]; /* first CPUs of those that have a number */
	bool shared;		      /* one of them, by two CPUs */
};

static void put_cpu(int cpu, void *arg)
{
	struct node *node = arg;
	int first, i;

	if (cpu >= node->n)
		return;
	first = cache_of(node->root, cpu);
	for (i = 0; i < node->caches && node->cache[i] != first; i++)
		;
	node->shared |= i < node->caches;
	if (i == node->caches) {
		if (i > FG_NEAR_CACHE)
			i = first & FG_NEAR_CACHE;
		else
			node->cache[node->caches++] = first;
	}
	node->near[cpu] = (uint8_t)((node->number << NODE_SHIFT & FG_NEAR_NODE) | i);
}

static void forget_cache(int cpu, void *arg)
{
	const struct node *node = arg;

	if (cpu < node->n)
		node->near[cpu] &= FG_NEAR_NODE;
}

static void put_node(int number, void *arg)
{
	struct node node = *(struct node *)arg;
	char path[256];

	node.number = number;
	snprintf(path, sizeof(path), "%s/node/node%d/cpulist", node.root, number);
	for_each_number(path, put_cpu, &node);
	/* As hypervisors show it: nobody is near anybody, and all are alike. */
	if (!node.shared)
		for_each_number(path, forget_cache, &node);
}

void fg_topology_read(const char *root, uint8_t *near, int n)
{
	struct node nodes = {.root = root, .near = near, .n = n};
	char path[256];

	memset(near, 0, (size_t)n);
	snprintf(path, sizeof(path), "%s/node/online", root);
	for_each_number(path, put_node, &nodes);
}
