// SPDX-License-Identifier: MIT
/*
 * Attaches policies.  The struct_ops map is made here, of the programs of one object or of several
 * (numa+amp), rather than by libbpf: 1.1 (Debian 12) knows no links of struct_ops, and a link is
 * what detaches the policy when the loader dies.
 */
#include "monitor/syncord.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/internal.h"
#include "monitor/needs.h"
#include "monitor/syncord_counters.h"
#include "monitor/syncord_object.h"

/* include/uapi/linux/bpf.h, of Linux 6.4: newer than the headers of Debian 12 */
#define STRUCT_OPS_LINK	      (1u << 13) /* BPF_F_LINK */
#define STRUCT_OPS_ATTACHMENT 44	 /* BPF_STRUCT_OPS */
#define UPDATE_REPLACES	      4u	 /* BPF_F_REPLACE */

struct fg_policy {
	struct fg_policy_object object[FG_POLICY_PARTS];
	size_t objects;
	unsigned hooks;
	struct btf *btf;	    /* the kernel's */
	const struct btf_type *ops; /* struct syncord_ops there */
	int value_id;		    /* struct bpf_struct_ops_syncord_ops */
	uint32_t value_size, data;  /* the policy in it */
	int map, link;
	uint32_t link_id;
};

/* ---- what libbpf says ---------------------------------------------------------- */

static libbpf_print_fn_t others;
static char warning[300]; /* the first one of this load */

static int keep_warning(enum libbpf_print_level level, const char *format, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	if (level == LIBBPF_WARN && !warning[0]) {
		vsnprintf(warning, sizeof(warning), format, again);
		warning[strcspn(warning, "\n")] = '\0';
	}
	va_end(again);
	n = others ? others(level, format, args) : 0;
	return n;
}

/* The verifier's reason is its last line but those that sum up. */
static bool verifier_said(const char *log, char *reason, size_t size)
{
	const char *end = log + strlen(log), *line;

	while (end > log) {
		while (end > log && end[-1] == '\n')
			end--;
		for (line = end; line > log && line[-1] != '\n'; line--)
			;
		if (end > line && strncmp(line, "processed ", 10) &&
		    strncmp(line, "mark_precise", 12) && strncmp(line, "verification time", 17) &&
		    strncmp(line, "stack depth", 11)) {
			snprintf(reason, size, "%.*s", (int)(end - line), line);
			return true;
		}
		end = line;
	}
	return false;
}

static int why_not_loaded(const struct fg_policy_object *o, int err, char *why, size_t size)
{
	char reason[200], prog[64] = "";

	sscanf(warning, "libbpf: prog '%63[^']'", prog);
	if (err == -EPERM) {
		snprintf(
		    why, size,
		    "the kernel refuses eBPF programs here: a seccomp filter, a security module, "
		    "or the capabilities are those of a user namespace");
		return -EPERM;
	}
	if (verifier_said(o->log, reason, sizeof(reason)))
		snprintf(why, size,
			 "%s%s%s: the verifier refuses it: %s (FLEXGUARD_VERBOSE=2: all)",
			 o->part.name, *prog ? ", " : "", prog, reason);
	else
		snprintf(why, size, "%s cannot be loaded (%s): %s", o->part.name, strerror(-err),
			 *warning ? warning : "FLEXGUARD_VERBOSE=2 shows more");
	return -EACCES;
}

/* ---- loading ------------------------------------------------------------------- */

