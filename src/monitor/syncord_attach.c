// SPDX-License-Identifier: MIT
/*
 * Attaches policies.  The struct_ops map is made here, of the programs of one object or of several
 * (numa+amp), rather than by libbpf: 1.1 (Debian 12) knows no links of struct_ops, and a link is
 * what detaches the policy when the loader dies.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/syncord_counters.h"
#include "monitor/syncord_policy.h"

/* include/uapi/linux/bpf.h, of Linux 6.4: newer than the headers of Debian 12 */
#define STRUCT_OPS_LINK	      (1u << 13) /* BPF_F_LINK */
#define STRUCT_OPS_ATTACHMENT 44	 /* BPF_STRUCT_OPS */
#define UPDATE_REPLACES	      4u	 /* BPF_F_REPLACE */

int fg_policy_hook_of(const struct fg_policy *p, unsigned n)
{
	if (n >= btf_vlen(p->ops))
		return -1;
	for (int i = 0; i < FG_HOOKS; i++)
		if (fg_btf_called(p->btf, btf_members(p->ops)[n].name_off, fg_hook_name[i]))
			return i;
	return -1;
}

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

/* Of an object's file: it may say anything. */
static bool fits(uint32_t offset, uint32_t bytes, uint32_t size)
{
	return bytes <= size && offset <= size - bytes;
}

