/* SPDX-License-Identifier: MIT */
/*
 * `flexguard doctor`: what works on this machine, found out by trying it.
 * Exit status 0: fully; 1: with limits (the fallback); 2: not at all.
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands/doctor.h"
#include "cli/common/json.h"
#include "monitor/monitor.h"
#include "monitor/namespace.h"

void fg_found(struct fg_findings *t, const char *name, enum fg_grade grade, const char *fmt, ...)
{
	struct fg_finding *r = &t->row[t->nr];
	va_list ap;

	if (t->nr == (int)(sizeof(t->row) / sizeof(t->row[0])))
		return;
	t->nr++;
	r->name = name;
	r->grade = grade;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

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
	char line[256];
	struct utsname u;
	int major = 0, minor = 0;

	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	/* The oldest that it was tried on (docs/design/monitor.md). */
	if (major > 6 || (major == 6 && minor >= 1))
		fg_found(t, "kernel", FG_GOOD, "%s %s, %s", u.sysname, u.release, u.machine);
	else
		fg_found(t, "kernel", FG_WARN, "%s %s, %s: too old for the monitor (6.1)", u.sysname,
			 u.release, u.machine);
	if (!access("/sys/kernel/btf/vmlinux", R_OK))
		fg_found(t, "kernel BTF", FG_GOOD, "/sys/kernel/btf/vmlinux");
	else
		fg_found(
		    t, "kernel BTF", FG_WARN,
		    "none at /sys/kernel/btf/vmlinux: the monitor needs a kernel with CONFIG_DEBUG_INFO_BTF");
	if (read_line("/proc/sys/kernel/unprivileged_bpf_disabled", line, sizeof(line)))
		fg_found(t, "unprivileged eBPF", FG_INFO, "%s",
			 *line == '0' ? "allowed (not needed)"
				      : "not allowed (not needed: see capabilities)");
	if (read_line("/sys/kernel/security/lockdown", line, sizeof(line))) {
		bool hard = strstr(line, "[confidentiality]");

		fg_found(t, "lockdown", hard ? FG_WARN : FG_INFO, "%s%s", line,
			 hard ? ": forbids eBPF to read kernel memory" : "");
	}
}

static void check_capabilities(struct fg_findings *t)
{
	char line[256];
	unsigned long long eff = 0;
	FILE *f = fopen("/proc/self/status", "re");
	bool bpf, perfmon, admin;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &eff) == 1)
			break;
	if (f)
		fclose(f);
	bpf = eff >> CAP_BPF & 1;
	perfmon = eff >> CAP_PERFMON & 1;
	admin = eff >> CAP_SYS_ADMIN & 1;
	/* Those of a user namespace are not asked for: eBPF is the whole machine's. */
	if (eff && !fg_in_first_user_namespace())
		fg_found(t, "capabilities", FG_WARN,
			 "those of a user namespace, which do not count: eBPF asks for CAP_BPF and CAP_PERFMON of the "
			 "machine; start a monitor outside (flexguard monitor)");
	else if (admin || (bpf && perfmon))
		fg_found(t, "capabilities", FG_GOOD, "%s%s%s", bpf ? "CAP_BPF " : "",
			 perfmon ? "CAP_PERFMON " : "", admin ? "CAP_SYS_ADMIN" : "");
	else
		fg_found(t, "capabilities", FG_WARN, "%s%s%s missing: run as root, or with these",
			 bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ", perfmon ? "" : "CAP_PERFMON");
}

static bool check_monitor(struct fg_findings *t, bool *daemon)
{
	struct fg_monitor *m = NULL;
	char why[400] = "";
	const char *path = fg_socket_path();
	int err = fg_monitor_open(&m, NULL, why, sizeof(why));

	if (!err) {
		fg_found(t, "eBPF monitor", FG_GOOD, "loads and attaches (tried now)");
		fg_monitor_close(m);
	} else {
		fg_found(t, "eBPF monitor", FG_WARN, "%s", *why ? why : strerror(-err));
	}
	*daemon = fg_daemon_answers(path);
	if (*daemon)
		fg_found(t, "daemon", FG_GOOD, "answers at %s", path);
	else
		fg_found(t, "daemon", FG_INFO, "none at %s: `flexguard run` starts a monitor of its own%s",
			 path, err ? ", where it may" : "");
	return !err;
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
		fg_found(
		    t, "rseq", FG_WARN,
		    "not registered by glibc (needs glibc 2.35 and GLIBC_TUNABLES glibc.pthread.rseq=1): the "
		    "monitor cannot find the threads");
	if (ok)
		fg_found(t, "library", FG_GOOD, "%s", library);
	else
		fg_found(t, "library", FG_BAD, "%s", why);
	free(library);
	return ok;
}