/* "KEY=VALUE", or of one part "NAME.KEY=VALUE". */
static int set_option(struct fg_policy *p, const char *option, bool is_default, char *why,
		      size_t size)
{
	const char *is = strchr(option, '='),
		   *dot = memchr(option, '.', is ? (size_t)(is - option) : 0), *first = NULL;
	char key[64], part[64] = "";
	bool found;
	int err;

	if (!is || is == option) {
		snprintf(why, size, "-o needs NAME=VALUE, not '%s'", option);
		return -EINVAL;
	}
	if (dot)
		snprintf(part, sizeof(part), "%.*s", (int)(dot - option), option);
	snprintf(key, sizeof(key), "%.*s", (int)(is - (dot ? dot + 1 : option)),
		 dot ? dot + 1 : option);
	for (size_t i = 0; i < p->objects; i++) {
		struct fg_policy_object *o = &p->object[i];

		if (*part && strcmp(part, o->part.name))
			continue;
		if (first && !is_default && fg_object_has(o, key)) {
			snprintf(why, size,
				 "-o %s: both %s and %s have it; name one, as in -o %s.%s", key,
				 first, o->part.name, first, option);
			return -EINVAL;
		}
		err = fg_object_set(o, key, is + 1, &found, why, size);
		if (err)
			return err;
		first = found ? o->part.name : first;
	}
	if (first || is_default)
		return 0;
	snprintf(why, size, "no option '%s' in %s%s%s; flexguard kernel check shows what it has",
		 key, *part ? part : p->object[0].part.name, p->objects > 1 && !*part ? "+" : "",
		 p->objects > 1 && !*part ? p->object[1].part.name : "");
	return -EINVAL;
}

static bool is_set(const struct fg_policy_config *cfg, const char *option)
{
	size_t key = strcspn(option, "=");

	for (size_t i = 0; i < cfg->nr_options; i++) {
		const char *is = strchr(cfg->options[i], '='), *dot;

		dot = is ? memchr(cfg->options[i], '.', (size_t)(is - cfg->options[i])) : NULL;
		if (is && !strncmp(dot ? dot + 1 : cfg->options[i], option, key + 1))
			return true;
	}
	return false;
}

static int set_options(struct fg_policy *p, const struct fg_policy_config *cfg, char *why,
		       size_t size)
{
	int err = 0;

	for (size_t i = 0; i < cfg->nr_options && !err; i++)
		err = set_option(p, cfg->options[i], false, why, size);
	for (size_t i = 0; i < cfg->nr_defaults && !err; i++) {
		const char *option = cfg->defaults[i];
		char key[64];

		if (is_set(cfg, option))
			continue;
		err = set_option(p, option, true, why, size);
		if (err || strchr(option, '=')[1])
			continue;
		/* The machine tells no difference. */
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(option, "="), option);
		for (size_t k = 0; k < p->objects && !err; k++)
			if (fg_object_has(&p->object[k], key)) {
				snprintf(why, size,
					 "%s needs -o %s=LIST: to this kernel all CPUs are alike",
					 p->object[k].part.name, key);
				err = -EINVAL;
			}
	}
	return err;
}

static int find_types(struct fg_policy *p, char *why, size_t size)
{
	const struct btf_type *value, *data = NULL;
	uint32_t bytes;
	int ops;

	p->btf = btf__load_vmlinux_btf();
	ops = p->btf ? btf__find_by_name_kind(p->btf, FG_POLICY_OPS, BTF_KIND_STRUCT) : -1;
	p->value_id = p->btf ? btf__find_by_name_kind(p->btf, "bpf_struct_ops_" FG_POLICY_OPS,
						      BTF_KIND_STRUCT) :
			       -1;
	value = p->value_id > 0 ? btf__type_by_id(p->btf, (uint32_t)p->value_id) : NULL;
	if (ops <= 0 || !value || !fg_btf_member(p->btf, value, "data", &p->data, &data, &bytes)) {
		snprintf(why, size, "this kernel has no SynCord: its locks take no policies");
		return -ENOTSUP;
	}
	p->ops = btf__type_by_id(p->btf, (uint32_t)ops);
	p->value_size = value->size;
	return 0;
}

/* Number `n` of the members of the kernel's struct: which of our hooks; -1: none. */
static int hook_of(const struct fg_policy *p, unsigned n)
{
	const char *name;

	if (n >= btf_vlen(p->ops))
		return -1;
	name = btf__name_by_offset(p->btf, btf_members(p->ops)[n].name_off);
	for (int i = 0; i < FG_HOOKS; i++)
		if (!strcmp(name, fg_hook_name[i]))
			return i;
	return -1;
}

