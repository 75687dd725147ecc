// SPDX-License-Identifier: MIT
/*
 * The registered processes.  A process gets one index for life: the program's
 * thread storages name it, so it is given to another process only after the
 * pidfd says that all threads of the first are gone.
 *
 * Domains: processes of one user share a counter, and nobody else writes it.  The program copies a
 * thread's domain when it binds it, and a thread that sleeps keeps that whatever becomes of its
 * process.  So what threads were bound to, the index and the domain, is given to others only when
 * they are gone: at the process's end, or at an exec.
 *
 * With more than FG_MAX_DOMAINS - 1 users at a time, the rest are refused: users that shared
 * one could make each other wait.
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
static void domain_get(struct fg_monitor *m, struct fg_process *p, uid_t uid)
{
	uint32_t d = domain_find(m, uid);

	m->domains[d].uid = m->cfg.domains == FG_DOMAINS_CPUSET ? 0 : uid;
	if (!(p->held & 1ull << d))
		m->domains[d].users++;
	p->held |= 1ull << d;
	p->domain = d;
}

/* All that the process has, but those in `keep`. */
static void domains_put(struct fg_monitor *m, struct fg_process *p, uint64_t keep)
{
	_Static_assert(FG_MAX_DOMAINS == 64, "a bit each");

	for (uint32_t d = 0; d < FG_MAX_DOMAINS; d++)
		if (p->held & ~keep & 1ull << d)
			m->domains[d].users--;
	p->held &= keep;
}

/*
 * Of users that a process was before.  A daemon that gives up root, and a second account, have
 * room; one that becomes everybody in turn would keep the domains of all.  Not varied.
 */
#define FORMER_DOMAINS 4

static bool may_become(const struct fg_monitor *m, const struct fg_process *p, uid_t uid)
{
	uint32_t d = domain_find(m, uid);

	return d != FG_DOMAIN_ALL && (!p->bound || p->held & 1ull << d ||
				      __builtin_popcountll(p->held) <= FORMER_DOMAINS);
}

static uint64_t memory_of(uint32_t processes, uint64_t slots)
{
	return (uint64_t)processes * FG_PROCESS_BYTES + slots * FG_SLOT_BYTES;
}

/*
 * What there is of `all` for a user who has so much: half is for who comes first, of the rest each
 * user has a part, so that no few users leave nothing to the others.  In sum that is not more than
 * all, and not less than `least` for one that finds so much.
 */
static uint64_t room_for(uint64_t all, uint64_t taken, uint64_t has, uint64_t least)
{
	uint64_t part = all / 2 / FG_MAX_DOMAINS, room = taken < all / 2 ? all / 2 - taken : 0;

	part = part > least ? part : least;
	if (has < part && room < part - has)
		room = part - has;
	if (taken >= all)
		return 0;
	return room < all - taken ? room : all - taken;
}

/* Arrays of users who have no process any more, and a monitor's before this one, count. */
static uint64_t memory_for(const struct fg_monitor *m, uint64_t has)
{
	return room_for(m->cfg.max_memory,
			memory_of(m->nr_processes + m->nr_left, m->slots + m->left_slots), has, 0);
}

/* A process's: its pidfd, and each piece. */
static uint32_t files_of(const struct fg_process *p)
{
	return 1 + (p->slots + FG_PIECE - 1) / FG_PIECE;
}

#define FILES_FIRST 2u /* with one piece */

static uint64_t files_for(const struct fg_monitor *m, uint32_t has)
{
	if (m->cfg.secret[0]) /* all of one program: there is nobody to leave a part to */
		return m->files < m->max_files ? m->max_files - m->files : 0;
	return room_for(m->max_files, m->files, has, 2 * FILES_FIRST);
}

/* Acquire pairs with the release in publish.c, as the next: what was to be taken out is out. */
bool fg_process_is_leaving(const struct fg_monitor *m, uint32_t index)
{
	return __atomic_load_n(&m->processes[index].leaving, __ATOMIC_ACQUIRE);
}

/* The arrays of its last user are gone. */
static bool is_settled(const struct fg_monitor *m, uint32_t index)
{
	return !__atomic_load_n(&m->processes[index].adding, __ATOMIC_ACQUIRE) &&
	       !fg_process_is_leaving(m, index);
}

