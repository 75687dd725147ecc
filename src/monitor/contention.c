// SPDX-License-Identifier: MIT
/*
 * Loads bpf/contention.bpf.c, and bpf/slab.bpf.c where the kernel tells slab caches.  Nothing is
 * pinned.
 */
#include "monitor/contention.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contention.skel.h"
#include "monitor/internal.h"
#include "monitor/needs.h"
#include "monitor/percpu.h"
#include "slab.h"
#include "slab.skel.h"

enum { LOCKS, WAITERS, WAITING, COUNTS, MAPS };

struct fg_contention {
	struct contention_bpf *skel;
	struct slab_bpf *slab;
	struct fg_percpu *percpu; /* NULL: not told; asked for by the first who wants a name */
	bool percpu_tried;
	struct fg_contention_view view;
	void *map[MAPS];
	size_t size[MAPS];
	uint64_t missed;
};

static int map_table(struct fg_contention *c, int which, const struct bpf_map *map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       size = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);

	size = (size + page - 1) / page * page;
	c->map[which] = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
	if (c->map[which] == MAP_FAILED) {
		c->map[which] = NULL;
		return -errno;
	}
	c->size[which] = size;
	return 0;
}

static int map_tables(struct fg_contention *c)
{
	const struct bpf_map *const map[] = {[LOCKS] = c->skel->maps.locks,
					     [WAITERS] = c->skel->maps.waiters,
					     [WAITING] = c->skel->maps.waiting,
					     [COUNTS] = c->skel->maps.counts};
	int err = 0;

	for (int i = 0; i < MAPS && !err; i++)
		err = map_table(c, i, map[i]);
	c->view.locks = c->map[LOCKS];
	c->view.waiters = c->map[WAITERS];
	c->view.waiting = c->map[WAITING];
	c->view.counts = c->map[COUNTS];
	return err;
}

/* Without it, names are missing, and nothing else. */
static void load_slab(struct fg_contention *c)
{
	if (!fg_kernel_has(FG_HAS_SLABS))
		return;
	c->slab = slab_bpf__open_and_load();
	c->view.slabs = c->slab != NULL;
}

static int load(struct fg_contention *c, const struct fg_contention_config *cfg)
{
	int err;

	c->skel = contention_bpf__open();
	if (!c->skel)
		return -errno;
	c->skel->rodata->by = cfg->by;
	c->skel->rodata->only_tgid = cfg->tgid;
	c->view.holds = cfg->holds || fg_kernel_has(FG_HAS_HOLDS);
	bpf_program__set_autoload(c->skel->progs.on_release, fg_kernel_has(FG_HAS_HOLDS));
	bpf_program__set_autoload(c->skel->progs.on_mutex_unlock, cfg->holds);
	bpf_program__set_autoload(c->skel->progs.on_up_write, cfg->holds);
	bpf_program__set_autoload(c->skel->progs.on_downgrade_write, cfg->holds);
	bpf_program__set_autoload(c->skel->progs.on_percpu_up_write, cfg->holds);
	err = contention_bpf__load(c->skel);
	if (!err)
		err = map_tables(c);
	if (!err)
		load_slab(c);
	return err ? err : contention_bpf__attach(c->skel);
}

int fg_contention_open(struct fg_contention **out, const struct fg_contention_config *cfg,
		       char *why, size_t size)
{
	struct fg_contention *c;
	int err;

	*out = NULL;
	fg_hush_libbpf();
	err = fg_contention_preflight(why, size);
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	err = c ? load(c, cfg) : -ENOMEM;
	if (!err) {
		*out = c;
		return 0;
	}
	fg_contention_close(c);
	return fg_why_load(err, "run it outside the container", why, size);
}

const struct fg_contention_view *fg_contention_view(const struct fg_contention *c)
{
	return &c->view;
}

bool fg_contention_slab(struct fg_contention *c, uint64_t address, char *name, size_t size)
{
	struct fg_slab slab = {.address = address};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &slab, .ctx_size_in = sizeof(slab));

	if (!c->slab || bpf_prog_test_run_opts(bpf_program__fd(c->slab->progs.slab_of), &opts) ||
	    !slab.name[0])
		return false;
	snprintf(name, size, "%.*s", FG_SLAB_NAME, slab.name);
	return true;
}

bool fg_contention_percpu(struct fg_contention *c, uint64_t address, char *name, size_t size)
{
	if (!c->percpu_tried)
		c->percpu = fg_percpu_open();
	c->percpu_tried = true;
	return c->percpu && fg_percpu_name(c->percpu, address, name, size);
}

static uint64_t missed_by(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	return bpf_program__fd(prog) >= 0 &&
		       !bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size) ?
		   info.recursion_misses :
		   0;
}

void fg_contention_stop(struct fg_contention *c)
{
	struct bpf_program *prog = NULL;

	contention_bpf__detach(c->skel);
	while ((prog = bpf_object__next_program(c->skel->obj, prog)))
		c->missed += missed_by(prog);
}

uint64_t fg_contention_missed(const struct fg_contention *c)
{
	return c->missed;
}

void fg_contention_close(struct fg_contention *c)
{
	if (!c)
		return;
	for (int i = 0; i < MAPS; i++)
		if (c->map[i])
			munmap(c->map[i], c->size[i]);
	contention_bpf__destroy(c->skel);
	slab_bpf__destroy(c->slab);
	fg_percpu_close(c->percpu);
	free(c);
}
