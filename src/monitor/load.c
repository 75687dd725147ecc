// SPDX-License-Identifier: MIT
/*
 * Loads the eBPF program and attaches it: open, set, load, freeze, attach.  No
 * pins: the program lives as long as this process, and the kernel detaches it
 * whichever way the process ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"
#include "monitor/topology.h"
#include "monitor_types.h"
#include "monitor.skel.h"
#include "monitor_early.skel.h"

#define OUTSIDE "run `flexguard monitor` outside the container and share its socket"

/* A library does not print; but a verifier log is what a bug report needs. */
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	const char *verbose = secure_getenv("FLEXGUARD_VERBOSE");

	if (!verbose || atoi(verbose) < 2 || level == LIBBPF_DEBUG)
		return 0;
	return vfprintf(stderr, format, args);
}

void fg_hush_libbpf(void)
{
	libbpf_set_print(print_libbpf);
}

/*
 * The object for this kernel, or the early one.  Both have the same maps and programs: one skeleton
 * is for both.
 *
 * Since 6.4 task storage comes from an allocator that may be asked with the run queue's lock held
 * (bpf_mem_alloc, commit 08a7ce384e33).  The verifier accepts it before as well, so the version
 * tells.
 */
int fg_skeleton_open(struct monitor_bpf **out, bool *early)
{
	struct bpf_object_skeleton *s;
	struct utsname u;
	int err;

	uname(&u);
	*early |= !fg_release_is(u.release, 6, 4);
	*out = calloc(1, sizeof(**out));
	if (!*out || monitor_bpf__create_skeleton(*out))
		return -ENOMEM;
	s = (*out)->skeleton;
	if (*early)
		s->data = (void *)monitor_early_bpf__elf_bytes(&s->data_sz);
	err = bpf_object__open_skeleton(s, NULL);
	if (!err) {
		bpf_program__set_autoload((*out)->progs.on_fork, *early);
		bpf_program__set_autoload((*out)->progs.equip, *early);
		/* to one process at a time, programs.c */
		bpf_program__set_autoattach((*out)->progs.prove, false);
		bpf_program__set_autoattach((*out)->progs.equip, false);
	}
	return err;
}

uint32_t fg_member_offset(const char *type, const char *member)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_member *found;
	const struct btf_type *t;
	uint32_t offset = 0;
	int id;

	if (!btf)
		return 0;
	id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	t = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
	found = t ? btf_members(t) : NULL;
	for (int i = 0; found && i < btf_vlen(t); i++) {
		const char *name = btf__name_by_offset(btf, found[i].name_off);

		if (name && !strcmp(name, member))
			offset = btf_member_bit_offset(t, (uint32_t)i) / 8;
	}
	btf__free(btf);
	return offset;
}

static int load(struct fg_monitor *m, char *why, size_t size)
{
	struct utsname u;
	uint32_t shift = 0;
	int err;

	m->early = m->cfg.early_storage;
	err = fg_skeleton_open(&m->skel, &m->early);
	if (err)
		return fg_why_load(err, OUTSIDE, why, size);
	bpf_map__set_max_entries(m->skel->maps.processes, m->cfg.max_processes * FG_PIECES);
	for (int cpus = libbpf_num_possible_cpus(); FG_CPU_GROUPS << shift < cpus && shift < 4;)
		shift++;
	m->skel->rodata->cpu_shift = shift;
	m->skel->rodata->domains_only = m->cfg.domains_only;
	fg_topology_read("/sys/devices/system", (uint8_t *)m->skel->rodata->cpu_near, FG_MAX_CPUS);
	uname(&u);
	if (fg_release_is(u.release, 7, 0)) /* bpf/vmlinux_min.h; no earlier kernel has it */
		m->skel->rodata->exec_state_dumpable = fg_member_offset("task_exec_state",
									"dumpable");
	m->skel->rodata->mcs_test = m->cfg.holder_test == FG_HOLDER_MCS;
	m->skel->rodata->count_at_once = m->cfg.kernel_threads == FG_KTHREADS_COUNT;
	/*
	 * One of ours as the pattern: on 6.1 one with type information, as libbpf makes it, fits
	 * none without.
	 */
	err = fg_array_create(1, &m->empty);
	if (err)
		return fg_why_load(err, OUTSIDE, why, size);
	err = bpf_map__set_inner_map_fd(m->skel->maps.processes, m->empty.fd);
	if (!err)
		err = monitor_bpf__load(m->skel);
	if (err)
		return fg_why_load(err, OUTSIDE, why, size);
	/* From here on nobody can write the counters, other than the program. */
	if (bpf_map_freeze(bpf_map__fd(m->skel->maps.counters))) {
		err = -errno;
		snprintf(why, size, "cannot make the counters read-only: %s", strerror(-err));
		return err;
	}
	return 0;
}