static uint32_t number_in(const struct fg_policy_object *o, const char *name)
{
	const struct btf_type *type;
	uint32_t offset, bytes, n = 0;

	if (fg_btf_member(bpf_object__btf(o->obj), o->ops, name, &offset, &type, &bytes) &&
	    bytes == sizeof(n) && fits(offset, bytes, o->ops->size))
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
void fg_policy_name(const struct fg_policy *p, char *name)
{
	const struct btf_type *type;
	uint32_t offset, bytes;

	*name = '\0';
	for (size_t i = 0; i < p->objects; i++) {
		const struct fg_policy_object *o = &p->object[i];
		size_t n = strlen(name);

		if (fg_btf_member(bpf_object__btf(o->obj), o->ops, "name", &offset, &type,
				  &bytes) &&
		    fits(offset, bytes, o->ops->size))
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
		if (!fg_btf_member(p->btf, t, "flags", &at, &of, &bytes) || bytes != 2)
			return -ENOTSUP;
		memcpy(to + at, &target[i].flags, 2);
	}
	return 0;
}

/*
 * The map that a link holds, which is a policy's; -ENOLINK: the link is of another kind, and the
 * number, if it is that of a map at all, of some other one.
 */
static int policy_map(const struct fg_policy *p, uint32_t map_id)
{
	int map = bpf_map_get_fd_by_id(map_id), err;
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	if (map < 0)
		return -ENOLINK;
	err = bpf_obj_get_info_by_fd(map, &info, &size);
	if (!err && (info.type != BPF_MAP_TYPE_STRUCT_OPS ||
		     info.btf_vmlinux_value_type_id != (uint32_t)p->value_id))
		err = -ENOLINK;
	if (err)
		close(map);
	return err ? err : map;
}

/* What is attached, by the map that a link holds. */
static int value_of(const struct fg_policy *p, uint32_t map_id, unsigned char **value)
{
	int map = policy_map(p, map_id), err = map < 0 ? map : 0;
	uint32_t zero = 0;

	*value = calloc(1, p->value_size);
	err = err ? err : *value ? bpf_map_lookup_elem(map, &zero, *value) : -ENOMEM;
	if (map >= 0)
		close(map);
	return err;
}

/* Those of what is attached. */
static int copy_targets(const struct fg_policy *p, unsigned char *value, uint32_t map_id)
{
	unsigned char *now;
	int err = value_of(p, map_id, &now);
	const struct btf_type *type;
	uint32_t offset, bytes;
	void *count = member(p, value, "nr_targets", 4), *old;

	old = !err ? member(p, now, "nr_targets", 4) : NULL;
	if (!err && count && old &&
	    fg_btf_member(p->btf, p->ops, "targets", &offset, &type, &bytes)) {
		memcpy(count, old, 4);
		memcpy(value + p->data + offset, now + p->data + offset, bytes);
	} else if (!err && count) {
		err = -ENOTSUP;
	}
	free(now);
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

			if (bpf_program__fd(prog) >= 0 && fg_policy_hook_of(p, n) >= 0)
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
		fg_policy_name(p, name);
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

int fg_policy_attach(struct fg_policy *p, const struct fg_policy_target *target, size_t targets,
		     char *why, size_t size)
{
	int err = make_map(p, target, targets, 0);

	if (!err) {
		p->link = bpf_link_create(p->map, 0, STRUCT_OPS_ATTACHMENT, NULL);
		err = p->link < 0 ? p->link : 0;
	}
	if (!err)
		err = fg_link_id(p->link, &p->link_id, &p->seen_id);
	return err ? refused(err, why, size) : 0;
}

/* With the map the counters of what has come are kept, whatever becomes of the link. */
bool fg_policy_look(struct fg_policy *p)
{
	uint32_t map_id = 0;
	int map;

	if (fg_link_id(p->link, NULL, &map_id) || !map_id || map_id == p->seen_id)
		return false;
	map = policy_map(p, map_id);
	if (map < 0)
		return false;
	if (p->seen >= 0)
		close(p->seen);
	p->seen = map;
	p->seen_id = map_id;
	return true;
}

/* What a policy is at: how many, and the number of each; < 0: that cannot be seen. */
static int targets_in(const struct fg_policy *p, unsigned char *value,
		      struct fg_policy_target *target, uint32_t *number)
{
	int id = btf__find_by_name_kind(p->btf, "syncord_target", BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(p->btf, (uint32_t)id) : NULL, *of;
	unsigned char *from = t ? member(p, value, "targets", FG_POLICY_TARGETS * t->size) : NULL;
	uint32_t *count = member(p, value, "nr_targets", sizeof(*count)), addr, nr, type, flags,
		 bytes;

	if (!from || !count || *count > FG_POLICY_TARGETS ||
	    !fg_btf_member(p->btf, t, "addr", &addr, &of, &bytes) || bytes != 8 ||
	    !fg_btf_member(p->btf, t, "id", &nr, &of, &bytes) || bytes != 4 ||
	    !fg_btf_member(p->btf, t, "type", &type, &of, &bytes) || bytes != 2 ||
	    !fg_btf_member(p->btf, t, "flags", &flags, &of, &bytes) || bytes != 2)
		return -ENOTSUP;
	for (uint32_t i = 0; i < *count; i++, from += t->size) {
		memcpy(&target[i].address, from + addr, 8);
		memcpy(&number[i], from + nr, 4);
		memcpy(&target[i].type, from + type, 2);
		memcpy(&target[i].flags, from + flags, 2);
	}
	return (int)*count;
}

/* The same, of what is attached by a map. */
static int targets_of(const struct fg_policy *p, uint32_t map_id, struct fg_policy_target *target,
		      uint32_t *number)
{
	unsigned char *value;
	int n = value_of(p, map_id, &value);

	if (!n)
		n = targets_in(p, value, target, number);
	free(value);
	return n;
}

bool fg_policy_left(const struct fg_policy *p, const struct fg_policy_target *target)
{
	struct fg_policy_target now[FG_POLICY_TARGETS];
	uint32_t map_id = 0, number[FG_POLICY_TARGETS];
	bool left;
	int n = -ENOLINK;

	if (!fg_link_id(p->link, NULL, &map_id) && map_id)
		n = targets_of(p, map_id, now, number);
	left = n >= 0; /* what cannot be seen has not left */
	for (int i = 0; i < n; i++)
		left &= now[i].address != target->address || now[i].flags != target->flags;
	return left;
}

bool fg_policy_is_at(const struct fg_policy *p, uint32_t map_id,
		     const struct fg_policy_target *target, size_t targets)
{
	struct fg_policy_target now[FG_POLICY_TARGETS];
	uint32_t number[FG_POLICY_TARGETS];
	int n = targets_of(p, map_id, now, number);
	bool same = n >= 0 && (size_t)n == targets;

	for (uint32_t i = 0; same && i < targets; i++)
		same = now[i].address == target[i].address && now[i].type == target[i].type &&
		       now[i].flags == target[i].flags && number[i] == i;
	return same;
}

int fg_policy_pin(const struct fg_policy *p, const char *path, char *why, size_t size)
{
	int err = bpf_obj_pin(p->link, path);

	if (err)
		snprintf(why, size, "cannot pin it at %s: %s", path, strerror(-err));
	return err;
}

/* Of a map or a program, which may be pinned, too, the same bytes are other things. */
static bool is_link(int fd)
{
	char name[40], path[40];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return strstr(name, "bpf-link");
}

uint32_t fg_policy_pinned(const char *path)
{
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info), id = 0;
	int link = bpf_obj_get(path);

	if (link >= 0 && is_link(link) && !bpf_obj_get_info_by_fd(link, &info, &size) &&
	    info.type == BPF_LINK_TYPE_STRUCT_OPS)
		id = info.id;
	if (link >= 0)
		close(link);
	return id;
}

int fg_policy_replace(struct fg_policy *p, uint32_t id, const struct fg_policy_target *target,
		      size_t targets, char *why, size_t size)
{
	LIBBPF_OPTS(bpf_link_update_opts, opts, .flags = UPDATE_REPLACES);
	uint32_t map_id = 0;
	int link = bpf_link_get_fd_by_id(id), old = -1, err = link < 0 ? link : 0;

	if (!err)
		err = fg_link_id(link, &p->link_id, &map_id);
	if (!err && map_id)
		old = policy_map(p, map_id);
	if (err || !map_id || old == -ENOLINK) {
		snprintf(why, size,
			 "nothing is attached with id %u: flexguard kernel status shows what is",
			 id);
		err = err ? err : -ENOLINK;
		goto out;
	}
	if (p->kept_id && p->kept_id != map_id) {
		snprintf(
		    why, size,
		    "--keep: somebody else has replaced %u meanwhile, and has counters of his own",
		    id);
		err = -EBUSY;
		goto out;
	}
	err = make_map(p, target, targets, map_id);
	/* Unless somebody else has replaced it meanwhile. */
	opts.old_prog_fd = (uint32_t)old;
	if (!err)
		err = old < 0 ? old : bpf_link_update(link, p->map, &opts);
	if (err)
		err = refused(err, why, size);
out:
	if (old >= 0)
		close(old);
	if (link >= 0)
		close(link);
	return err;
}

int fg_policy_detach(uint32_t id, char *why, size_t size)
{
	int link = bpf_link_get_fd_by_id(id), err = link < 0 ? link : bpf_link_detach(link);

	if (err == -ENOENT || err == -ENOLINK)
		snprintf(why, size,
			 "nothing is attached with id %u: flexguard kernel status shows what is",
			 id);
	else if (err)
		snprintf(why, size, "cannot detach %u: %s", id, strerror(-err));
	if (link >= 0)
		close(link);
	return err;
}
