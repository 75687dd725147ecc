// SPDX-License-Identifier: MIT
/* Slab caches by name, for targets that are all locks at one place of their objects. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "monitor/internal.h"
#include "monitor/iterator.h"
#include "monitor/syncord_policy.h"

#include <linux/types.h>

#include "cache.h"
#include "cache.skel.h"

/* An iterator may pass one over when another goes, and counts as a user of what it shows. */
#define TRIES 3

/* Kept until the process ends: who attaches looks again once a second. */
static struct cache_bpf *skel;

static int look(void)
{
	struct bpf_link *link = bpf_program__attach_iter(skel->progs.find_cache, NULL);
	int err = link ? fg_run_iterator(bpf_link__fd(link)) : -errno;

	bpf_link__destroy(link);
	return err;
}

int fg_policy_cache_at(const char *name, struct fg_policy_cache *out, char *why, size_t size)
{
	struct fg_cache asked = {.at = 0}, c = asked;
	uint32_t zero = 0;
	int err;

	if (strlen(name) >= sizeof(asked.name)) {
		snprintf(why, size, "no slab cache has so long a name");
		return -EINVAL;
	}
	strcpy(asked.name, name);
	fg_hush_libbpf();
	if (!skel)
		skel = cache_bpf__open_and_load();
	err = skel ? 0 : -errno;
	for (int i = 0; i < TRIES && !err && (!c.at || c.kinds > 1); i++) {
		err = bpf_map_update_elem(bpf_map__fd(skel->maps.cache), &zero, &asked, 0);
		if (!err)
			err = look();
		if (!err)
			err = bpf_map_lookup_elem(bpf_map__fd(skel->maps.cache), &zero, &c);
	}
	if (err) {
		snprintf(why, size,
			 err == -EPERM ? "no privilege to look for slab caches: %s" :
					 "this kernel does not list its slab caches (Linux 6.13 "
					 "and later do): %s",
			 strerror(-err));
		return err;
	}
	if (!c.at) {
		snprintf(why, size, "no slab cache is called so");
		return -ENOENT;
	}
	*out = (struct fg_policy_cache){.address = c.at, .bytes = c.bytes, .kinds = c.kinds};
	return 0;
}
