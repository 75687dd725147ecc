/* SPDX-License-Identifier: MIT */
/* What the files of a policy's loader share: an object file, and what is in it. */
#ifndef FG_SYNCORD_OBJECT_H
#define FG_SYNCORD_OBJECT_H

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "monitor/syncord.h"

struct fg_policy_object {
	struct fg_policy_part part;
	struct bpf_object *obj;
	unsigned char *image; /* the file */
	size_t size;
	/* struct syncord_ops as the file has it: its type in the object's BTF, and its bytes */
	const struct btf_type *ops;
	unsigned char *data;
	char *log; /* the verifier's */
};

/* 0, or -errno and one sentence. */
int fg_object_open(struct fg_policy_object *o, const struct fg_policy_part *part, char *why,
		   size_t size);
void fg_object_close(struct fg_policy_object *o);
/* Bit n: hook n, by the names of the sections. */
unsigned fg_object_hooks(const struct fg_policy_object *o);
/* The variable or the bound `key` becomes `value`; *found: whether there is such a one. */
int fg_object_set(struct fg_policy_object *o, const char *key, const char *value, bool *found,
		  char *why, size_t size);
bool fg_object_has(const struct fg_policy_object *o, const char *key);
void fg_object_options(const struct fg_policy_object *o, struct fg_policy_about *about);

/* False as well where a damaged file has no name. */
bool fg_btf_called(const struct btf *btf, uint32_t offset, const char *name);
/* A member of a struct or union: where it lies, in bytes, its type and its size; false: none. */
bool fg_btf_member(const struct btf *btf, const struct btf_type *type, const char *name,
		   uint32_t *offset, const struct btf_type **of, uint32_t *size);
const struct btf_type *fg_btf_resolved(const struct btf *btf, uint32_t id);

#endif