/* Of those from this one on the program hears, too. */
static void leave_pieces(struct fg_monitor *m, uint32_t index, uint32_t from)
{
	struct fg_process *p = &m->processes[index];

	for (uint32_t n = 0; n < FG_PIECES; n++) {
		if (p->published & 1u << n && n >= from) {
			fg_unpublish(m, index, n);
			p->published &= ~(1u << n);
		}
		m->files -= p->piece[n].id != 0;
		fg_array_leave(m, &p->piece[n], p->uid);
	}
	m->slots -= p->slots;
	p->slots = 0;
}

/*
 * Has it executed another program since the program was told of it?  Then its other threads are
 * gone, and what the one that is left was bound to (on_exec, bpf/monitor.bpf.c).  An entry that we
 * took back ourselves says nothing.  A thread that is not the leader takes its place, which has no
 * owner, some time before that, for as long as its io_uring has requests under way: what it is
 * bound to is there until then, and may count.
 */
static void notice_exec(struct fg_monitor *m, struct fg_process *p)
{
	const struct bpf_map *threads = m->skel->maps.threads;
	struct fg_owner owner;
	uint64_t thread[32];

	if (!p->owned ||
	    !bpf_map_lookup_elem(bpf_map__fd(m->skel->maps.owners), &p->pidfd, &owner) ||
	    errno != ENOENT)
		return;
	if (bpf_map__value_size(threads) > sizeof(thread) ||
	    !bpf_map_lookup_elem(bpf_map__fd(threads), &p->pidfd, thread))
		return;
	p->owned = p->bound = false;
	domains_put(m, p, 1ull << p->domain);
}

/*
 * It gets no array, and what it had before ends.  As long as storages of its threads may name its
 * index it keeps that, and its domains.
 */
static void retire(struct fg_monitor *m, uint32_t index)
{
	struct fg_process *p = &m->processes[index];

	notice_exec(m, p);
	if (p->owned && !bpf_map_delete_elem(bpf_map__fd(m->skel->maps.owners), &p->pidfd))
		p->owned = false;
	if (!p->bound) {
		fg_process_forget(m, index);
		return;
	}
	fg_report_leave(m, p);
	leave_pieces(m, index, 0);
}

/*
 * Find the process's entry, or take a free one.  Adds up what the user's other processes have on
 * the way: registration is once per process, so a scan is cheap enough.
 */
static int find_entry(struct fg_monitor *m, uint64_t id, uid_t uid, uint32_t *index,
		      struct fg_usage *u)
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
			u->files += files_of(p);
		}
	}
	if (mine < m->cfg.max_processes) {
		*index = mine;
		notice_exec(m, &m->processes[mine]);
		/* Another user by now, with a quota of its own: what it had before ends. */
		if (m->processes[mine].uid != uid && (u->processes >= m->cfg.max_per_uid ||
						      !may_become(m, &m->processes[mine], uid))) {
			retire(m, mine);
			return -EDQUOT;
		}
		return 0;
	}
	if (u->processes >= m->cfg.max_per_uid || files_for(m, u->files) < FILES_FIRST)
		return -EDQUOT;
	if (!domain_find(m, uid))
		return -EUSERS;
	for (k = 0; k < m->cfg.max_processes; k++) {
		i = (m->next_process + k) % m->cfg.max_processes;
		if (m->processes[i].pidfd < 0 && is_settled(m, i)) {
			m->next_process = i + 1;
			*index = i;
			return 0;
		}
	}
	return -EUSERS;
}

/*
 * How large the next piece is for a process that has `have` slots: as asked for, or as is left to
 * the user, since fewer are better than none.  0: none are left.
 */
static uint32_t grant(const struct fg_monitor *m, uint32_t want, uint32_t have,
		      const struct fg_usage *u)
{
	uint64_t taken = memory_of(u->processes + 1 + u->left, u->slots + have), left = 0, room;

	if (want > FG_PIECE)
		want = FG_PIECE;
	/* Whole pages: that is what gets mapped. */
	want = want > FG_MIN_SLOTS ? (want + FG_MIN_SLOTS - 1) / FG_MIN_SLOTS * FG_MIN_SLOTS :
				     FG_MIN_SLOTS;
	if (want > m->cfg.max_slots - have)
		want = m->cfg.max_slots - have;

	if (m->cfg.max_slots_per_uid > u->slots + have)
		left = m->cfg.max_slots_per_uid - u->slots - have;
	if (m->cfg.max_memory_per_uid < taken + left * FG_SLOT_BYTES)
		left = m->cfg.max_memory_per_uid > taken ?
			   (m->cfg.max_memory_per_uid - taken) / FG_SLOT_BYTES :
			   0;
	room = memory_for(m, taken) / FG_SLOT_BYTES;
	left = left < room ? left : room;
	return (want <= left ? want : (uint32_t)left) / FG_MIN_SLOTS * FG_MIN_SLOTS;
}

