// SPDX-License-Identifier: MIT
/*
 * A static per-CPU variable has an offset, which the kernel's type information tells, and a copy on
 * each CPU, whose place bpf/percpu.bpf.c finds by that of the run queues.
 */
#include "monitor/percpu.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/contention.h"
#include "monitor/iterator.h"
#include "percpu.skel.h"

#define DEEPEST 8 /* members of members; not varied */

struct fg_percpu {
	struct btf *btf;
	const struct btf_type *section;
	uint32_t cpus;
	uint64_t base[]; /* of the section on each CPU; 0: not known */
};

/* ---- type information -------------------------------------------------------------- */

static const char *name_of(const struct fg_percpu *p, const struct btf_type *t)
{
	const char *name = btf__name_by_offset(p->btf, t->name_off);

	return name ? name : "";
}

static const struct btf_type *type_at(const struct fg_percpu *p, uint32_t id)
{
	return btf__type_by_id(p->btf, id);
}

static const struct btf_type *find_section(const struct fg_percpu *p)
{
	for (uint32_t id = 1; id < btf__type_cnt(p->btf); id++) {
		const struct btf_type *t = type_at(p, id);

		if (btf_is_datasec(t) && strstr(name_of(p, t), "percpu"))
			return t;
	}
	return NULL;
}

static const struct btf_var_secinfo *find_variable(const struct fg_percpu *p, const char *name)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(p->section);

	for (int i = 0; i < btf_vlen(p->section); i++)
		if (!strcmp(name_of(p, type_at(p, v[i].type)), name))
			return &v[i];
	return NULL;
}

static bool is_lock(const char *type)
{
	static const char *const locks[] = {
	    "raw_spinlock", "raw_spinlock_t", "spinlock",  "spinlock_t",     "rwlock_t",
	    "mutex",	    "rw_semaphore",   "rt_mutex",  "rt_mutex_base",  "percpu_rw_semaphore",
	    "semaphore",    "local_lock_t",   "qspinlock", "local_trylock_t"};

	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		if (!strcmp(type, locks[i]))
			return true;
	return false;
}

/* The element of an array, or the member of a struct: false if nothing with a name is inside. */
static bool step_into(const struct fg_percpu *p, uint32_t *id, uint64_t *offset, char *name,
		      size_t size)
{
	const struct btf_type *t = type_at(p, *id);
	size_t len = strlen(name);

	if (btf_is_array(t)) {
		int64_t each = btf__resolve_size(p->btf, btf_array(t)->type);

		if (each <= 0)
			return false;
		snprintf(name + len, size - len, "[%llu]",
			 (unsigned long long)(*offset / (uint64_t)each));
		*offset %= (uint64_t)each;
		*id = btf_array(t)->type;
		return true;
	}
	if (!btf_is_composite(t))
		return false;
	for (int i = btf_vlen(t); i-- > 0;) {
		const struct btf_member *m = &btf_members(t)[i];
		uint64_t at = btf_member_bit_offset(t, (uint32_t)i) / 8;
		int64_t bytes = btf__resolve_size(p->btf, m->type);
		const char *member = btf__name_by_offset(p->btf, m->name_off);

		if (bytes <= 0 || *offset < at || *offset >= at + (uint64_t)bytes)
			continue;
		if (member && *member)
			snprintf(name + len, size - len, ".%s", member);
		*offset -= at;
		*id = m->type;
		return true;
	}
	return false;
}

static void name_members(const struct fg_percpu *p, uint32_t id, uint64_t offset, char *name,
			 size_t size)
{
	for (int depth = 0; depth < DEEPEST; depth++) {
		const struct btf_type *t = type_at(p, id);

		while (t && !is_lock(name_of(p, t)) &&
		       (btf_is_mod(t) || btf_is_typedef(t) || btf_is_var(t))) {
			id = t->type;
			t = type_at(p, id);
		}
		if (!t || is_lock(name_of(p, t)) || !step_into(p, &id, &offset, name, size))
			break;
	}
	if (offset)
		snprintf(name + strlen(name), size - strlen(name), "+0x%llx",
			 (unsigned long long)offset);
}

/* ---- where the copies are ------------------------------------------------------------ */

static bool find_bases(struct fg_percpu *p)
{
	const struct btf_var_secinfo *runqueues = find_variable(p, "runqueues");
	struct percpu_bpf *skel = runqueues ? percpu_bpf__open_and_load() : NULL;
	bool seen = skel && !percpu_bpf__attach(skel) &&
		    !fg_run_iterator(bpf_link__fd(skel->links.queues));
	bool found = false;

	for (uint32_t cpu = 0; seen && cpu < p->cpus; cpu++) {
		uint64_t queue = 0;

		if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.queue), &cpu, &queue) || !queue)
			continue;
		p->base[cpu] = queue - runqueues->offset;
		found = true;
	}
	percpu_bpf__destroy(skel);
	return found;
}

struct fg_percpu *fg_percpu_open(void)
{
	int cpus = libbpf_num_possible_cpus();
	struct fg_percpu *p;

	if (cpus < 1)
		return NULL;
	if (cpus > (int)FG_PERCPU_CPUS)
		cpus = FG_PERCPU_CPUS;
	p = calloc(1, sizeof(*p) + (size_t)cpus * sizeof(p->base[0]));
	if (!p)
		return NULL;
	p->cpus = (uint32_t)cpus;
	p->btf = btf__load_vmlinux_btf();
	p->section = p->btf ? find_section(p) : NULL;
	if (p->section && find_bases(p))
		return p;
	fg_percpu_close(p);
	return NULL;
}

void fg_percpu_close(struct fg_percpu *p)
{
	if (!p)
		return;
	btf__free(p->btf);
	free(p);
}

bool fg_percpu_find(const struct fg_percpu *p, const char *name, uint64_t *at, uint32_t cpus)
{
	const struct btf_var_secinfo *v = find_variable(p, name);

	for (uint32_t cpu = 0; v && cpu < cpus; cpu++)
		at[cpu] = cpu < p->cpus && p->base[cpu] ? p->base[cpu] + v->offset : 0;
	return v;
}

bool fg_percpu_name(const struct fg_percpu *p, uint64_t address, char *name, size_t size)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(p->section);

	for (uint32_t cpu = 0; cpu < p->cpus; cpu++) {
		uint64_t offset = address - p->base[cpu];

		if (!p->base[cpu] || address < p->base[cpu] || offset >= p->section->size)
			continue;
		for (int i = 0; i < btf_vlen(p->section); i++) {
			if (offset < v[i].offset || offset - v[i].offset >= v[i].size)
				continue;
			snprintf(name, size, "%s", name_of(p, type_at(p, v[i].type)));
			name_members(p, type_at(p, v[i].type)->type, offset - v[i].offset, name,
				     size);
			snprintf(name + strlen(name), size - strlen(name), "@cpu%u", cpu);
			return true;
		}
	}
	return false;
}
