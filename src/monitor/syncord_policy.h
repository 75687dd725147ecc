/* SPDX-License-Identifier: MIT */
/* What the files of a policy's loader share: its programs, and what they are attached by. */
#ifndef FG_SYNCORD_POLICY_H
#define FG_SYNCORD_POLICY_H

#include "monitor/syncord_object.h"

struct fg_policy {
	struct fg_policy_object object[FG_POLICY_PARTS];
	size_t objects;
	unsigned hooks;
	struct btf *btf;	    /* the kernel's */
	const struct btf_type *ops; /* struct syncord_ops there */
	int value_id;		    /* struct bpf_struct_ops_syncord_ops */
	uint32_t value_size, data;  /* the policy in it */
	int map, link;
	int seen; /* the map that the link held when it was last looked at, if it was another; -1 */
	uint32_t link_id, seen_id, kept_id; /* kept: the map whose counters it goes on with; or 0 */
};

/* Number `n` of the members of the kernel's struct: which of our hooks; -1: none. */
int fg_policy_hook_of(const struct fg_policy *p, unsigned n);
/* "numa+amp", by the objects. */
void fg_policy_name(const struct fg_policy *p, char *name);

/* ---- syncord_attach.c, _cache.c, _member.c, _path.c: as in struct fg_policy_calls ---- */
int fg_policy_attach(struct fg_policy *p, const struct fg_policy_target *target, size_t targets,
		     char *why, size_t size);
/* Whether what is attached by map `map_id` is at these locks, with these numbers. */
bool fg_policy_is_at(const struct fg_policy *p, uint32_t map_id,
		     const struct fg_policy_target *target, size_t targets);
bool fg_policy_look(struct fg_policy *p);
bool fg_policy_left(const struct fg_policy *p, const struct fg_policy_target *target);
int fg_policy_pin(const struct fg_policy *p, const char *path, char *why, size_t size);
uint32_t fg_policy_pinned(const char *path);
int fg_policy_replace(struct fg_policy *p, uint32_t id, const struct fg_policy_target *target,
		      size_t targets, char *why, size_t size);
int fg_policy_detach(uint32_t id, char *why, size_t size);
/* One step: *t becomes the type of the member, `leaf` the name that it is written by. */
bool fg_policy_step(const struct btf *btf, const struct btf_type **t, const char *name,
		    uint32_t *offset, char *leaf, size_t size);
int fg_policy_object_at(pid_t pid, int file, const char *path, uint64_t *address, char *leaf,
			size_t leaf_size, char *why, size_t size);
int fg_policy_cache_at(const char *name, struct fg_policy_cache *out, char *why, size_t size);
int fg_policy_member(const char *btf, const char *type, const char *path, uint32_t *offset,
		     char *leaf, size_t leaf_size, char *why, size_t size);

#endif