/* The next piece of the process's array; the first one, if it has none. */
static int add_piece(struct fg_monitor *m, uint32_t index, uint32_t want,
		     const struct fg_usage *others)
{
	struct fg_process *p = &m->processes[index];
	uint32_t n = p->slots / FG_PIECE, slots;
	struct fg_usage u = *others;
	struct fg_array a;
	int err;

	/* A removal that is under way would take the new one. */
	if (!(p->published & 1u << n) && fg_process_is_leaving(m, index))
		return -EAGAIN;
	fg_arrays_charge(m, p->uid, &u);
	slots = grant(m, want, p->slots, &u);
	if (slots < want && m->nr_left) {
		u = *others;
		fg_arrays_collect(m);
		fg_arrays_charge(m, p->uid, &u);
		slots = grant(m, want, p->slots, &u);
	}
	if (!slots || !files_for(m, others->files + files_of(p)))
		return -EDQUOT;
	err = fg_array_create(slots, &a);
	if (err)
		return err;
	err = fg_report_make_room(p, p->slots + slots) ? fg_publish(m, index, n, &a) : -ENOMEM;
	if (err) {
		close(a.fd);
		return err;
	}
	fg_report_map(m, p, a.fd, p->slots, p->slots + slots);
	p->published |= 1u << n;
	p->piece[n] = a;
	p->slots += slots;
	m->slots += slots;
	m->files++;
	return 0;
}

/*
 * Is it what the array was made for?  Not another program: an exec has taken its entry in `owners`.
 * Not with other credentials, and not another copy of the library, which numbers its threads on its
 * own.
 */
static bool is_same(struct fg_monitor *m, const struct fg_process *p, const struct fg_peer *peer,
		    const struct fg_hello *hello)
{
	struct fg_owner owner;

	return p->uid == peer->uid && p->tls_offset == hello->tls_offset &&
	       !bpf_map_lookup_elem(bpf_map__fd(m->skel->maps.owners), &peer->pidfd, &owner) &&
	       !memcmp(&owner.who, m->skel->bss->proved_who, sizeof(owner.who));
}

/* A process that has not been here. */
static int enter(struct fg_monitor *m, uint32_t index, uint64_t id, const struct fg_peer *peer)
{
	struct fg_process *p = &m->processes[index];
	int pidfd, err = fg_hooks_attach_again(m);

	if (err)
		return err;
	pidfd = fcntl(peer->pidfd, F_DUPFD_CLOEXEC, 3);
	if (pidfd < 0)
		return -errno;
	p->id = id;
	p->pidfd = pidfd;
	p->uid = peer->uid;
	p->owned = p->bound = false;
	p->exec_ns = 0;
	domain_get(m, p, peer->uid);
	p->since_ns = fg_now_ns();
	p->born_ns = m->skel->bss->peer_born;
	memset(p->stats, 0, sizeof(p->stats));
	m->nr_processes++;
	m->files++;
	__atomic_fetch_add(&m->skel->bss->active, 1, __ATOMIC_RELAXED);
	err = fg_watch(m, p->pidfd, FG_EV_PROCESS, index);
	if (err)
		fg_process_forget(m, index);
	return err;
}

/*
 * Another program or user in a process that has been here.  It keeps its index, which storages of
 * its threads name; the array stays with those who have it mapped.
 */
static int enter_again(struct fg_monitor *m, uint32_t index, uid_t uid)
{
	struct fg_process *p = &m->processes[index];

	/* It is still being put in, and might come after the new one. */
	if (p->piece[0].id && !fg_is_published(m, index, 0, &p->piece[0]))
		return -EAGAIN;
	fg_report_leave(m, p);
	leave_pieces(m, index, 1); /* the new first one takes the old one's place */
	if (p->uid == uid)
		return 0;
	p->uid = uid;
	domain_get(m, p, uid);
	if (!p->bound)
		domains_put(m, p, 1ull << p->domain);
	return 0;
}