/* libbpf has put the number of the member into each program. */
static int note_hooks(struct fg_policy *p, char *why, size_t size)
{
	const char *owner[FG_HOOKS] = {0};

	for (size_t i = 0; i < p->objects; i++) {
		struct bpf_program *prog;

		bpf_object__for_each_program(prog, p->object[i].obj)
		{
			int hook = bpf_program__fd(prog) < 0 ?
				       -1 :
				       hook_of(p, bpf_program__expected_attach_type(prog));

			if (hook < 0)
				continue;
			if (owner[hook] && owner[hook] != p->object[i].part.name) {
				snprintf(why, size,
					 "%s and %s cannot be attached together: both have %s",
					 owner[hook], p->object[i].part.name, fg_hook_name[hook]);
				return -EINVAL;
			}
			owner[hook] = p->object[i].part.name;
			p->hooks |= 1u << hook;
		}
	}
	return 0;
}

static int load_objects(struct fg_policy *p, char *why, size_t size)
{
	int err = 0;

	others = libbpf_set_print(keep_warning);
	for (size_t i = 0; i < p->objects && !err; i++) {
		warning[0] = '\0';
		err = bpf_object__load(p->object[i].obj);
		if (err)
			err = why_not_loaded(&p->object[i], err, why, size);
	}
	libbpf_set_print(others);
	return err;
}

/* By the sections' names: before anything is loaded, for objects that have them. */
static int check_apart(const struct fg_policy *p, char *why, size_t size)
{
	for (size_t i = 0; i < p->objects; i++)
		for (size_t k = 0; k < i; k++) {
			unsigned both = fg_object_hooks(&p->object[i]) &
					fg_object_hooks(&p->object[k]);

			if (!both)
				continue;
			snprintf(why, size, "%s and %s cannot be attached together: both have %s",
				 p->object[k].part.name, p->object[i].part.name,
				 fg_hook_name[__builtin_ctz(both)]);
			return -EINVAL;
		}
	return 0;
}

static void policy_close(struct fg_policy *p)
{
	if (!p)
		return;
	if (p->link >= 0)
		close(p->link);
	if (p->map >= 0)
		close(p->map);
	for (size_t i = 0; i < p->objects; i++)
		fg_object_close(&p->object[i]);
	btf__free(p->btf);
	free(p);
}

static int policy_load(struct fg_policy **out, const struct fg_policy_config *cfg, char *why,
		       size_t size)
{
	struct fg_policy *p = calloc(1, sizeof(*p));
	int err = p ? 0 : -ENOMEM;

	*out = NULL;
	fg_hush_libbpf();
	snprintf(why, size, "out of memory");
	if (!p)
		return err;
	p->map = p->link = -1;
	if (cfg->parts > FG_POLICY_PARTS) {
		snprintf(why, size, "more than %d policies at once", FG_POLICY_PARTS);
		err = -E2BIG;
	}
	for (size_t i = 0; i < cfg->parts && !err; i++) {
		err = fg_object_open(&p->object[i], &cfg->part[i], why, size);
		p->objects = i + 1;
	}
	if (!err)
		err = check_apart(p, why, size);
	if (!err)
		err = set_options(p, cfg, why, size);
	if (!err)
		err = fg_policy_preflight(why, size);
	if (!err)
		err = find_types(p, why, size);
	for (size_t i = 0; i < p->objects && cfg->keep_of && !err; i++)
		err = fg_counters_reuse(cfg->keep_of, p->object[i].obj, p->object[i].part.name, why,
					size);
	if (!err)
		err = load_objects(p, why, size);
	if (!err)
		err = note_hooks(p, why, size);
	if (err)
		policy_close(p);
	else
		*out = p;
	return err;
}