static int attach(struct fg_monitor *m, char *why, size_t size)
{
	int err;

	m->counters = mmap(NULL, sizeof(*m->counters), PROT_READ, MAP_SHARED,
			   bpf_map__fd(m->skel->maps.counters), 0);
	if (m->counters == MAP_FAILED) {
		m->counters = NULL;
		err = -errno;
		snprintf(why, size, "cannot map the counters: %s", strerror(-err));
		return err;
	}
	err = fg_hooks_attach(m);
	if (!err)
		err = monitor_bpf__attach(m->skel); /* what is left */
	if (err) {
		snprintf(why, size, "cannot attach to the scheduler's tracepoints: %s",
			 strerror(-err));
		return err == -EPERM || err == -EACCES ? -EPERM : -ENOTSUP;
	}
	/* Their links keep them; the descriptors are better used for clients. */
	bpf_program__unload(m->skel->progs.audit);
	bpf_program__unload(m->skel->progs.arrays);
	if (m->cfg.domains_only) { /* not for one command: 31 ms, as much as all the rest */
		fg_vcpus_find(m);
		fg_arrays_find(m);
	}
	/* Wall-clock time differs between any two monitors, across reboots as well. */
	err = fg_monitor_tick(m, fg_clock_ns(CLOCK_REALTIME));
	if (err == -ENOTSUP)
		snprintf(
		    why, size,
		    "this kernel does not tell whose memory may be read (a later flexguard may "
		    "know how)");
	else if (err)
		snprintf(why, size, "cannot run the monitor's heartbeat program: %s",
			 strerror(-err));
	return err;
}

int fg_monitor_open(struct fg_monitor **out, const struct fg_monitor_config *cfg, char *why,
		    size_t why_size)
{
	char unused[1];
	struct fg_monitor *m;
	uint32_t i;
	int err;

	*out = NULL;
	if (!why_size) {
		why = unused;
		why_size = sizeof(unused);
	}
	fg_hush_libbpf();
	err = fg_monitor_preflight(why, why_size);
	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	if (!m)
		goto no_memory;
	m->epoll_fd = m->empty.fd = -1;
	if (cfg)
		m->cfg = *cfg;
	if (!m->cfg.max_processes)
		m->cfg.max_processes = FG_DEFAULT_PROCESSES;
	if (!m->cfg.max_slots)
		m->cfg.max_slots = FG_DEFAULT_SLOTS;
	if (m->cfg.max_slots < FG_MIN_SLOTS)
		m->cfg.max_slots = FG_MIN_SLOTS;
	if (m->cfg.max_slots > FG_DEFAULT_SLOTS)
		m->cfg.max_slots = FG_DEFAULT_SLOTS;
	if (!m->cfg.max_per_uid)
		m->cfg.max_per_uid = m->cfg.max_processes;
	if (!m->cfg.max_slots_per_uid)
		m->cfg.max_slots_per_uid = FG_DEFAULT_UID_SLOTS;
	if (!m->cfg.max_memory_per_uid)
		m->cfg.max_memory_per_uid = FG_DEFAULT_UID_MEMORY;
	if (!m->cfg.max_memory) {
		/*
		 * The other half is for what is not counted here: what the kernel keeps of each
		 * bound thread, and the monitor itself.
		 */
		m->cfg.max_memory = fg_cgroup_memory("") / 2;
		if (m->cfg.max_memory > FG_DEFAULT_MEMORY)
			m->cfg.max_memory = FG_DEFAULT_MEMORY;
	}
	if (!m->cfg.max_connections_per_uid)
		m->cfg.max_connections_per_uid = FG_DEFAULT_CONNECTIONS;
	m->processes = calloc(m->cfg.max_processes, sizeof(*m->processes));
	if (!m->processes)
		goto no_memory;
	for (i = 0; i < m->cfg.max_processes; i++)
		m->processes[i].pidfd = -1;
	for (i = 0; i < FG_MAX_CLIENTS; i++)
		m->clients[i].fd = -1;

	err = load(m, why, why_size);
	if (!err)
		err = attach(m, why, why_size);
	if (err) {
		fg_monitor_close(m);
		return err;
	}
	m->max_files = fg_files_to_share(m->cfg.secret[0]);
	m->max_clients = fg_clients_at_once();
	*out = m;
	return 0;

no_memory:
	fg_monitor_close(m);
	snprintf(why, why_size, "out of memory");
	return -ENOMEM;
}

const struct fg_counters *fg_monitor_counters(const struct fg_monitor *m)
{
	return m->counters;
}

void fg_monitor_close(struct fg_monitor *m)
{
	uint32_t i, n;

	if (!m)
		return;
	for (i = 0; i < FG_MAX_CLIENTS && m->epoll_fd >= 0; i++)
		fg_client_drop(m, i);
	fg_unread_close(m);
	for (i = 0; m->processes && i < m->cfg.max_processes; i++)
		if (m->processes[i].pidfd >= 0) {
			close(m->processes[i].pidfd);
			for (n = 0; n < FG_PIECES; n++)
				if (m->processes[i].piece[n].id)
					close(m->processes[i].piece[n].fd);
		}
	if (m->epoll_fd >= 0)
		close(m->epoll_fd);
	if (m->empty.fd >= 0)
		close(m->empty.fd);
	if (m->counters) {
		/* In this order: a hook that still runs would count after the reset. */
		monitor_bpf__detach(m->skel);
		fg_monitor_reset(m);
		munmap(m->counters, sizeof(*m->counters));
	}
	if (m->skel)
		monitor_bpf__destroy(m->skel);
	free(m->left);
	free(m->processes);
	free(m);
}
