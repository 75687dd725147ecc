// SPDX-License-Identifier: MIT
/* Where a member lies in a type of the kernel, by a path: "lock" in seqlock_t. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "monitor/internal.h"
#include "monitor/syncord_policy.h"

bool fg_policy_step(const struct btf *btf, const struct btf_type **t, const char *name,
		    uint32_t *offset, char *leaf, size_t size)
{
	const struct btf_type *outer = *t, *named;
	const struct btf_member *m;
	const char *called;
	uint32_t at, bytes;
	uint16_t i = 0;

	while (outer && (btf_is_mod(outer) || btf_is_typedef(outer)))
		outer = btf__type_by_id(btf, outer->type);
	if (!outer || !btf_is_composite(outer) || !fg_btf_member(btf, outer, name, &at, t, &bytes))
		return false;
	*offset += at;
	/* spinlock_t, not the struct that it is. */
	m = btf_members(outer);
	while (i < btf_vlen(outer) && !fg_btf_called(btf, m[i].name_off, name))
		i++;
	named = i < btf_vlen(outer) ? btf__type_by_id(btf, m[i].type) : *t;
	while (named && btf_is_mod(named))
		named = btf__type_by_id(btf, named->type);
	called = btf__name_by_offset(btf, named ? named->name_off : (*t)->name_off);
	snprintf(leaf, size, "%s", called ? called : "");
	return true;
}

int fg_policy_member(const char *from, const char *type, const char *path, uint32_t *offset,
		     char *leaf, size_t leaf_size, char *why, size_t size)
{
	struct btf *btf;
	const struct btf_type *t = NULL;
	char name[64];
	int id, err = -EINVAL;

	fg_hush_libbpf();
	btf = from ? btf__parse(from, NULL) : btf__load_vmlinux_btf();
	*offset = 0;
	if (!btf) {
		err = -errno;
		snprintf(why, size, "cannot read the kernel's type information: %s",
			 strerror(-err));
		return err;
	}
	id = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF);
	if (id < 0)
		id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	if (id > 0)
		t = btf__type_by_id(btf, (uint32_t)id);
	if (!t) {
		snprintf(why, size, "the kernel has no type '%s'", type);
		goto out;
	}
	snprintf(leaf, leaf_size, "%s", type);
	for (; *path; path += strcspn(path, "."), path += *path == '.') {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "."), path);
		if (!fg_policy_step(btf, &t, name, offset, leaf, leaf_size)) {
			snprintf(why, size, "%s has no member '%s'", leaf, name);
			goto out;
		}
	}
	err = 0;
out:
	btf__free(btf);
	return err;
}