static unsigned policy_hooks(const struct fg_policy *p)
{
	return p->hooks;
}

/* ---- attaching ----------------------------------------------------------------- */

/* The member of the kernel's struct in `value`; NULL: it has none of the name and size. */
static void *member(const struct fg_policy *p, unsigned char *value, const char *name,
		    uint32_t least)
{
	const struct btf_type *type;
	uint32_t offset, bytes;

	if (!fg_btf_member(p->btf, p->ops, name, &offset, &type, &bytes) || bytes < least ||
	    p->data + offset + bytes > p->value_size)
		return NULL;
	return value + p->data + offset;
}

static uint32_t number_in(const struct fg_policy_object *o, const char *name)
{
	const struct btf_type *type;
	uint32_t offset, bytes, n = 0;

	if (fg_btf_member(bpf_object__btf(o->obj), o->ops, name, &offset, &type, &bytes) &&
	    bytes == sizeof(n) && offset + bytes <= o->ops->size)
		memcpy(&n, o->data + offset, sizeof(n));
	return n;
}

/* Of several policies the flags of all, and the least of the bounds. */
static bool put_number(const struct fg_policy *p, unsigned char *value, const char *name,
		       bool least)
{
	uint32_t *to = member(p, value, name, sizeof(*to)), n, sum = 0;

	for (size_t i = 0; i < p->objects; i++) {
		n = number_in(&p->object[i], name);
		sum = !least ? sum | n : n && (!sum || n < sum) ? n : sum;
	}
	if (to)
		*to = sum;
	return to || !sum;
}

/* "numa+amp" */
static void put_name(const struct fg_policy *p, char *name)
{
	const struct btf_type *type;
	uint32_t offset, bytes;

	*name = '\0';
	for (size_t i = 0; i < p->objects; i++) {
		const struct fg_policy_object *o = &p->object[i];
		size_t n = strlen(name);

		if (fg_btf_member(bpf_object__btf(o->obj), o->ops, "name", &offset, &type,
				  &bytes) &&
		    offset + bytes <= o->ops->size)
			snprintf(name + n, FG_POLICY_NAME - n, "%s%.*s", i ? "+" : "", (int)bytes,
				 (const char *)o->data + offset);
	}
}