static void print_text(const struct fg_findings *t, const char *program, int system_rows, const char *verdict)
{
	static const char *const mark[] = {"ok", "-", "limit", "NO"};
	int width = 0, columns = fg_prose_columns(STDOUT_FILENO);
	char folded[1200];

	for (int i = 0; i < t->nr; i++)
		if ((int)strlen(t->row[i].name) > width)
			width = (int)strlen(t->row[i].name);
	puts("this machine");
	for (int i = 0; i < t->nr; i++) {
		if (i == system_rows)
			printf("\n%s\n", program);
		fg_fold(folded, sizeof(folded), t->row[i].text, width + 11, width + 11, columns);
		printf("  %-*s  %-5s  %s\n", width, t->row[i].name, mark[t->row[i].grade], folded);
	}
	fg_fold(folded, sizeof(folded), verdict, 0, 0, columns);
	printf("\n%s\n", folded);
}

static void print_rows_json(struct fg_json *j, const char *key, const struct fg_findings *t, int from, int to)
{
	static const char *const grade[] = {"good", "info", "limit", "bad"};

	fg_json_open(j, key, '[');
	for (int i = from; i < to; i++) {
		fg_json_open(j, NULL, '{');
		fg_json_text(j, "check", t->row[i].name);
		fg_json_text(j, "grade", grade[t->row[i].grade]);
		fg_json_text(j, "text", t->row[i].text);
		fg_json_close(j, '}');
	}
	fg_json_close(j, ']');
}

static void print_json(const struct fg_findings *t, const char *program, int system_rows, const char *verdict,
		       int status)
{
	struct fg_json j = {.f = stdout};

	fg_json_open(&j, NULL, '{');
	fg_json_text(&j, "version", FG_VERSION);
	print_rows_json(&j, "machine", t, 0, system_rows);
	if (program) {
		fg_json_text(&j, "program", program);
		print_rows_json(&j, "findings", t, system_rows, t->nr);
	}
	fg_json_text(&j, "verdict", verdict);
	fg_json_int(&j, "status", status);
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

int fg_cmd_doctor(int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	struct fg_findings t = {.nr = 0};
	const char *program = NULL;
	char verdict[600];
	bool json = false, monitor, daemon, library;
	int status, system_rows, option;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	while ((option = fg_arguments_next(&a)) == FG_DOCTOR_JSON)
		json = true;
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	if (a.next < argc)
		program = argv[a.next++];
	if (a.next < argc)
		return fg_arguments_bad(&a, "one program at a time; '%s' is too much", argv[a.next]);

	check_kernel(&t);
	fg_found(&t, "CPUs", FG_INFO, "%ld", cpus);
	check_capabilities(&t);
	monitor = check_monitor(&t, &daemon);
	library = check_library(&t);
	if (monitor || daemon)
		fg_found(&t, "waiting", FG_GOOD, "by the monitor (policy default)");
	else
		fg_found(&t, "waiting", FG_WARN,
			 "by the fallback: the owner's last CPU, its CPU clock, then a bounded spin");
	system_rows = t.nr;
	if (program) {
		status = fg_doctor_program(&t, program, verdict, sizeof(verdict));
		if (!library && status < 2) {
			status = 2;
			snprintf(verdict, sizeof(verdict),
				 "cannot be helped: FlexGuard's own library is missing here");
		}
	} else if (!library) {
		status = 2;
		snprintf(verdict, sizeof(verdict), "FlexGuard cannot work here: its library is missing");
	} else if (monitor || daemon) {
		status = 0;
		snprintf(verdict, sizeof(verdict), "FlexGuard works here, with the preemption monitor");
	} else {
		status = 1;
		snprintf(verdict, sizeof(verdict),
			 "FlexGuard works here with limits: without the monitor, on the fallback");
	}
	if (json)
		print_json(&t, program, system_rows, verdict, status);
	else
		print_text(&t, program, system_rows, verdict);
	return status;
}
