/* SPDX-License-Identifier: MIT */
/*
 * `flexguard doctor`: what works on this machine.  What the monitor asks for stands in
 * monitor/needs.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands/doctor.h"
#include "cli/common/library.h"
#include "cli/common/query.h"
#include "cli/launch/embed.h"
#include "cli/launch/filter.h"
#include "monitor/monitor.h"
#include "monitor/namespace.h"
#include "monitor/needs.h"

static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(buf, (int)size, f);

	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	if (f)
		fclose(f);
	return ok;
}

static void check_kernel(struct fg_findings *t)
{
	char line[256], why[256];
	struct utsname u;

	uname(&u);
	if (!fg_need(FG_NEED_RELEASE, why, sizeof(why)))
		fg_found(t, "kernel", FG_GOOD, "%s %s, %s", u.sysname, u.release, u.machine);
	else
		fg_found(t, "kernel", FG_WARN, "%s, %s: %s", u.sysname, u.machine, why);
	if (!fg_need(FG_NEED_BTF, why, sizeof(why)))
		fg_found(t, "kernel BTF", FG_GOOD, FG_BTF);
	else
		fg_found(t, "kernel BTF", FG_WARN, "%s", why);
	if (read_line("/proc/sys/kernel/unprivileged_bpf_disabled", line, sizeof(line)))
		fg_found(t, "unprivileged eBPF", FG_INFO, "%s",
			 *line == '0' ? "allowed (not needed)" :
					"not allowed (not needed: see capabilities)");
	if (read_line("/sys/kernel/security/lockdown", line, sizeof(line))) {
		if (fg_need(FG_NEED_NO_LOCKDOWN, why, sizeof(why)))
			fg_found(t, "lockdown", FG_WARN, "%s: %s", line, why);
		else
			fg_found(t, "lockdown", FG_INFO, "%s", line);
	}
}

static void check_capabilities(struct fg_findings *t)
{
	struct fg_caps caps = fg_effective_caps();
	char why[256];

	/* Those of a user namespace are not asked for: eBPF is the whole machine's. */
	if ((caps.bpf || caps.perfmon || caps.admin) && !fg_in_first_user_namespace())
		fg_found(t, "capabilities", FG_WARN,
			 FG_WHY_USER_NAMESPACE "; start a monitor outside (flexguard monitor)");
	else if (!fg_need(FG_NEED_CAPS, why, sizeof(why)))
		fg_found(t, "capabilities", FG_GOOD, "%s%s%s", caps.bpf ? "CAP_BPF " : "",
			 caps.perfmon ? "CAP_PERFMON " : "", caps.admin ? "CAP_SYS_ADMIN" : "");
	else
		fg_found(t, "capabilities", FG_WARN, "%s", why);
}

/* What the library may call: sys/filter.h.  False: a filter would kill for a try. */
static bool check_filters(struct fg_findings *t)
{
	int filters = fg_filters_here();

	if (filters && (filters < 0 || !fg_filters_pass())) {
		fg_found(t, "system calls", FG_WARN,
			 "a seccomp filter here does not let the library's pass: futex calls only, "
			 "without the monitor");
		return false;
	}
	if (access("/proc/thread-self/status", R_OK))
		fg_found(
		    t, "system calls", FG_WARN,
		    "no /proc here: the library cannot see whether there is a seccomp filter, and "
		    "uses futex calls only, without the monitor; mount /proc, or set "
		    "FLEXGUARD_FILTERS=allow if there is none");
	else if (filters)
		fg_found(t, "system calls", FG_GOOD,
			 "seccomp filters here (%d) let the library's pass", filters);
	else
		fg_found(t, "system calls", FG_GOOD, "no seccomp filter here");
	return true;
}

/* Where a daemon listens programs have that one or none: `flexguard run` starts no other. */
static bool check_monitor(struct fg_findings *t)
{
	struct fg_monitor *m = NULL;
	struct fg_answer answer;
	char why[400] = "";
	const char *path = fg_socket_path();
	int err = fg_monitor_open(&m, NULL, why, sizeof(why));

	if (!err) {
		fg_found(t, "eBPF monitor", FG_GOOD, "loads and attaches (tried now)");
		fg_monitor_close(m);
	} else {
		fg_found(t, "eBPF monitor", FG_WARN, "%s", *why ? why : strerror(-err));
	}
	if (!fg_daemon_answers(path, false)) {
		fg_found(t, "daemon", FG_INFO,
			 "none at %s: `flexguard run` starts a monitor of its own%s", path,
			 err ? ", where it may" : "");
		return !err;
	}
	err = fg_query(path, &answer, why, sizeof(why));
	if (!err) {
		fg_answer_free(&answer);
		fg_found(t, "daemon", FG_GOOD, "answers at %s", path);
	} else if (err == -ECONNREFUSED) { /* of a `flexguard run` around this */
		fg_found(t, "daemon", FG_GOOD, "sleeps at %s until it is wanted", path);
	} else {
		fg_found(t, "daemon", FG_WARN, "%s", why);
	}
	return !err || err == -ECONNREFUSED;
}

static bool check_library(struct fg_findings *t)
{
	const unsigned *rseq_size = dlsym(RTLD_DEFAULT, "__rseq_size");
	char why[600], *library = fg_preload_library(FG_PRELOAD_NAME, why, sizeof(why));
	bool ok = library != NULL;

	fg_found(t, "glibc", FG_GOOD, "%s", gnu_get_libc_version());
	if (rseq_size && *rseq_size)
		fg_found(t, "rseq", FG_GOOD, "registered by glibc (%u bytes)", *rseq_size);
	else
		fg_found(t, "rseq", FG_WARN,
			 "not registered by glibc (needs glibc 2.35 and GLIBC_TUNABLES "
			 "glibc.pthread.rseq=1): the monitor cannot find the threads");
	if (ok)
		fg_found(t, "library", FG_GOOD, "%s", library);
	else
		fg_found(t, "library", FG_BAD, "%s", why);
	free(library);
	return ok;
}

struct fg_machine fg_doctor_machine(struct fg_findings *t)
{
	struct fg_machine m = {0};

	check_kernel(t);
	fg_found(t, "CPUs", FG_INFO, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	check_capabilities(t);
	if (check_filters(t))
		m.monitor = check_monitor(t);
	else
		fg_found(t, "eBPF monitor", FG_WARN, "not tried: see system calls");
	m.library = check_library(t);
	if (m.monitor)
		fg_found(t, "waiting", FG_GOOD, "by the monitor (policy default)");
	else
		fg_found(
		    t, "waiting", FG_WARN,
		    "by the fallback: the owner's last CPU, its CPU clock, then a bounded spin");
	return m;
}
