/* SPDX-License-Identifier: MIT */
/* The counters of what is attached: the per-CPU array `counters` of each object. */
#ifndef FG_SYNCORD_COUNTERS_H
#define FG_SYNCORD_COUNTERS_H

#include <bpf/libbpf.h>

#include "monitor/syncord.h"

int fg_counters_read(uint32_t id, struct fg_policy_counters *out, char *why, size_t size);
/* Of the policy that a struct_ops map is, attached or not; `id`: what messages call it. */
int fg_counters_of_map(int map, uint32_t id, struct fg_policy_counters *out, char *why,
		       size_t size);
void fg_counters_free(struct fg_policy_counters *c);
/*
 * Before it is loaded: the object goes on with the counters of the policy that link `id` holds, or
 * there is an error.
 */
int fg_counters_reuse(int map, uint32_t id, struct bpf_object *obj, const char *name, char *why,
		      size_t size);
/* Of a link its id, and of its struct_ops map (0: it has been detached); either may be NULL. */
int fg_link_id(int link, uint32_t *id, uint32_t *map_id);
/* The struct_ops map that link `id` holds, and its id; -ENOLINK: none any more. */
int fg_link_map(uint32_t id, uint32_t *map_id);

extern const struct fg_policy_calls fg_policy_module_calls; /* syncord.c */

#endif
