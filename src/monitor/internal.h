/* SPDX-License-Identifier: MIT */
/*
 * What the files of the monitor share: the state of one monitor.  All of it
 * belongs to the thread that runs fg_monitor_serve; nothing here is locked.  The
 * publisher's threads touch only fg_process.adding, leaving and what does not change.
 */
#ifndef FG_MONITOR_INTERNAL_H
#define FG_MONITOR_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "abi/protocol.h"
#include "monitor/clock.h"
#include "monitor/monitor.h"
#include "monitor/needs.h"
#include "monitor/fair_queue.h"

/*
 * Limits: docs/design/daemon.md, "Limits".  What a user may take leaves room for others; none was
 * varied.
 */
#define FG_DEFAULT_PROCESSES 4096u
/* of one process: 512 KB of kernel memory; there are no more */
#define FG_DEFAULT_SLOTS       (FG_PIECES * FG_PIECE)
#define FG_DEFAULT_UID_SLOTS   (1u << 20) /* 256 processes with all that one may have */
#define FG_DEFAULT_UID_MEMORY  (256ull << 20)
#define FG_DEFAULT_MEMORY      (512ull << 20) /* or half of what its cgroup may have, if that is less */
#define FG_DEFAULT_CONNECTIONS 64u
#define FG_MAX_UNREAD	       4096u
#define FG_MIN_SLOTS	       32u   /* one page */
#define FG_MAX_CLIENTS	       1024u /* connections that have not been answered yet */
/*
 * What a process takes besides its slots: the maps, their files, the pidfd, storages (rounded up).
 */
#define FG_PROCESS_BYTES 4096u
/*
 * What a slot takes: the kernel's memory, and the monitor's own for its counts (fg_process.last).
 */
#define FG_SLOT_BYTES (sizeof(struct fg_slot) + FG_SLOT_STATS * sizeof(uint32_t))
/* For a new connection to say something.  Not varied. */
#define FG_HELLO_NS 1000000000ull

/* A piece of a slot array, as the kernel knows it.  arrays.c */
struct fg_array {
	int fd; /* -1: none */
	uint32_t id, slots;
};

/* What its slots said when they were sampled last (report.c). */
struct fg_seen {
	uint32_t threads, runnable;
	uint64_t preempted, blocked; /* with those of arrays that it had before */
};

/* A registered process.  Its pieces stand at its index here times FG_PIECES in the map of maps. */
struct fg_process {
	uint64_t id; /* of this process and no later one (process.c) */
	int pidfd;   /* -1: free */
	uid_t uid;   /* whose quota it is (fg_monitor_account) */
	uint32_t domain;
	uint64_t held; /* bit d: a thread may count in domain d, nobody else gets it */
	bool owned; /* the program knows of it: an entry in the map `owners`, unless an exec came */
	bool bound; /* storages of its threads may name its index and those domains */
	uint64_t exec_ns; /* since then it has been another program, which has not said hello; 0 */
	uint32_t slots;	  /* of all its pieces together */
	struct fg_array piece[FG_PIECES];
	uint32_t published; /* bit n: the program finds something as piece n */
	int64_t tls_offset;
	pid_t pid; /* for people; says nothing that is decided on */
	uint64_t since_ns;
	uint64_t born_ns;	   /* by the kernel's word */
	const struct fg_slot *map; /* read-only; NULL: it could not be mapped */
	/* of each slot up to nr_last, when it was sampled last; 28 bytes a slot */
	uint32_t (*last)[FG_SLOT_STATS];
	uint32_t nr_last;
	uint32_t highest;		   /* slot that it uses, as it says */
	uint32_t most_slots;		   /* that it had at a look */
	uint64_t last_rest[FG_SLOT_STATS]; /* of slot 0 */
	uint64_t stats[FG_SLOT_STATS];
	uint64_t given[FG_SLOT_STATS]; /* of these, to the sum of all (report.c) */
	uint64_t preempted, blocked;   /* in arrays that it had before this one */
	struct fg_seen seen;
	uint64_t look_ns; /* until then a question is answered with that */
	/*
	 * Of the publisher's threads, atomic: what they have not done yet.  Until then the index is
	 * not free.
	 */
	uint32_t adding, leaving;
};

