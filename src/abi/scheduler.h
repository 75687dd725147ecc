/* SPDX-License-Identifier: MIT OR GPL-2.0-only OR BSD-2-Clause */
/* What the companion scheduler (bpf/sched.bpf.c) and its loader tell each other. */
#ifndef FG_ABI_SCHEDULER_H
#define FG_ABI_SCHEDULER_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* docs/design/sched.md.  None was varied. */
#define FG_SCHED_USERS	      64u /* that have a part of their own; the last is for all others */
#define FG_SCHED_SLICE_NS     4000000u /* an ordinary turn */
#define FG_SCHED_EXTENSION_NS 2000000u /* by default: as long as a turn is extended for an owner */
#define FG_SCHED_FIRST_NS     2000000u /* a turn out of turn */

/* Since it was attached; each is written where something out of the ordinary happens. */
struct fg_sched_counts {
	__u64 extended;	 /* turns that went on because others waited for a lock of the thread */
	__u64 released;	 /* of these: given back when it had none any more */
	__u64 preempted; /* turns that ended while the thread was critical and wanted to go on */
	__u64 first;	 /* of these threads: that ran before others of their user */
	__u64 yielded;	 /* turns of spinning waiters that made room for such a one */
};

/* Why the kernel has ended it. */
struct fg_sched_end {
	__u64 kind; /* 0: not ended */
	__s64 code;
	char reason[64], message[192];
};
#define FG_SCHED_END_ERROR 1024u /* this and above: the kernel ejected it */

#endif
