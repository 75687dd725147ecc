// SPDX-License-Identifier: MIT
/*
 * The counters are the same page for all, so no client can write them: not by
 * mmap, mprotect, bpf(), nor by thawing or re-opening the map; not even as root.
 * Two clients do not see each other's slots.
 */
#include <errno.h>
#include <sys/mman.h>
#include <bpf/bpf.h>
#include "harness.h"

static struct monitor m;

static void neighbour(void *arg)
{
	struct client c;

	client_join(&c, m.name, 8);
	memset(c.slots, 0xff, c.welcome.slots * sizeof(struct fg_slot));
}

int main(void)
{
	static struct fg_counters copy;
	struct client c;
	uint32_t zero = 0, i;
	size_t size = sizeof(struct fg_counters);

	test_begin();
	monitor_start(&m, NULL);
	client_join(&c, m.name, 40);
	CHECK(c.welcome.slots >= 40 && c.welcome.nr_cpus >= 1);
	CHECK(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, c.counters_fd, 0) ==
		  MAP_FAILED &&
	      errno == EPERM);
	CHECK(mmap(NULL, size, PROT_WRITE, MAP_SHARED, c.counters_fd, 0) == MAP_FAILED);
	CHECK(mprotect((void *)c.counters, size, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	CHECK(bpf_map_update_elem(c.counters_fd, &zero, &copy, BPF_ANY) < 0);
	CHECK(bpf_map_delete_elem(c.counters_fd, &zero) < 0);
	CHECK(pwrite(c.counters_fd, &copy, 8, 0) < 0);

	reap(spawn(neighbour, NULL));
	for (i = 0; i < c.welcome.slots; i++)
		CHECK(!c.slots[i].pending && !c.slots[i].cs && !c.slots[i].owner_id);
	client_leave(&c);
	monitor_stop(&m);
	return 0;
}
