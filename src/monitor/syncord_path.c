// SPDX-License-Identifier: MIT
/*
 * Locks in objects: "files.file_lock" of a process, "f_inode.i_rwsem" of a file.  The kernel's type
 * information says where members lie and which are pointers; bpf/object.bpf.c follows these.  Both
 * are kept until the process ends: who attaches looks again once a second.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor/internal.h"
#include "monitor/iterator.h"
#include "monitor/syncord_policy.h"

#include <linux/types.h>

#include "object.h"
#include "object.skel.h"

static struct btf *btf;
static struct object_bpf *skel;

/* The steps of `path` in `way`, and in `last` the offset of the lock in what they lead to. */
static int find_way(const char *type, const char *path, struct fg_object_way *way, uint32_t *last,
		    char *leaf, size_t leaf_size, char *why, size_t size)
{
	const struct btf_type *t = NULL;
	char name[64];
	int id, err = -EINVAL;

	if (!btf)
		btf = btf__load_vmlinux_btf();
	id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT) : -errno;
	*last = 0;
	snprintf(leaf, leaf_size, "%s", type);
	if (id > 0)
		t = btf__type_by_id(btf, (uint32_t)id);
	else
		snprintf(why, size, "the kernel does not tell what a %s is", type);
	for (; t && *path; path += strcspn(path, "."), path += *path == '.') {
		const struct btf_type *to = t;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "."), path);
		if (btf_is_ptr(t)) {
			if (way->steps == FG_OBJECT_STEPS) {
				snprintf(why, size, "more than %d pointers", FG_OBJECT_STEPS);
				return err;
			}
			way->offset[way->steps++] = *last;
			*last = 0;
			to = btf__type_by_id(btf, t->type);
		}
		t = to;
		if (!fg_policy_step(btf, &t, name, last, leaf, leaf_size)) {
			snprintf(why, size, "%s has no member '%s'", leaf, name);
			return err;
		}
	}
	err = t ? 0 : -EINVAL;
	if (!err && btf_is_ptr(t)) {
		snprintf(why, size, "%s is a pointer: name a lock in what it leads to", leaf);
		err = -EINVAL;
	}
	return err;
}

/* Runs the iterator over the one process. */
static int look(struct bpf_program *program, pid_t pid)
{
	union bpf_iter_link_info info = {.task.pid = (uint32_t)pid};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(program, &opts);
	int err = link ? fg_run_iterator(bpf_link__fd(link)) : -errno;

	bpf_link__destroy(link);
	return err;
}

int fg_policy_object_at(pid_t pid, int file, const char *path, uint64_t *address, char *leaf,
			size_t leaf_size, char *why, size_t size)
{
	struct fg_object_way way = {.fd = (uint32_t)file};
	uint32_t zero = 0, last;
	int err;

	fg_hush_libbpf();
	err = find_way(file < 0 ? "task_struct" : "file", path, &way, &last, leaf, leaf_size, why,
		       size);
	if (err)
		return err;
	if (!skel)
		skel = object_bpf__open_and_load();
	err = skel ? bpf_map_update_elem(bpf_map__fd(skel->maps.way), &zero, &way, 0) : -errno;
	if (!err)
		err = look(file < 0 ? skel->progs.of_task : skel->progs.of_file,
			   file < 0 ? pid : getpid());
	if (!err)
		err = bpf_map_lookup_elem(bpf_map__fd(skel->maps.way), &zero, &way);
	if (err && !way.met && err != -ESRCH) {
		snprintf(why, size, "cannot look for it: %s", strerror(-err));
		return err;
	}
	if (!way.met || !way.at) {
		snprintf(why, size, way.met ? "there is no such object now" : "no such process");
		return -ENOENT;
	}
	*address = way.at + last;
	return 0;
}
