// SPDX-License-Identifier: MIT
/*
 * The registered processes.  A process gets one index for life: the program's
 * thread storages name it, so it is given to another process only after the
 * pidfd says that all threads of the first are gone.
 *
 * Domains: processes of one user share a counter, and nobody else writes it.
 * With more than FG_MAX_DOMAINS - 1 users at a time, the rest share the
 * system-wide one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"
#include "monitor_types.h"
#include "monitor.skel.h"

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

/*
 * Which process a pidfd means.  Since 6.9 its inode number is never used again;
 * before that the pid has to do, which is unique as long as the pidfd's process
 * is alive.
 */
static uint64_t pidfd_id(int pidfd, pid_t pid)
{
	struct statfs fs;
	struct stat st;

	if (!fstatfs(pidfd, &fs) && fs.f_type == PID_FS_MAGIC && !fstat(pidfd, &st))
		return st.st_ino;
	return pid;
}

static bool has_died(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static uint32_t domain_get(struct fg_monitor *m, uid_t uid)
{
	uint32_t d, free_domain = FG_DOMAIN_ALL;

	for (d = FG_MAX_DOMAINS - 1; d > FG_DOMAIN_ALL; d--) {
		if (!m->domains[d].users)
			free_domain = d;
		else if (m->domains[d].uid == uid)
			break;
	}
	if (d == FG_DOMAIN_ALL)
		d = free_domain;
	m->domains[d].uid = uid;
	m->domains[d].users++;
	return d;
}

/*
 * Find the process's entry, or take a free one.  Counts the user's processes on
 * the way: registration is once per process, so a scan is cheap enough.
 */
static int find_entry(struct fg_monitor *m, uint64_t id, uid_t uid, uint32_t *index)
{
	uint32_t i, k, seen = 0, of_user = 0;

	for (i = 0; i < m->cfg.max_processes && seen < m->nr_processes; i++) {
		struct fg_process *p = &m->processes[i];

		if (p->pidfd < 0)
			continue;
		seen++;
		if (p->id == id) {
			if (!has_died(p->pidfd)) {
				*index = i;
				return 0;
			}
			fg_process_forget(m, i);
			seen--;
		} else if (p->uid == uid) {
			of_user++;
		}
	}
	if (of_user >= m->cfg.max_per_uid)
		return -EDQUOT;
	for (k = 0; k < m->cfg.max_processes; k++) {
		i = (m->next_process + k) % m->cfg.max_processes;
		/* Acquire pairs with the release in publish.c: its last user's array is gone. */
		if (m->processes[i].pidfd < 0 &&
		    !__atomic_load_n(&m->processes[i].leaving, __ATOMIC_ACQUIRE)) {
			m->next_process = i + 1;
			*index = i;
			return 0;
		}
	}
	return -EUSERS;
}

static uint32_t grant(const struct fg_monitor *m, uint32_t want)
{
	if (want > m->cfg.max_slots)
		want = m->cfg.max_slots;
	if (want < FG_MIN_SLOTS)
		want = FG_MIN_SLOTS;
	/* Whole pages: that is what gets mapped. */
	return (want + FG_MIN_SLOTS - 1) / FG_MIN_SLOTS * FG_MIN_SLOTS;
}

int fg_slots_create(uint32_t slots)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "fg_slots", sizeof(uint32_t), sizeof(struct fg_slot),
				slots, &opts);

	return fd < 0 ? -errno : fd;
}

int fg_process_register(struct fg_monitor *m, int pidfd, pid_t pid, uid_t uid, const struct fg_hello *hello,
			struct fg_welcome *welcome, int *slots_fd)
{
	struct fg_owner owner = {.tls_offset = hello->tls_offset};
	uint64_t id = pidfd_id(pidfd, pid);
	uint32_t slots = grant(m, hello->want_slots), index;
	struct fg_process *p;
	bool is_new;
	int fd, own_pidfd, err;

	err = find_entry(m, id, uid, &index);
	if (err)
		return err;
	p = &m->processes[index];
	is_new = p->pidfd < 0;

	fd = fg_slots_create(slots);
	if (fd < 0)
		return fd;
	own_pidfd = is_new ? fcntl(pidfd, F_DUPFD_CLOEXEC, 3) : p->pidfd;
	err = own_pidfd < 0 ? -errno : fg_publish(m, index, fd);
	if (err) {
		close(fd);
		if (is_new && own_pidfd >= 0)
			close(own_pidfd);
		return err;
	}
	if (is_new) {
		p->id = id;
		p->pidfd = own_pidfd;
		p->uid = uid;
		p->domain = domain_get(m, uid);
		m->nr_processes++;
		__atomic_fetch_add(&m->skel->bss->active, 1, __ATOMIC_RELAXED);
		err = fg_watch(m, p->pidfd, FG_EV_PROCESS, index);
	}
	owner.index = index;
	owner.domain = p->domain;
	/* Only after the array: threads must not be bound to what this index led to before. */
	if (!err && bpf_map_update_elem(bpf_map__fd(m->skel->maps.owners), &pidfd, &owner, BPF_ANY))
		err = -errno;
	if (err) {
		close(fd);
		if (is_new)
			fg_process_forget(m, index);
		return err;
	}
	welcome->slots = slots;
	welcome->domain = p->domain;
	*slots_fd = fd;
	return 0;
}

void fg_process_forget(struct fg_monitor *m, uint32_t index)
{
	struct fg_process *p = &m->processes[index];

	/* Without memory for the request the index stays out of use: better than two users at a time. */
	__atomic_store_n(&p->leaving, true, __ATOMIC_RELAXED);
	fg_unpublish(m, index);
	close(p->pidfd);
	p->pidfd = -1;
	m->domains[p->domain].users--;
	m->nr_processes--;
	__atomic_fetch_sub(&m->skel->bss->active, 1, __ATOMIC_RELAXED);
}

void fg_process_reap(struct fg_monitor *m, uint32_t index)
{
	if (m->processes[index].pidfd >= 0 && has_died(m->processes[index].pidfd))
		fg_process_forget(m, index);
}