/* What a user has. */
struct fg_usage {
	uint32_t processes;
	uint32_t left; /* arrays that these, or earlier ones, do not use and the kernel still has */
	uint64_t slots;
	uint32_t files; /* descriptors of the monitor */
};

/* A process that says hello. */
struct fg_peer {
	int sock;  /* its connection */
	int pidfd; /* the process that connected */
	pid_t pid;
	uid_t uid; /* whose quota it is */
	int walk;  /* over its threads, where fg_monitor_prove() goes on; -1: none yet */
	/* -EINPROGRESS: no call while fg_process_is_leaving() of this, less 1; 0: at any time */
	uint32_t waits;
};

/* A connection, until it is answered. */
struct fg_client {
	int fd;		      /* -1: free */
	uid_t uid;	      /* whose quota it is */
	uid_t euid;	      /* that asks */
	bool sees_all;	      /* from where it is, if it is root: fg_monitor_account */
	uint64_t deadline_ns; /* to say something */
	bool said;	      /* and waits to be served */
	bool stalled;	      /* it has none before an earlier answer to its user has been read */
	uint64_t tag;	      /* in the fair queue of users */
	ssize_t size;	      /* of the packet, which may be longer than is kept of it */
	pid_t sender;	      /* of the packet */
	int walk;	      /* fg_peer.walk, from one service to the next; -1: none */
	uint32_t waits;	      /* fg_peer.waits */
	union {
		uint32_t magic;
		struct fg_told_hello hello;
		struct fg_query query;
	} packet;
};

/* An answer that has not been read, and whose quota it is.  unread.c */
struct fg_unread {
	int fd;
	uid_t uid;
};

struct fg_monitor {
	struct monitor_bpf *skel;
	bool early;		      /* a kernel before 6.4 */
	struct fg_counters *counters; /* mapped read-only */
	struct fg_monitor_config cfg; /* no zeros: defaults filled in */

	struct fg_process *processes; /* cfg.max_processes of them */
	uint32_t nr_processes;
	uint32_t next_process; /* where the search for a free one starts */
	uint32_t next_look;    /* fg_process_tick() */
	struct {
		uid_t uid;
		uint32_t users; /* processes that hold it; 0: the domain is free */
	} domains[FG_MAX_DOMAINS];

	struct fg_client clients[FG_MAX_CLIENTS];
	uint32_t nr_clients, max_clients; /* the latter: as descriptors allow */
	uint32_t nr_waiting;		  /* of them: have said something */
	struct fg_fair_queue queue;
	struct fg_unread unread[FG_MAX_UNREAD];
	uint32_t nr_unread, max_unread; /* the latter: of one user */

	int epoll_fd;
	uint32_t ticks;
	uint64_t audit_next_ns, hooks_used_ns;
	int unattached; /* -errno of the last attempt to attach; 0: it did not fail */
	struct {
		int fd;		   /* a timer */
		uint64_t steal_ns; /* as it was told last; 0: not yet */
		uint64_t taken_ns; /* since the last heartbeat */
		uint64_t until_ns; /* it asks; 0: it does not */
	} vcpus;		   /* vcpus.c */

	/* For reports, since the start. */
	uint64_t started_ns, registered, refused, dropped;
	uint64_t stats[FG_SLOT_STATS];
	uint32_t next_sample;
	uint64_t all_ns;   /* when all were sampled last */
	uint32_t all_next; /* where that goes on; 0: it has come to its end */

	struct fg_publisher *publisher;
	struct fg_array empty; /* the slot array of nobody */

	uint64_t slots;		   /* of all processes */
	uint64_t files, max_files; /* descriptors: a pidfd each, and one for each piece */
	struct fg_left *left;	   /* nr_left of max_left (arrays.c) */
	uint32_t nr_left, max_left;
	uint64_t left_slots; /* of those */
	uint64_t collect_next_ns;
};

