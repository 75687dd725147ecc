// SPDX-License-Identifier: MIT
/*
 * The registered processes.  A process gets one index for life: the program's
 * thread storages name it, so it is given to another process only after the
 * pidfd says that all threads of the first are gone.
 *
 * Domains: processes of one user share a counter, and nobody else writes it.
 * With more than FG_MAX_DOMAINS - 1 users at a time, the rest are refused: who shared
 * one could be made to wait by others.  FG_DOMAIN_ALL counts all of them.
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

/* The user's, or a free one, or FG_DOMAIN_ALL: there is none. */
static uint32_t domain_find(const struct fg_monitor *m, uid_t uid)
{
	uint32_t d, free_domain = FG_DOMAIN_ALL;

	if (m->cfg.domains == FG_DOMAINS_CPUSET)
		uid = 0;
	for (d = FG_MAX_DOMAINS - 1; d > FG_DOMAIN_ALL; d--) {
		if (!m->domains[d].users)
			free_domain = d;
		else if (m->domains[d].uid == uid)
			return d;
	}
	return free_domain;
}

/* find_entry has seen that there is one. */
static uint32_t domain_get(struct fg_monitor *m, uid_t uid)
{
	uint32_t d = domain_find(m, uid);

	m->domains[d].uid = m->cfg.domains == FG_DOMAINS_CPUSET ? 0 : uid;
	m->domains[d].users++;
	return d;
}

/* What the other processes of a user have. */
struct usage {
	uint32_t processes, slots;
};

static uint64_t memory_of(uint32_t processes, uint64_t slots)
{
	return (uint64_t)processes * FG_PROCESS_BYTES + slots * sizeof(struct fg_slot);
}

/*
 * Find the process's entry, or take a free one.  Adds up what the user has on
 * the way: registration is once per process, so a scan is cheap enough.
 */
static int find_entry(struct fg_monitor *m, uint64_t id, uid_t uid, uint32_t *index, struct usage *u)
{
	uint32_t i, k, seen = 0, mine = m->cfg.max_processes;

	for (i = 0; i < m->cfg.max_processes && seen < m->nr_processes; i++) {
		struct fg_process *p = &m->processes[i];

		if (p->pidfd < 0)
			continue;
		seen++;
		if (p->id == id) {
			if (!has_died(p->pidfd)) {
				mine = i;
				continue;
			}
			fg_process_forget(m, i);
			seen--;
		} else if (p->uid == uid) {
			u->processes++;
			u->slots += p->slots;
		}
	}
	if (mine < m->cfg.max_processes) {
		*index = mine;
		/* Somebody else by now, who has a quota of his own: what it had before ends. */
		if (m->processes[mine].uid != uid && (u->processes >= m->cfg.max_per_uid || !domain_find(m, uid))) {
			fg_process_forget(m, mine);
			return -EDQUOT;
		}
		return 0;
	}
	if (u->processes >= m->cfg.max_per_uid)
		return -EDQUOT;
	if (!domain_find(m, uid))
		return -EUSERS;
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

/* As many slots as asked for, or as are left to the user: fewer are better than none.  0: none are left. */
static uint32_t grant(const struct fg_monitor *m, uint32_t want, const struct usage *u)
{
	uint64_t taken = memory_of(u->processes + 1, u->slots), left = 0;

	if (want > m->cfg.max_slots)
		want = m->cfg.max_slots;
	if (want < FG_MIN_SLOTS)
		want = FG_MIN_SLOTS;
	/* Whole pages: that is what gets mapped. */
	want = (want + FG_MIN_SLOTS - 1) / FG_MIN_SLOTS * FG_MIN_SLOTS;

	if (m->cfg.max_slots_per_uid > u->slots)
		left = m->cfg.max_slots_per_uid - u->slots;
	if (m->cfg.max_memory_per_uid < taken + left * sizeof(struct fg_slot))
		left = m->cfg.max_memory_per_uid > taken ?
			   (m->cfg.max_memory_per_uid - taken) / sizeof(struct fg_slot) : 0;
	return want <= left ? want : left / FG_MIN_SLOTS * FG_MIN_SLOTS;
}

int fg_slots_create(uint32_t slots)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "fg_slots", sizeof(uint32_t), sizeof(struct fg_slot),
				slots, &opts);

	return fd < 0 ? -errno : fd;
}

int fg_process_register(struct fg_monitor *m, const struct fg_peer *peer, const struct fg_hello *hello,
			struct fg_welcome *welcome, int *slots_fd)
{
	struct fg_owner owner = {.tls_offset = hello->tls_offset};
	int pidfd = peer->pidfd;
	uid_t uid = peer->uid;
	uint64_t id = pidfd_id(pidfd, peer->pid);
	struct usage others = {0};
	uint32_t slots, index;
	struct fg_process *p;
	bool is_new;
	int fd, own_pidfd, err;

	/* Before anything of an earlier hello is replaced. */
	err = fg_monitor_prove(m, peer, false);
	if (err)
		return err;
	err = find_entry(m, id, uid, &index, &others);
	if (err)
		return err;
	slots = grant(m, hello->want_slots, &others);
	if (!slots)
		return -EDQUOT;
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
		p->since_ns = fg_now_ns();
		memset(p->stats, 0, sizeof(p->stats));
		m->nr_processes++;
		__atomic_fetch_add(&m->skel->bss->active, 1, __ATOMIC_RELAXED);
		err = fg_watch(m, p->pidfd, FG_EV_PROCESS, index);
	}
	if (p->uid != uid) { /* it has become somebody else since its first hello */
		m->domains[p->domain].users--;
		p->uid = uid;
		p->domain = domain_get(m, uid);
	}
	fg_report_map(m, p, fd, slots);
	p->slots = slots;
	p->pid = peer->pid;
	owner.index = index;
	owner.domain = p->domain;
	memset(&owner.who, 0xff, sizeof(owner.who));
	/* Only after the array: threads must not be bound to what this index led to before. */
	if (!err && bpf_map_update_elem(bpf_map__fd(m->skel->maps.owners), &pidfd, &owner, BPF_ANY))
		err = -errno;
	if (!err && m->early)
		err = fg_monitor_audit(m); /* gives the threads that are there their storage */
	/*
	 * Again, now that an exec would take back what was written: before it, one may have come after the
	 * first look.  Nobody's memory has been read for this hello yet.
	 */
	if (!err)
		err = fg_monitor_prove(m, peer, true);
	if (err) {
		bpf_map_delete_elem(bpf_map__fd(m->skel->maps.owners), &pidfd);
		close(fd);
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
	fg_report_map(m, p, -1, 0);
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
