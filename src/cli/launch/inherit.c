/* SPDX-License-Identifier: MIT */
/* Without permission a part stays behind: the program starts all the same. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/launch/inherit.h"

struct fg_inherit fg_inherit(void)
{
	struct fg_inherit i = {.pid = getpid(), .policy = sched_getscheduler(0)};

	sched_getparam(0, &i.param);
	i.nice = getpriority(PRIO_PROCESS, 0);
	prctl(PR_GET_PDEATHSIG, &i.death);
	prctl(PR_GET_CHILD_SUBREAPER, &i.subreaper);
	return i;
}

/* systemd's, for the process that it has started: others leave what belongs to them alone. */
static void rename_pid(pid_t from)
{
	static const char *const names[] = {"LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"};
	char old[16], new[16];

	snprintf(old, sizeof(old), "%d", from);
	snprintf(new, sizeof(new), "%d", getpid());
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (!value || strcmp(value, old))
			continue;
		setenv(names[i], new, 1);
		if (i == 0)
			unsetenv("LISTEN_PIDFDID"); /* the same once more, and optional */
	}
}

void fg_inherit_all(const struct fg_inherit *from)
{
	if (from->policy > 0 && from->policy & SCHED_RESET_ON_FORK) {
		setpriority(PRIO_PROCESS, 0, from->nice);
		sched_setscheduler(0, from->policy, &from->param);
	}
	if (from->subreaper)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (from->death) {
		prctl(PR_SET_PDEATHSIG, from->death);
		if (getppid() != from->pid)
			raise(from->death);
	}
	rename_pid(from->pid);
}

static struct sigaction sigchld;

void fg_inherit_not_sigchld(void)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	sigaction(SIGCHLD, &dfl, &sigchld);
}

void fg_inherit_sigchld(void)
{
	sigaction(SIGCHLD, &sigchld, NULL);
}

/* As proc(5) shows them: "lock:", with the kind of each. */
static bool is_locked(const char *fd)
{
	char path[64], line[256];
	bool locked = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%.20s", fd);
	f = fopen(path, "re");
	while (f && !locked && fgets(line, sizeof(line), f))
		locked = !strncmp(line, "lock:", 5) && strstr(line, " POSIX ");
	if (f)
		fclose(f);
	return locked;
}

bool fg_has_record_locks(void)
{
	DIR *fds = opendir("/proc/self/fdinfo");
	struct dirent *d;
	bool locked = false;

	while (fds && !locked && (d = readdir(fds)))
		locked = *d->d_name != '.' && is_locked(d->d_name);
	if (fds)
		closedir(fds);
	return locked;
}