/* epoll_event.data: what became ready, and which of them. */
enum fg_event {
	FG_EV_LISTEN,
	FG_EV_LOCK,
	FG_EV_STOP,
	FG_EV_TICK,
	FG_EV_VCPUS,
	FG_EV_CLIENT,
	FG_EV_READ,
	FG_EV_PROCESS,
	FG_EV_ROOM
};
int fg_watch(struct fg_monitor *m, int fd, enum fg_event kind, uint32_t index); /* events.c */

void fg_hush_libbpf(void); /* it prints nothing, but with FLEXGUARD_VERBOSE=2 */
/*
 * load.c: offset of the member of this kernel's struct, in bytes; 0: it has none of that name, or
 * not for sure.
 */
uint32_t fg_member_offset(const char *type, const char *member);

/* programs.c: run one of the SEC("syscall") programs, or the audit. */
int fg_monitor_tick(struct fg_monitor *m, uint64_t generation);
int fg_monitor_reset(struct fg_monitor *m); /* at the end: all counts are zero */
int fg_monitor_audit(struct fg_monitor *m);
int fg_monitor_look_at_vcpus(struct fg_monitor *m, bool tell, uint64_t *steal_ns);

/* memory.c: descriptors for all processes, of those that are left now */
uint64_t fg_files_to_share(bool one_program);
uint32_t fg_clients_at_once(void); /* FG_MAX_CLIENTS, or as many as there are descriptors for */
/* what the cgroup of this process, or one above it, may have; UINT64_MAX: all there is */
uint64_t fg_cgroup_memory(const char *root);

/* hooks.c: before a process is known to the program; 0 or -errno, and then none is attached */
int fg_hooks_attach(struct fg_monitor *m);
int fg_hooks_attach_again(struct fg_monitor *m); /* while it serves: people are told */
void fg_hooks_tick(struct fg_monitor *m, uint64_t now);

/* vcpus.c */
void fg_vcpus_find(struct fg_monitor *m); /* while programs may be loaded */
int fg_vcpus_start(struct fg_monitor *m);
void fg_vcpus_stop(struct fg_monitor *m);
void fg_vcpus_tick(struct fg_monitor *m, uint64_t now);
void fg_vcpus_ready(struct fg_monitor *m);

/* why.c: one sentence for the person who reads it; returns the errno to report. */
/* *early: whether to take the object for kernels before 6.4 in any case; then, whether it did */
int fg_skeleton_open(struct monitor_bpf **out, bool *early);
/* `outside`: what to do in a container, which may be forbidden it. */
int fg_why_load(int err, const char *outside, char *why, size_t size);

/*
 * programs.c: whose quota the peer of a connection counts against: the real user, or the one whose
 * user namespace it is in (account_of, bpf/who.h).  `otherwise` if the kernel does not say.  And
 * whether it may hear of all processes, if it is privileged (sees_all).
 */
uid_t fg_monitor_account(struct fg_monitor *m, int sock, uid_t otherwise, bool *sees_all);

/*
 * programs.c: 0 if a thread of the peer is still what it was at connect(), -EACCES if none is.  It
 * looks at FG_PROVE_AT_ONCE of them; -EINPROGRESS: there are more, and the next call goes on there.
 * With `write`, after 0, it asks again for that very thread, and the program is told: only from
 * then on does it look at the process's threads.
 */
#define FG_PROVE_AT_ONCE 512u
int fg_monitor_prove(struct fg_monitor *m, struct fg_peer *peer, bool write);

/*
 * programs.c: where m->early, storage for so many threads of the peer, which the program knows;
 * the others get theirs from the next audit.
 */
int fg_monitor_equip(struct fg_monitor *m, const struct fg_peer *peer);

/*
 * process.c: the peer's and the slot array's descriptors are the caller's to close.  -EINPROGRESS:
 * the peer is not known yet, or (fg_peer.waits) its earlier array is not gone; to be called again.
 */
