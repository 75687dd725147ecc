// SPDX-License-Identifier: MIT
#include "monitor/syncord_counters.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/internal.h"
#include "monitor/syncord_object.h"

#define MOST_MAPS 16 /* of one program; not varied */

int fg_link_id(int link, uint32_t *id, uint32_t *map_id)
{
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);
	int err = bpf_obj_get_info_by_fd(link, &info, &size);

	if (!err && id)
		*id = info.id;
	/* Its first field of a link's own; the headers of Debian 12 have no name for it. */
	if (!err && map_id)
		memcpy(map_id, &info.raw_tracepoint, sizeof(*map_id));
	return err;
}

/* "numa" of numa_should_reorder, of which the kernel has kept 15 characters. */
static void policy_of(const char *program, const char *hook, char *name, size_t size)
{
	size_t all = strlen(program);

	snprintf(name, size, "%s", program);
	for (size_t i = 1; i < all; i++)
		if (program[i] == '_' && !strncmp(program + i + 1, hook, all - i - 1) &&
		    all > i + 1) {
			snprintf(name, size, "%.*s", (int)i, program);
			return;
		}
}

/* ---- one table ----------------------------------------------------------------- */

static struct fg_policy_counter *add(struct fg_policy_counters *c)
{
	struct fg_policy_counter *more = realloc(c->counter, (c->count + 1) * sizeof(*c->counter));

	if (!more)
		return NULL;
	c->counter = more;
	memset(&more[c->count], 0, sizeof(*more));
	return &more[c->count++];
}

static uint64_t join(const char *name, uint64_t sum, uint64_t n)
{
	if (!strncmp(name, "max_", 4))
		return n > sum ? n : sum;
	if (!strncmp(name, "min_", 4))
		return n && (!sum || n < sum) ? n : sum;
	return sum + n;
}

/* A member of the struct; `value`: that of each CPU, `stride` apart. */
static int read_member(struct fg_policy_counters *out, const char *policy, uint32_t target,
		       const struct btf *btf, const struct btf_member *m,
		       const unsigned char *value, size_t stride, size_t cpus, uint32_t at)
{
	const struct btf_type *t = btf__type_by_id(btf, m->type);
	const char *name = btf__name_by_offset(btf, m->name_off);
	struct fg_policy_counter *c;
	size_t buckets = 1, length = name ? strlen(name) : 0;
	uint64_t n;

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	if (t && btf_is_array(t)) {
		buckets = btf_array(t)->nelems;
		t = btf__type_by_id(btf, btf_array(t)->type);
	}
	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	if (!t || !btf_is_int(t) || t->size != sizeof(n) || at + buckets * sizeof(n) > stride ||
	    !length || name[length - 1] == '_')
		return 0;
	c = add(out);
	if (!c)
		return -ENOMEM;
	snprintf(c->policy, sizeof(c->policy), "%s", policy);
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->target = target;
	if (buckets > 1) {
		c->buckets = buckets;
		c->bucket = calloc(buckets, sizeof(n));
	} else {
		c->cpus = cpus;
		c->cpu = calloc(cpus, sizeof(n));
	}
	if (!c->bucket && !c->cpu)
		return -ENOMEM;
	for (size_t cpu = 0; cpu < cpus; cpu++)
		for (size_t b = 0; b < buckets; b++) {
			memcpy(&n, value + cpu * stride + at + b * sizeof(n), sizeof(n));
			c->value = join(name, c->value, n);
			if (c->bucket)
				c->bucket[b] += n;
			else
				c->cpu[cpu] = n;
		}
	return 0;
}

static int read_table(struct fg_policy_counters *out, const char *policy, int map,
		      const struct bpf_map_info *info, uint32_t targets)
{
	struct btf *btf = btf__load_from_kernel_by_id(info->btf_id);
	const struct btf_type *t = btf ? btf__type_by_id(btf, info->btf_value_type_id) : NULL;
	size_t stride = (info->value_size + 7) / 8 * 8;
	int cpus = libbpf_num_possible_cpus(), err = 0;
	unsigned char *value = cpus > 0 ? calloc((size_t)cpus, stride) : NULL;

	if (!btf || !value)
		err = btf ? -ENOMEM : -errno;
	for (uint32_t target = 0;
	     !err && t && btf_is_struct(t) && target < info->max_entries && target < targets;
	     target++) {
		err = bpf_map_lookup_elem(map, &target, value);
		for (uint16_t i = 0; !err && i < btf_vlen(t); i++)
			err = read_member(out, policy, target, btf, &btf_members(t)[i], value,
					  stride, (size_t)cpus, btf_member_bit_offset(t, i) / 8);
	}
	btf__free(btf);
	free(value);
	return err;
}

