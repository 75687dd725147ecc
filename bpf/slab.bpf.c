// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which slab cache an address lies in: bpf_get_kmem_cache(), 6.13 and later
 * ("mm/bpf: Add bpf_get_kmem_cache() kfunc").  An object of its own,
 * because the loader looks in modules for a function that the kernel lacks, which takes
 * CAP_SYS_ADMIN; asked from user space, since the slow path of a lock is no place for it.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "slab.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct kmem_cache {
	const char *name;
} __attribute__((preserve_access_index));

extern struct kmem_cache *bpf_get_kmem_cache(__u64 addr) __ksym;

SEC("syscall")
int slab_of(struct fg_slab *slab)
{
	struct kmem_cache *cache = bpf_get_kmem_cache(slab->address);
	char name[FG_SLAB_NAME] = "";

	if (cache)
		bpf_probe_read_kernel_str(name, sizeof(name), cache->name);
	__builtin_memcpy(slab->name, name, sizeof(name));
	return 0;
}
