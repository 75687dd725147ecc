// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where the slab cache of a name lies, by the iterator of all (6.13 and later: "bpf: Add kmem_cache
 * iterator").
 */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "cache.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct kmem_cache {
	const char *name;
	unsigned object_size;
	int refcount;
} __attribute__((preserve_access_index));

struct bpf_iter__kmem_cache {
	struct bpf_iter_meta *meta;
	struct kmem_cache *s;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fg_cache);
} cache SEC(".maps");

SEC("iter/kmem_cache")
int find_cache(struct bpf_iter__kmem_cache *ctx)
{
	struct kmem_cache *s = ctx->s;
	__u32 zero = 0;
	struct fg_cache *c = bpf_map_lookup_elem(&cache, &zero);
	char name[FG_CACHE_NAME] = "";

	if (!s || !c)
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(s, name));
	for (int i = 0; i < FG_CACHE_NAME; i++) {
		if (name[i] != c->name[i])
			return 0;
		if (!name[i])
			break;
	}
	c->at = (__u64)s;
	c->bytes = BPF_CORE_READ(s, object_size);
	c->kinds = BPF_CORE_READ(s, refcount) - 1; /* the iterator's own */
	return 0;
}