/* ---- those of a policy --------------------------------------------------------- */

struct attached {
	unsigned char *value; /* of the struct_ops map */
	struct btf *btf;
	const struct btf_type *ops;
	uint32_t data, targets;
};

static void forget(struct attached *a)
{
	free(a->value);
	btf__free(a->btf);
}

static bool offset_of(const struct btf *btf, const struct btf_type *t, const char *name,
		      uint32_t *offset)
{
	for (uint16_t i = 0; i < btf_vlen(t); i++)
		if (fg_btf_called(btf, btf_members(t)[i].name_off, name)) {
			*offset = btf_member_bit_offset(t, i) / 8;
			return true;
		}
	return false;
}

int fg_link_map(uint32_t id, uint32_t *map_id)
{
	int link = bpf_link_get_fd_by_id(id), err = link < 0 ? link : 0;

	*map_id = 0;
	if (!err)
		err = fg_link_id(link, NULL, map_id);
	if (link >= 0)
		close(link);
	return err ? err : *map_id ? bpf_map_get_fd_by_id(*map_id) : -ENOLINK;
}

/*
 * In the map's value the kernel shows the programs by their ids.  The map keeps them, and they
 * their counters, also when no link holds it any more.
 */
static int find_attached(struct attached *a, int map)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), zero = 0, at;
	int ops, value, err = map < 0 ? map : bpf_obj_get_info_by_fd(map, &info, &size);

	*a = (struct attached){0};
	if (err)
		return err;
	a->btf = btf__load_vmlinux_btf();
	ops = a->btf ? btf__find_by_name_kind(a->btf, FG_POLICY_OPS, BTF_KIND_STRUCT) : -1;
	value = a->btf ? btf__find_by_name_kind(a->btf, "bpf_struct_ops_" FG_POLICY_OPS,
						BTF_KIND_STRUCT) :
			 -1;
	if (info.type != BPF_MAP_TYPE_STRUCT_OPS || ops <= 0 || value <= 0 ||
	    info.btf_vmlinux_value_type_id != (uint32_t)value)
		return -ENOLINK; /* another kind of link */
	a->ops = btf__type_by_id(a->btf, (uint32_t)ops);
	a->value = calloc(1, info.value_size);
	err = a->value ? bpf_map_lookup_elem(map, &zero, a->value) : -ENOMEM;
	if (err || !offset_of(a->btf, btf__type_by_id(a->btf, (uint32_t)value), "data", &a->data))
		return err ? err : -ENOLINK;
	a->targets = 1;
	if (offset_of(a->btf, a->ops, "nr_targets", &at))
		memcpy(&a->targets, a->value + a->data + at, sizeof(a->targets));
	return 0;
}

