// SPDX-License-Identifier: MIT
/*
 * Loads the companion scheduler.  The struct_ops map is made here and not by libbpf, for the reason
 * in syncord_attach.c: libbpf 1.1 makes no links of it, and the link is what gives the kernel's own
 * scheduler back when the process dies.
 */
#include "monitor/scheduler.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "monitor/internal.h"
#include "monitor/needs.h"
#include "monitor/syncord_object.h"
#include "monitor_types.h"

/* A test has one that is broken on purpose, and less patience. */
#ifndef FG_SCHED_SKELETON
#define FG_SCHED_SKELETON   "sched.skel.h"
#define FG_SCHED_TIMEOUT_MS 0u /* the kernel's: 30 s without having run, and it is ejected */
#endif
#include FG_SCHED_SKELETON

/* include/uapi/linux/bpf.h, of Linux 6.4 and 5.10: newer than the headers of Debian 12 */
#define STRUCT_OPS_LINK	      (1u << 13) /* BPF_F_LINK */
#define STRUCT_OPS_ATTACHMENT 44	 /* BPF_STRUCT_OPS */
#define PROGRAM_MAY_SLEEP     (1u << 4)	 /* BPF_F_SLEEPABLE */

#define OUTSIDE "run `flexguard sched` outside the container"

struct fg_sched {
	struct sched_bpf *skel;
	int map, link; /* -1: none */
};

/* ---- the monitor's maps --------------------------------------------------------- */

/* The map that the process has with this name, type and size of values; or -ESRCH. */
static int map_of(pid_t pid, const char *name, uint32_t type, uint32_t value_size)
{
	char path[64], line[128];
	int found = -ESRCH;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while (found < 0 && (e = readdir(d))) {
		struct bpf_map_info info = {0};
		uint32_t size = sizeof(info), of_type = 0, id = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.20s", (int)pid, e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "map_type: %u", &of_type) != 1)
				sscanf(line, "map_id: %u", &id);
		if (f)
			fclose(f);
		if (of_type != type || !id)
			continue;
		found = bpf_map_get_fd_by_id(id);
		if (found >= 0 && (bpf_obj_get_info_by_fd(found, &info, &size) ||
				   strcmp(info.name, name) || info.value_size != value_size)) {
			close(found);
			found = -ESRCH;
		}
	}
	closedir(d);
	return found;
}

static int take_map(struct bpf_map *map, pid_t monitor)
{
	int err,
	    fd = map_of(monitor, bpf_map__name(map), bpf_map__type(map), bpf_map__value_size(map));

	if (fd < 0)
		return fd;
	err = bpf_map__reuse_fd(map, fd); /* a copy of it */
	close(fd);
	return err;
}

static int take_maps(struct fg_sched *s, pid_t monitor, char *why, size_t size)
{
	int err = take_map(s->skel->maps.threads, monitor);

	if (!err)
		err = take_map(s->skel->maps.processes, monitor);
	if (err == -ESRCH)
		snprintf(why, size,
			 "process %d, which answers for the monitor, has no maps that this version "
			 "knows",
			 (int)monitor);
	else if (err)
		snprintf(why, size, "cannot have the maps of the monitor, process %d: %s",
			 (int)monitor, strerror(-err));
	return err;
}

/* ---- attaching ------------------------------------------------------------------ */

/* Section "struct_ops/MEMBER" of each program says which member of the kernel's struct it is. */
static int put_programs(const struct fg_sched *s, const struct btf *btf, const struct btf_type *ops,
			unsigned char *data)
{
	const struct btf_type *type;
	struct bpf_program *prog;
	uint32_t offset, bytes;

	bpf_object__for_each_program(prog, s->skel->obj)
	{
		const char *name = strchr(bpf_program__section_name(prog), '/');
		unsigned long fd = (unsigned long)bpf_program__fd(prog);

		if (!name || !fg_btf_member(btf, ops, name + 1, &offset, &type, &bytes) ||
		    bytes != sizeof(fd))
			return -ENOTSUP;
		memcpy(data + offset, &fd, sizeof(fd));
	}
	return 0;
}

