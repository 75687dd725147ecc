/* SPDX-License-Identifier: MIT */
/*
 * What an eBPF program of ours asks of the kernel and of the process that loads it, and what only
 * some kernels have: here and nowhere else.  `flexguard doctor` and `flexguard kernel doctor` show
 * each, why.c says why a load has failed.
 */
#ifndef FG_NEEDS_H
#define FG_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The oldest that it was tried on (make kernels); what is older is refused, since a fault here
 * stops the machine.
 */
#define FG_OLDEST_MAJOR 6
#define FG_OLDEST_MINOR 1

/*
 * This one or later.  False too for one that cannot be read.  Distributions that took newer code
 * into an older kernel lose a little.
 */
bool fg_release_is(const char *release, int major, int minor);

#define FG_BTF "/sys/kernel/btf/vmlinux"
bool fg_has_btf(void);
/* Whether something of this name is in it: a type, a function, a member. */
bool fg_btf_names(const char *name);

/*
 * Lockdown forbids what every tracing program needs: reading kernel memory.  False where nobody
 * tells.
 */
bool fg_is_locked_down(void);

/* A number of /proc/thread-self/status by its field; `otherwise` where it does not stand there. */
unsigned long long fg_thread_status(const char *field, int base, unsigned long long otherwise);

struct fg_caps {
	bool bpf, perfmon, admin;
};
struct fg_caps fg_effective_caps(void); /* all where nobody tells: then the kernel will say */
bool fg_caps_suffice(struct fg_caps caps);
/* "CAP_BPF and CAP_PERFMON": those of them that are missing. */
const char *fg_caps_missing(struct fg_caps caps);

/* In the order in which they are asked for. */
enum fg_need { FG_NEED_RELEASE, FG_NEED_BTF, FG_NEED_CAPS, FG_NEED_NO_LOCKDOWN, FG_NEEDS };
/* 0, or -ENOTSUP (the kernel's), -EPERM (the process's) with one sentence in `why`. */
int fg_need(enum fg_need need, char *why, size_t size);
int fg_need_release(const char *release, char *why, size_t size);
int fg_needs(char *why, size_t size); /* the first that is missing */

#define FG_WHY_USER_NAMESPACE                                                       \
	"the capabilities are those of a user namespace, which do not count: eBPF " \
	"asks for CAP_BPF and CAP_PERFMON of the machine"

/* What kernels have since some version, or by a choice of whoever built them. */
enum fg_feature {
	FG_HAS_WAITS,	      /* tracepoints of waits for the kernel's locks */
	FG_HAS_HOLDS,	      /* and of releases that somebody waits for */
	FG_HAS_SLABS,	      /* the slab cache of an address */
	FG_HAS_SLAB_ITERATOR, /* all slab caches */
	FG_HAS_LOCKDEP,
	FG_HAS_SYNCORD,
	FG_HAS_SCHED_EXT,
};
bool fg_kernel_has(enum fg_feature f);
/* "lock:contended_release, Linux 7.2 and later" */
const char *fg_feature_text(enum fg_feature f);

#endif