/* Calls `each` for every table of counters of the policy, until it returns other than 0. */
static int each_table(const struct attached *a,
		      int (*each)(void *ctx, const char *policy, int map,
				  const struct bpf_map_info *info, uint32_t targets),
		      void *ctx)
{
	uint32_t seen[FG_HOOKS * MOST_MAPS], nr = 0;
	int err = 0;

	for (int hook = 0; hook < FG_HOOKS && !err; hook++) {
		struct bpf_prog_info prog = {0};
		uint32_t size = sizeof(prog), ids[MOST_MAPS], at;
		char policy[BPF_OBJ_NAME_LEN];
		unsigned long id;
		int fd;

		if (!offset_of(a->btf, a->ops, fg_hook_name[hook], &at))
			continue;
		memcpy(&id, a->value + a->data + at, sizeof(id));
		fd = id ? bpf_prog_get_fd_by_id((uint32_t)id) : -1;
		if (fd < 0)
			continue;
		prog.map_ids = (uintptr_t)ids;
		prog.nr_map_ids = MOST_MAPS;
		if (bpf_obj_get_info_by_fd(fd, &prog, &size))
			prog.nr_map_ids = 0;
		policy_of(prog.name, fg_hook_name[hook], policy, sizeof(policy));
		for (uint32_t i = 0; i < prog.nr_map_ids && i < MOST_MAPS && !err; i++) {
			struct bpf_map_info info = {0};
			uint32_t k = 0, length = sizeof(info);
			int map;

			while (k < nr && seen[k] != ids[i])
				k++;
			if (k < nr)
				continue;
			seen[nr++] = ids[i];
			map = bpf_map_get_fd_by_id(ids[i]);
			if (map < 0)
				continue;
			if (!bpf_obj_get_info_by_fd(map, &info, &length) &&
			    info.type == BPF_MAP_TYPE_PERCPU_ARRAY &&
			    !strcmp(info.name, "counters"))
				err = each(ctx, policy, map, &info, a->targets);
			close(map);
		}
		close(fd);
	}
	return err;
}

static int read_one(void *ctx, const char *policy, int map, const struct bpf_map_info *info,
		    uint32_t targets)
{
	return read_table(ctx, policy, map, info, targets);
}

int fg_counters_of_map(int map, uint32_t id, struct fg_policy_counters *out, char *why, size_t size)
{
	struct attached a;
	int err;

	fg_hush_libbpf();
	*out = (struct fg_policy_counters){0};
	err = find_attached(&a, map);
	if (!err)
		err = each_table(&a, read_one, out);
	if (err) {
		fg_counters_free(out);
		snprintf(why, size, "cannot read the counters of %u: %s", id,
			 err == -ENOLINK || err == -ENOENT ? "nothing is attached with this id" :
							     strerror(-err));
	}
	forget(&a);
	return err;
}

int fg_counters_read(uint32_t id, struct fg_policy_counters *out, char *why, size_t size)
{
	uint32_t map_id;
	int map = fg_link_map(id, &map_id), err = fg_counters_of_map(map, id, out, why, size);

	if (map >= 0)
		close(map);
	return err;
}

void fg_counters_free(struct fg_policy_counters *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->counter[i].bucket);
		free(c->counter[i].cpu);
	}
	free(c->counter);
	*c = (struct fg_policy_counters){0};
}

/* ---- going on with them -------------------------------------------------------- */

struct wanted {
	const struct bpf_object *obj;
	struct bpf_map *map;
	bool done;
};

/* By what its programs are called: that is what is known of the old ones. */
static bool is_called(const struct bpf_object *obj, const char *policy)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, obj)
	{
		const char *hook = strchr(bpf_program__section_name(prog), '/');
		char name[BPF_OBJ_NAME_LEN], of[BPF_OBJ_NAME_LEN];

		snprintf(name, sizeof(name), "%s", bpf_program__name(prog));
		policy_of(name, hook ? hook + 1 : "", of, sizeof(of));
		if (!strcmp(of, policy))
			return true;
	}
	return false;
}

/* The first that is as large. */
static int reuse_one(void *ctx, const char *policy, int map, const struct bpf_map_info *info,
		     uint32_t targets)
{
	struct wanted *w = ctx;

	if (w->done || info->value_size != bpf_map__value_size(w->map) ||
	    info->max_entries != bpf_map__max_entries(w->map) || !is_called(w->obj, policy))
		return 0;
	w->done = true;
	return bpf_map__reuse_fd(w->map, map);
}

int fg_counters_reuse(int map, uint32_t id, struct bpf_object *obj, const char *name, char *why,
		      size_t size)
{
	struct wanted w = {.obj = obj, .map = bpf_object__find_map_by_name(obj, "counters")};
	struct attached a;
	int err = find_attached(&a, map);

	if (!err && w.map)
		err = each_table(&a, reuse_one, &w);
	if (err)
		snprintf(why, size, "--keep: cannot read the counters of %u: %s", id,
			 strerror(-err));
	else if (!w.done) {
		snprintf(why, size, "--keep: %u has no counters of %s, or others than it has now",
			 id, name);
		err = -EINVAL;
	}
	forget(&a);
	return err;
}