int fg_process_register(struct fg_monitor *m, struct fg_peer *peer, const struct fg_hello *hello,
			struct fg_welcome *welcome, int *slots_fd);
/* Pieces that were at this index are still to be taken out. */
bool fg_process_is_leaving(const struct fg_monitor *m, uint32_t index);
void fg_process_forget(struct fg_monitor *m, uint32_t index);
void fg_process_reap(struct fg_monitor *m, uint32_t index); /* forget it, if it has died */
void fg_process_tick(struct fg_monitor *m, uint64_t now);   /* ... or does not know us any more */

/*
 * publish.c: let the program find this array as this piece of the process with this index, or none
 */
int fg_publisher_start(struct fg_monitor *m);
/* fg_publish would not wait for earlier arrays; else FG_EV_ROOM, as when any was put in or out */
bool fg_publisher_has_room(struct fg_monitor *m);
void fg_publisher_heard(struct fg_monitor *m); /* of FG_EV_ROOM */
void fg_publisher_stop(struct fg_monitor *m);
int fg_publish(struct fg_monitor *m, uint32_t index, uint32_t piece, const struct fg_array *a);
void fg_unpublish(struct fg_monitor *m, uint32_t index, uint32_t piece);
bool fg_is_published(struct fg_monitor *m, uint32_t index, uint32_t piece,
		     const struct fg_array *a);

/*
 * arrays.c: a fresh one, or -errno; an end of its use, from where on its user pays for it until it
 * is gone
 */
int fg_array_create(uint32_t slots, struct fg_array *a);
void fg_array_leave(struct fg_monitor *m, struct fg_array *a, uid_t uid);
void fg_arrays_collect(struct fg_monitor *m); /* which of those are gone? */
void fg_arrays_find(struct fg_monitor *m);    /* at the start: of a monitor before this one */
void fg_arrays_charge(const struct fg_monitor *m, uid_t uid, struct fg_usage *u);

/*
 * report.c: what it remembers of each slot, before it is granted: false, there is no memory; a
 * piece
 */
bool fg_report_make_room(struct fg_process *p, uint32_t slots);
void fg_report_map(struct fg_monitor *m, struct fg_process *p, int fd, uint32_t from, uint32_t to);
void fg_report_leave(struct fg_monitor *m, struct fg_process *p); /* before the array is another */
void fg_report_forget(struct fg_monitor *m, struct fg_process *p);
void fg_report_tick(struct fg_monitor *m);
/* of all processes, or of those that this user pays for */
void fg_report_answer(struct fg_monitor *m, int fd, const struct fg_query *q, ssize_t size,
		      bool all, uid_t uid);

/* client.c */
void fg_pass_credentials(int fd); /* packets come with the kernel's word on their sender */
void fg_client_accept(struct fg_monitor *m, int listen_fd);
/* Of accept(): out of descriptors, or of memory. */
bool fg_client_no_room(int err);
void fg_client_ready(struct fg_monitor *m, uint32_t index);
/* the one that is next; false: nobody waits, or there is no room */
bool fg_client_serve(struct fg_monitor *m);
void fg_client_drop(struct fg_monitor *m, uint32_t index);
void fg_client_expire(struct fg_monitor *m, uint64_t now_ns);

/* unread.c */
void fg_unread_limit(struct fg_monitor *m); /* how many each user may have */
bool fg_unread_is_full(const struct fg_monitor *m, uid_t uid);
/*
 * After an answer: true, it has not been read, and the descriptor will be closed when it has;
 * false: it is the caller's to close.
 */
bool fg_unread_keep(struct fg_monitor *m, int fd, uid_t uid);
/* the first connection of this user that waits for it may be served: it has read an answer */
void fg_unread_admit(struct fg_monitor *m, uid_t uid);
void fg_unread_ready(struct fg_monitor *m, int fd);
void fg_unread_tick(struct fg_monitor *m);
void fg_unread_close(struct fg_monitor *m);

#endif