static int make_map(struct fg_sched *s)
{
	static const char name[] = "flexguard";
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = STRUCT_OPS_LINK,
		    .btf_fd = (uint32_t)bpf_object__btf_fd(s->skel->obj));
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *ops = NULL, *value = NULL, *type;
	uint32_t data, offset, bytes, zero = 0, timeout = FG_SCHED_TIMEOUT_MS;
	unsigned char *v = NULL;
	int id, err = -ENOTSUP;

	id = btf ? btf__find_by_name_kind(btf, "sched_ext_ops", BTF_KIND_STRUCT) : -1;
	ops = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	id = ops ? btf__find_by_name_kind(btf, "bpf_struct_ops_sched_ext_ops", BTF_KIND_STRUCT) :
		   -1;
	value = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	if (!value || !fg_btf_member(btf, value, "data", &data, &type, &bytes))
		goto out;
	err = -ENOMEM;
	v = calloc(1, value->size);
	if (!v)
		goto out;
	err = put_programs(s, btf, ops, v + data);
	if (!err &&
	    (!fg_btf_member(btf, ops, "name", &offset, &type, &bytes) || bytes < sizeof(name)))
		err = -ENOTSUP;
	if (!err)
		memcpy(v + data + offset, name, sizeof(name));
	if (!err && (!fg_btf_member(btf, ops, "timeout_ms", &offset, &type, &bytes) ||
		     bytes != sizeof(timeout)))
		err = -ENOTSUP;
	if (err)
		goto out;
	memcpy(v + data + offset, &timeout, sizeof(timeout));
	opts.btf_vmlinux_value_type_id = (uint32_t)id;
	s->map = bpf_map_create(BPF_MAP_TYPE_STRUCT_OPS, name, sizeof(zero), value->size, 1, &opts);
	err = s->map < 0 ? s->map : bpf_map_update_elem(s->map, &zero, v, 0);
out:
	free(v);
	btf__free(btf);
	return err;
}

/* The name of the scheduler that is there. */
static void other(char *name, int size)
{
	FILE *f = fopen("/sys/kernel/sched_ext/root/ops", "re");

	if (!f || !fgets(name, size, f))
		snprintf(name, (size_t)size, "?");
	name[strcspn(name, "\n")] = '\0';
	if (f)
		fclose(f);
}

static int attach(struct fg_sched *s, char *why, size_t size)
{
	char name[64];
	int err = make_map(s);

	if (!err) {
		s->link = bpf_link_create(s->map, 0, STRUCT_OPS_ATTACHMENT, NULL);
		err = s->link < 0 ? s->link : 0;
	}
	if (err == -EBUSY) {
		other(name, sizeof(name));
		snprintf(why, size,
			 "the scheduler %s of sched_ext is there already: end that one first",
			 name);
	} else if (err) {
		snprintf(why, size, "the kernel refuses the scheduler: %s%s%s", strerror(-err),
			 s->skel->bss->ended.message[0] ? ": " : "", s->skel->bss->ended.message);
	}
	return err;
}

/* ---- what the command calls ----------------------------------------------------- */

static void sched_close(struct fg_sched *s)
{
	if (!s)
		return;
	if (s->link >= 0)
		close(s->link);
	if (s->map >= 0)
		close(s->map);
	sched_bpf__destroy(s->skel);
	free(s);
}

static int load(struct fg_sched *s, const struct fg_sched_config *cfg, char *why, size_t size)
{
	struct utsname u;
	int err;

	s->skel = sched_bpf__open();
	if (!s->skel)
		return fg_why_load(-errno, OUTSIDE, why, size);
	uname(&u);
	s->skel->rodata->knows_owners = cfg->monitor != 0;
	s->skel->rodata->extension_ns = cfg->extension_ns;
	if (fg_release_is(u.release, 7, 0)) /* as in load.c */
		s->skel->rodata->exec_state_dumpable = fg_member_offset("task_exec_state",
									"dumpable");
	/* libbpf 1.1 has no section for it */
	bpf_program__set_flags(s->skel->progs.sched_init, PROGRAM_MAY_SLEEP);
	bpf_map__set_autocreate(s->skel->maps.owners, false); /* unused */
	err = cfg->monitor ? take_maps(s, cfg->monitor, why, size) : 0;
	if (err)
		return err;
	err = sched_bpf__load(s->skel);
	return err ? fg_why_load(err, OUTSIDE, why, size) : 0;
}

static int sched_open(struct fg_sched **out, const struct fg_sched_config *cfg, char *why,
		      size_t size)
{
	struct fg_sched *s;
	int err;

	*out = NULL;
	fg_hush_libbpf();
	err = fg_sched_preflight(why, size);
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	s->map = s->link = -1;
	err = load(s, cfg, why, size);
	if (!err)
		err = attach(s, why, size);
	if (err)
		sched_close(s);
	else
		*out = s;
	return err;
}

static void sched_counts(const struct fg_sched *s, struct fg_sched_counts *counts)
{
	*counts = s->skel->bss->counts;
}

static bool sched_ended(const struct fg_sched *s, struct fg_sched_end *end)
{
	if (!__atomic_load_n(&s->skel->bss->ended.kind, __ATOMIC_ACQUIRE))
		return false;
	*end = s->skel->bss->ended;
	return true;
}

const struct fg_sched_calls fg_sched_module_calls = {
    .open = sched_open,
    .counts = sched_counts,
    .ended = sched_ended,
    .close = sched_close,
};
