/* SPDX-License-Identifier: MIT */
/*
 * What the monitor asks of the kernel and of the process that loads it.  why.c says which is
 * missing first, `flexguard doctor` shows each.
 */
#ifndef FG_NEEDS_H
#define FG_NEEDS_H

#include <stdbool.h>
#include <stdint.h>

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

struct fg_caps {
	bool bpf, perfmon, admin;
};
struct fg_caps fg_effective_caps(void); /* all where nobody tells: then the kernel will say */
bool fg_caps_suffice(struct fg_caps caps);
/* "CAP_BPF and CAP_PERFMON": those of them that are missing. */
const char *fg_caps_missing(struct fg_caps caps);

#endif