static int put_targets(const struct fg_policy *p, unsigned char *value,
		       const struct fg_policy_target *target, size_t targets)
{
	int id = btf__find_by_name_kind(p->btf, "syncord_target", BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(p->btf, (uint32_t)id) : NULL, *of;
	unsigned char *to = t ? member(p, value, "targets", FG_POLICY_TARGETS * t->size) : NULL;
	uint32_t *count = member(p, value, "nr_targets", sizeof(*count)), at, bytes;

	if (!to || !count || targets > FG_POLICY_TARGETS)
		return -ENOTSUP;
	*count = (uint32_t)targets;
	for (uint32_t i = 0; i < targets; i++, to += t->size) {
		if (!fg_btf_member(p->btf, t, "addr", &at, &of, &bytes) || bytes != 8)
			return -ENOTSUP;
		memcpy(to + at, &target[i].address, 8);
		if (!fg_btf_member(p->btf, t, "id", &at, &of, &bytes) || bytes != 4)
			return -ENOTSUP;
		memcpy(to + at, &i, 4);
		if (!fg_btf_member(p->btf, t, "type", &at, &of, &bytes) || bytes != 2)
			return -ENOTSUP;
		memcpy(to + at, &target[i].type, 2);
	}
	return 0;
}

/* Those of what is attached. */
static int copy_targets(const struct fg_policy *p, unsigned char *value, uint32_t map_id)
{
	int map = bpf_map_get_fd_by_id(map_id), err = map < 0 ? map : 0;
	unsigned char *now = calloc(1, p->value_size);
	const struct btf_type *type;
	uint32_t zero = 0, offset, bytes;
	void *count = member(p, value, "nr_targets", 4), *old;

	err = err ? err : now ? bpf_map_lookup_elem(map, &zero, now) : -ENOMEM;
	old = !err ? member(p, now, "nr_targets", 4) : NULL;
	if (!err && count && old &&
	    fg_btf_member(p->btf, p->ops, "targets", &offset, &type, &bytes)) {
		memcpy(count, old, 4);
		memcpy(value + p->data + offset, now + p->data + offset, bytes);
	} else if (!err && count) {
		err = -ENOTSUP;
	}
	free(now);
	if (map >= 0)
		close(map);
	return err;
}

static void put_programs(const struct fg_policy *p, unsigned char *value)
{
	for (size_t i = 0; i < p->objects; i++) {
		struct bpf_program *prog;

		bpf_object__for_each_program(prog, p->object[i].obj)
		{
			unsigned n = bpf_program__expected_attach_type(prog);
			unsigned long fd = (unsigned long)bpf_program__fd(prog);

			if (bpf_program__fd(prog) >= 0 && hook_of(p, n) >= 0)
				memcpy(value + p->data + btf_member_bit_offset(p->ops, n) / 8, &fd,
				       sizeof(fd));
		}
	}
}

/* The map of the policy, with its programs and targets (those of map `of` if none are given). */
static int make_map(struct fg_policy *p, const struct fg_policy_target *target, size_t targets,
		    uint32_t of)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = STRUCT_OPS_LINK,
		    .btf_fd = (uint32_t)bpf_object__btf_fd(p->object[0].obj), /* any */
		    .btf_vmlinux_value_type_id = (uint32_t)p->value_id);
	unsigned char *value = calloc(1, p->value_size);
	uint32_t zero = 0;
	char *name;
	int err = value ? 0 : -ENOMEM;

	if (!err)
		err = targets ? put_targets(p, value, target, targets) :
		      of      ? copy_targets(p, value, of) :
				0;
	if (!err &&
	    !(put_number(p, value, "flags", false) && put_number(p, value, "max_bypass_us", true) &&
	      put_number(p, value, "max_wait_us", true)))
		err = -ENOTSUP;
	name = err ? NULL : member(p, value, "name", FG_POLICY_NAME);
	if (name)
		put_name(p, name);
	if (!err) {
		put_programs(p, value);
		p->map = bpf_map_create(BPF_MAP_TYPE_STRUCT_OPS, "syncord", sizeof(zero),
					p->value_size, 1, &opts);
		err = p->map < 0 ? p->map : bpf_map_update_elem(p->map, &zero, value, 0);
	}
	free(value);
	return err;
}

/* What is said unless the kernel has said more (/sys/kernel/syncord/last_error). */
static int refused(int err, char *why, size_t size)
{
	snprintf(why, size, "the kernel refuses it: %s", strerror(-err));
	return err == -ENOTSUP || err == -ENOSYS ? -EINVAL : err;
}

static int policy_attach(struct fg_policy *p, const struct fg_policy_target *target, size_t targets,
			 char *why, size_t size)
{
	int err = make_map(p, target, targets, 0);

	if (!err) {
		p->link = bpf_link_create(p->map, 0, STRUCT_OPS_ATTACHMENT, NULL);
		err = p->link < 0 ? p->link : 0;
	}
	if (!err)
		err = fg_link_id(p->link, &p->link_id, NULL);
	return err ? refused(err, why, size) : 0;
}

static uint32_t policy_id(const struct fg_policy *p)
{
	return p->link_id;
}

static int policy_link(const struct fg_policy *p)
{
	return p->link;
}

static int policy_pin(const struct fg_policy *p, const char *path, char *why, size_t size)
{
	int err = bpf_obj_pin(p->link, path);

	if (err)
		snprintf(why, size, "cannot pin it at %s: %s", path, strerror(-err));
	return err;
}

