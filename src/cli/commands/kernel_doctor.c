/* SPDX-License-Identifier: MIT */
/*
 * `flexguard kernel doctor`: what this kernel tells of its locks, and what may be done with them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands/doctor.h"
#include "cli/commands/kernel.h"
#include "cli/common/exit.h"
#include "monitor/contention.h"
#include "monitor/needs.h"
#include "monitor/scheduler.h"
#include "sys/slice.h"

static void check_tracepoints(struct fg_findings *t)
{
	if (!fg_kernel_has(FG_HAS_WAITS))
		fg_found(t, "waits", FG_BAD, "no %s", fg_feature_text(FG_HAS_WAITS));
	else
		fg_found(t, "waits", FG_GOOD, "lock:contention_begin and lock:contention_end");
	if (fg_kernel_has(FG_HAS_HOLDS))
		fg_found(t, "holds", FG_GOOD,
			 "lock:contended_release: of locks that somebody waited for, taken after a "
			 "wait; of spinlocks only with "
			 "CONFIG_QUEUED_SPINLOCKS_TRACE_CONTENDED_RELEASE");
	else
		fg_found(t, "holds", FG_INFO, "not told (%s)", fg_feature_text(FG_HAS_HOLDS));
	fg_found(t, "owners", FG_INFO,
		 "of mutexes and writers of rwsems; spinlocks and readers name none");
	if (fg_kernel_has(FG_HAS_SLABS))
		fg_found(t, "slab caches", FG_GOOD, "bpf_get_kmem_cache%s",
			 fg_kernel_has(FG_HAS_SLAB_ITERATOR) ? ", and an iterator of all of them" :
							       "");
	else
		fg_found(t, "slab caches", FG_INFO, "not told (%s)", fg_feature_text(FG_HAS_SLABS));
}

static void check_spinlocks(struct fg_findings *t)
{
	if (fg_kernel_has(FG_HAS_LOCKDEP))
		fg_found(t, "lockdep", FG_INFO,
			 "built in: this kernel's locks are slower than those of others");
	fg_found(t, "spinlocks", FG_INFO,
		 "who finds only the owner before it may wait without a word: qspinlock tells of "
		 "its queue");
	if (!access("/sys/kernel/realtime", F_OK))
		fg_found(t, "PREEMPT_RT", FG_INFO, "yes: most locks are of type rt");
}

static void check_symbols(struct fg_findings *t)
{
	struct fg_kernel_symbols *s = fg_kernel_symbols_open();

	if (s)
		fg_found(t, "names", fg_kernel_has_variables(s) ? FG_GOOD : FG_INFO,
			 "/proc/kallsyms has functions%s",
			 fg_kernel_has_variables(s) ? " and variables" :
						      " only, no variables (CONFIG_KALLSYMS_ALL)");
	else
		fg_found(
		    t, "names", FG_WARN,
		    "/proc/kallsyms shows no addresses (kernel.kptr_restrict, or no CAP_SYSLOG)");
	fg_kernel_symbols_close(s);
}

/* What may change how the kernel schedules and locks. */
static void check_policies(struct fg_findings *t)
{
	char why[300];

	if (fg_kernel_has(FG_HAS_SYNCORD))
		fg_found(t, "SynCord", FG_GOOD, "this kernel has it%s",
			 access("/sys/kernel/syncord", F_OK) ? ", switched off" : "");
	else
		fg_found(t, "SynCord", FG_INFO, "no: this kernel's locks take no policies");
	if (!fg_sched_kernel(why, sizeof(why)))
		fg_found(t, "sched_ext", FG_INFO, "yes: flexguard sched may replace the scheduler");
	else
		fg_found(t, "sched_ext", FG_INFO, "%s (%s)",
			 fg_kernel_has(FG_HAS_SCHED_EXT) ? "an older one" : "no",
			 fg_feature_text(FG_HAS_SCHED_EXT));
	/* Whether this process may have it is not asked: nothing is changed. */
	if (prctl(FG_PR_RSEQ_SLICE, FG_RSEQ_SLICE_GET, 0, 0, 0) >= 0)
		fg_found(t, "rseq slice", FG_INFO, "time-slice extensions can be asked for");
	else
		fg_found(t, "rseq slice", FG_INFO, "no time-slice extensions (%s)",
			 errno == EINVAL ? "Linux 7.0 and later" : strerror(errno));
}

int fg_kernel_doctor(bool json)
{
	struct fg_findings t = {.nr = 0};
	char why[300], verdict[400];
	struct utsname u;
	int err, status;

	uname(&u);
	if (fg_need(FG_NEED_RELEASE, why, sizeof(why)))
		fg_found(&t, "kernel", FG_BAD, "%s", why);
	else
		fg_found(&t, "kernel", FG_GOOD, "%s %s, %s", u.sysname, u.release, u.machine);
	if (fg_need(FG_NEED_BTF, why, sizeof(why)))
		fg_found(&t, "kernel BTF", FG_BAD, "%s", why);
	check_tracepoints(&t);
	check_spinlocks(&t);
	check_symbols(&t);
	check_policies(&t);
	err = fg_contention_preflight(why, sizeof(why));
	if (!err) {
		/* Whether it loads is known when it has been. */
		struct fg_contention *c;

		err = fg_contention_open(&c, &(struct fg_contention_config){0}, why, sizeof(why));
		if (!err)
			fg_contention_close(c);
	}
	status = err ? fg_exit_of(err) : 0;
	if (!err)
		snprintf(verdict, sizeof(verdict), "flexguard kernel profile works here");
	else
		snprintf(verdict, sizeof(verdict),
			 "flexguard kernel profile does not work here: %s", why);
	fg_found(&t, "eBPF", err ? FG_WARN : FG_GOOD, "%s",
		 err ? why : "the program loads and attaches");
	if (json)
		fg_findings_json(&t, NULL, t.nr, verdict, status);
	else
		fg_findings_print(&t, NULL, t.nr, verdict);
	return status;
}
