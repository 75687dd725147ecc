/* SPDX-License-Identifier: MIT OR GPL-2.0-only OR BSD-2-Clause */
/*
 * What the loader and the monitor program tell each other.  Clients never see
 * any of it; what they share with the program is src/abi/protocol.h.
 */
#ifndef FG_MONITOR_TYPES_H
#define FG_MONITOR_TYPES_H

/*
 * The process that said hello: the credentials and the memory that its threads have to have, or
 * they are not looked at (bpf/who.h).  All ones where no thread has proved to have them: it fits no
 * task.
 */
struct fg_who {
	__u64 mm, user_ns;    /* addresses; compared, never followed */
	__u64 caps;	      /* permitted; a thread may have fewer */
	__u32 uid[3], gid[3]; /* real, effective, saved */
	__u32 dumpable;
	__u32 known;
};
#define FG_KNOWN 1u

/* A registered process: storage of its group leader, written by the daemon, but for `who`. */
struct fg_owner {
	__s64 tls_offset; /* fg_hello.tls_offset */
	/* of the first piece of its slot array in the map of maps; a multiple of FG_PIECES */
	__u32 index;
	__u32 domain;
	struct fg_who who; /* all ones from the daemon; by the program `prove` */
};

/* Argument of the `tick` program. */
struct fg_tick {
	__u64 generation;  /* 0: leave it and what never changes as they are */
	__u64 online_cpus; /* 0: leave it as it is */
};
#define FG_TICK_BLIND 2 /* its answer: this kernel does not tell whose memory may be read (who.h) */

#define FG_SLOTS_NAME "fg_slots" /* of each slot array; compared as a number of 64 bits */

/* What `arrays` writes, one for each. */
struct fg_found {
	__u32 id, slots;
};

/* Argument of `look_at_vcpus`. */
struct fg_vcpus {
	__u64 tell;	/* 0: as if all were on */
	__u64 steal_ns; /* its answer: taken of all CPUs since boot; 0: nobody tells */
};

/*
 * Audits that a thread may stay counted as preempted without having run.  The
 * audit runs every FG_HEARTBEAT_NS or less often: 2 s at least.
 * A thread that starves for longer than that is not preempted, it is stalled,
 * and no spinner gains from waiting for it to be scheduled any minute now.
 */
#define FG_AUDIT_CAP 20

#endif