static int policy_replace(struct fg_policy *p, uint32_t id, const struct fg_policy_target *target,
			  size_t targets, char *why, size_t size)
{
	LIBBPF_OPTS(bpf_link_update_opts, opts, .flags = UPDATE_REPLACES);
	uint32_t map_id = 0;
	int link = bpf_link_get_fd_by_id(id), old, err = link < 0 ? link : 0;

	if (!err)
		err = fg_link_id(link, &p->link_id, &map_id);
	if (err || !map_id) {
		snprintf(why, size, "nothing is attached with id %u", id);
		err = err ? err : -ENOLINK;
		goto out;
	}
	err = make_map(p, target, targets, map_id);
	/* Unless somebody else has replaced it meanwhile. */
	old = bpf_map_get_fd_by_id(map_id);
	opts.old_prog_fd = (uint32_t)old;
	if (!err)
		err = old < 0 ? old : bpf_link_update(link, p->map, &opts);
	if (old >= 0)
		close(old);
	if (err)
		err = refused(err, why, size);
out:
	if (link >= 0)
		close(link);
	return err;
}

static int policy_detach(uint32_t id, char *why, size_t size)
{
	int link = bpf_link_get_fd_by_id(id), err = link < 0 ? link : bpf_link_detach(link);

	if (err == -ENOENT || err == -ENOLINK)
		snprintf(why, size, "nothing is attached with id %u", id);
	else if (err)
		snprintf(why, size, "cannot detach %u: %s", id, strerror(-err));
	if (link >= 0)
		close(link);
	return err;
}

/* ---- looking ------------------------------------------------------------------- */

static int policy_about(const struct fg_policy_part *part, struct fg_policy_about *about, char *why,
			size_t size)
{
	struct fg_policy_object o = {0};
	struct fg_policy p = {.objects = 1, .map = -1, .link = -1};
	int err;

	fg_hush_libbpf();
	snprintf(why, size, "out of memory");
	err = fg_object_open(&o, part, why, size);
	if (!err) {
		p.object[0] = o;
		put_name(&p, about->name);
		about->hooks = fg_object_hooks(&o);
		fg_object_options(&o, about);
	}
	fg_object_close(&o);
	return err;
}

static int policy_member(const char *from, const char *type, const char *path, uint32_t *offset,
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
		snprintf(why, size, "cannot read the kernel's type information: %s",
			 strerror(errno));
		return -errno;
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
	while (*path) {
		size_t n = strcspn(path, ".");
		const struct btf_type *outer = t, *named;
		const struct btf_member *m;
		uint32_t at, bytes;
		uint16_t i = 0;

		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		while (outer && (btf_is_mod(outer) || btf_is_typedef(outer)))
			outer = btf__type_by_id(btf, outer->type);
		if (!outer || !btf_is_composite(outer) ||
		    !fg_btf_member(btf, outer, name, &at, &t, &bytes)) {
			snprintf(why, size, "%s has no member '%s'", leaf, name);
			goto out;
		}
		*offset += at;
		/* The name of its type, as it is written there: spinlock_t, not the struct. */
		m = btf_members(outer);
		while (i < btf_vlen(outer) && strcmp(btf__name_by_offset(btf, m[i].name_off), name))
			i++;
		named = i < btf_vlen(outer) ? btf__type_by_id(btf, m[i].type) : t;
		while (named && btf_is_mod(named))
			named = btf__type_by_id(btf, named->type);
		snprintf(leaf, leaf_size, "%s",
			 btf__name_by_offset(btf, named ? named->name_off : t->name_off));
		path += n + (path[n] == '.');
	}
	err = 0;
out:
	btf__free(btf);
	return err;
}

const struct fg_policy_calls fg_policy_module_calls = {
    .about = policy_about,
    .load = policy_load,
    .hooks = policy_hooks,
    .attach = policy_attach,
    .id = policy_id,
    .link = policy_link,
    .pin = policy_pin,
    .replace = policy_replace,
    .close = policy_close,
    .detach = policy_detach,
    .counters = fg_counters_read,
    .free_counters = fg_counters_free,
    .member = policy_member,
};