/* The program is told whose the array is. */
static int own(struct fg_monitor *m, uint32_t index, struct fg_peer *peer)
{
	struct fg_process *p = &m->processes[index];
	struct fg_owner owner = {
	    .tls_offset = p->tls_offset, .index = index * FG_PIECES, .domain = p->domain};
	int err;

	memset(&owner.who, 0xff, sizeof(owner.who));
	/* Only after the array: threads must not be bound to what this index led to before. */
	if (bpf_map_update_elem(bpf_map__fd(m->skel->maps.owners), &peer->pidfd, &owner, BPF_ANY))
		return -errno;
	p->owned = true;
	p->exec_ns = 0;
	/* gives the threads that are there their storage */
	err = m->early ? fg_monitor_equip(m, peer) : 0;
	/*
	 * Again, now that an exec would take back what was written: before it, one may have come
	 * after the first look.  Nobody's memory has been read for this hello yet.
	 */
	err = err ? err : fg_monitor_prove(m, peer, true);
	p->bound |= !err;
	return err == -EINPROGRESS ? -EACCES : err;
}

int fg_process_register(struct fg_monitor *m, struct fg_peer *peer, const struct fg_hello *hello,
			struct fg_welcome *welcome, int *slots_fd)
{
	uint64_t id = pidfd_id(peer->pidfd, peer->pid);
	uint32_t index, n = hello->from / FG_PIECE;
	struct fg_usage others = {0};
	struct fg_process *p;
	bool is_new, same;
	int err;

	/* Before anything of an earlier hello is replaced. */
	err = fg_monitor_prove(m, peer, false);
	if (err)
		return err;
	err = find_entry(m, id, peer->uid, &index, &others);
	if (err)
		return err;
	p = &m->processes[index];
	is_new = p->pidfd < 0;
	same = !is_new && is_same(m, p, peer, hello);
	if (hello->from && !same)
		return -ESTALE;
	if (hello->from > p->slots)
		return -EINVAL;
	if (!same) {
		/*
		 * Another process may have the earlier array mapped, and could see into the program
		 * that this one is now.  As long as the index leads there nobody is bound.
		 */
		peer->waits = index + 1;
		if (fg_process_is_leaving(m, index))
			return -EINPROGRESS;
		err = is_new ? enter(m, index, id, peer) : enter_again(m, index, peer->uid);
		if (err)
			return err;
		if (fg_process_is_leaving(m, index))
			return -EINPROGRESS;
		p->tls_offset = hello->tls_offset;
		p->pid = peer->pid;
	}
	if (hello->from == p->slots)
		err = add_piece(m, index, hello->want_slots, &others);
	/* The publisher is late with the first one; the client comes again. */
	if (!err && !same && !is_new && !fg_is_published(m, index, 0, &p->piece[0]))
		err = -EAGAIN;
	/* Before threads are bound: what fails from there on keeps its index. */
	if (!err) {
		*slots_fd = fcntl(p->piece[n].fd, F_DUPFD_CLOEXEC, 3);
		err = *slots_fd < 0 ? -errno : 0;
	}
	if (!err && !same)
		err = own(m, index, peer);
	if (err) {
		if (!same)
			retire(m, index);
		return err;
	}
	welcome->slots = hello->from + p->piece[n].slots;
	welcome->domain = p->domain;
	return 0;
}

void fg_process_forget(struct fg_monitor *m, uint32_t index)
{
	struct fg_process *p = &m->processes[index];

	fg_report_forget(m, p);
	leave_pieces(m, index, 0);
	close(p->pidfd);
	p->pidfd = -1;
	domains_put(m, p, 0);
	m->nr_processes--;
	m->files--;
	__atomic_fetch_sub(&m->skel->bss->active, 1, __ATOMIC_RELAXED);
}

void fg_process_reap(struct fg_monitor *m, uint32_t index)
{
	if (m->processes[index].pidfd >= 0 && has_died(m->processes[index].pidfd))
		fg_process_forget(m, index);
}

/*
 * For the program that comes by exec to say hello: it does so when its libraries are loaded.  One
 * that never does has no use for a place, and is no client to be told of.  Not varied.
 */
#define EXEC_NS 2000000000ull
#define LOOK_NS 5000000000ull /* each process is looked at once in so long; not varied */

static void look(struct fg_monitor *m, uint32_t index, uint64_t now)
{
	struct fg_process *p = &m->processes[index];
	bool owned = p->owned;

	notice_exec(m, p);
	if (owned && !p->owned)
		p->exec_ns = now;
	if (p->exec_ns && now - p->exec_ns >= EXEC_NS)
		fg_process_forget(m, index);
}

void fg_process_tick(struct fg_monitor *m, uint64_t now)
{
	uint32_t n = m->cfg.max_processes / (uint32_t)(LOOK_NS / FG_HEARTBEAT_NS) + 1;

	for (; n && m->nr_processes; n--) {
		m->next_look = (m->next_look + 1) % m->cfg.max_processes;
		if (m->processes[m->next_look].pidfd >= 0)
			look(m, m->next_look, now);
	}
}
