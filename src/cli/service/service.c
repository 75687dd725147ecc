/* SPDX-License-Identifier: MIT */
/*
 * A monitor's life: socket, user, capabilities, program, and the end of it.
 *
 * What it keeps.  To load and to attach takes CAP_BPF and CAP_PERFMON.  After that
 * only CAP_BPF is used, for the slot array of each new client (map creation,
 * where kernel.unprivileged_bpf_disabled is not 0).  Updates of its maps, the
 * audit's iterator, the heartbeat's program and the tracepoints, later on, go through
 * descriptors, and the kernel asks for nothing more (Linux 6.18; test/daemon/test_start.py
 * looks).
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/protocol.h"
#include "cli/service/service.h"
#include "monitor/brief.h"
#include "monitor/namespace.h"

#define CAPS_BPF     (CAP_TO_MASK(CAP_BPF))
#define CAPS_PERFMON (CAP_TO_MASK(CAP_PERFMON))
_Static_assert(CAP_TO_INDEX(CAP_BPF) == 1 && CAP_TO_INDEX(CAP_PERFMON) == 1, "second word");

static int get_caps(struct __user_cap_data_struct cap[2])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &head, cap) ? -errno : 0;
}

/* Exactly these, and none for a program that it would start. */
static int set_caps(uint32_t low, uint32_t high)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct cap[2] = {
	    {.effective = low, .permitted = low},
	    {.effective = high, .permitted = high},
	};

	return syscall(SYS_capset, &head, cap) ? -errno : 0;
}

/*
 * Keep what serving needs.  CAP_SYS_ADMIN stands for the others where they are
 * missing (before Linux 5.8, and in containers made for that).
 */
static void keep_for_serving(void)
{
	struct __user_cap_data_struct cap[2] = {0};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (get_caps(cap))
		return;
	if (cap[1].permitted & CAPS_BPF)
		set_caps(0, CAPS_BPF);
	else
		set_caps(cap[0].permitted & CAP_TO_MASK(CAP_SYS_ADMIN), 0);
}

/* It serves with 33, and loads with less (Linux 6.18); the rest is for clients.  Not varied. */
#define FILES_NEED 44u

int fg_service_descriptors(char *why, size_t size)
{
	uint32_t have = 0;
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return 0;
	/* A registered process costs two, and one for each further piece of its slots. */
	if (r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
		getrlimit(RLIMIT_NOFILE, &r);
	}
	for (rlim_t fd = 0; fd < r.rlim_cur && have < FILES_NEED; fd++)
		have += fcntl((int)fd, F_GETFD) < 0;
	if (have == FILES_NEED)
		return 0;
	snprintf(why, size,
		 "the monitor needs %u free file descriptors, and has %u: raise `ulimit -n`, which "
		 "is %llu",
		 FILES_NEED, have, (unsigned long long)r.rlim_cur);
	return -EMFILE;
}

/* Keep what loading needs, in the same way. */
static int keep_for_loading(void)
{
	struct __user_cap_data_struct cap[2] = {0};
	int err = get_caps(cap);

	if (err)
		return err;
	if ((cap[1].permitted & (CAPS_BPF | CAPS_PERFMON)) == (CAPS_BPF | CAPS_PERFMON))
		return set_caps(0, CAPS_BPF | CAPS_PERFMON);
	return set_caps(cap[0].permitted & CAP_TO_MASK(CAP_SYS_ADMIN),
			cap[1].permitted & (CAPS_BPF | CAPS_PERFMON));
}

void fg_service_give_up(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	keep_for_loading();
}

static int become(uid_t uid, gid_t gid)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setgroups(0, NULL) || setresgid(gid, gid, gid) ||
	    setresuid(uid, uid, uid))
		return -errno;
	return keep_for_loading();
}

/*
 * The default path's folder is ours to make: /run is empty after each boot.  It is root's, so that
 * nobody but root can put another socket there; a monitor that is somebody else cannot remove its
 * own at its end, and the next one does.
 */
static void make_folder(const struct fg_service *s)
{
	char dir[sizeof(FG_SOCKET_PATH)] = FG_SOCKET_PATH;

	if (strcmp(s->socket, FG_SOCKET_PATH))
		return;
	*strrchr(dir, '/') = '\0';
	/* Earlier versions gave it away, and the umask may be one that keeps all others out. */
	if ((!mkdir(dir, 0755) || errno == EEXIST) && !geteuid()) {
		(void)!lchown(dir, 0, 0);
		(void)!chmod(dir, 0755);
	}
}

/*
 * Whether any user may load an eBPF program of some kinds (kernel.unprivileged_bpf_disabled is 0):
 * asked without our capabilities, since /proc/sys may be hidden (the service's unit does so).
 */
static bool any_user_may_use_bpf(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct with[2], without[2];
	/* union bpf_attr of BPF_MAP_CREATE, as of Linux 3.18: an array of one. */
	struct {
		uint32_t type, key_size, value_size, max_entries;
	} attr = {2, 4, 4, 1};
	long fd;

	if (get_caps(with))
		return false;
	memcpy(without, with, sizeof(without));
	without[0].effective = without[1].effective = 0;
	if (syscall(SYS_capset, &head, without))
		return false;
	fd = syscall(SYS_bpf, 0, &attr, sizeof(attr));
	syscall(SYS_capset, &head, with);
	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

/*
 * What to remove at the end.  The name itself is bound as it is written: a socket's has 107 bytes
 * at most.
 */
static bool find_own_path(struct fg_service *s)
{
	char here[PATH_MAX] = "";
	struct stat st;
	bool relative = s->socket[0] != '/';

	if (relative && !getcwd(here, sizeof(here)))
		return false;
	if (snprintf(s->path, sizeof(s->path), "%s%s%s", here, relative ? "/" : "", s->socket) >=
		(int)sizeof(s->path) ||
	    lstat(s->path, &st))
		return false;
	s->device = st.st_dev;
	s->inode = st.st_ino;
	return true;
}

/* Why root may not do what it wants to here. */
static const char *of_namespace(void)
{
	return fg_in_first_user_namespace() ? "" :
					      ": it is root of a user namespace only, and needs "
					      "the machine's";
}

static int listen_at(struct fg_service *s, char *why, size_t size)
{
	struct stat st;
	int fd, err = 0;

	make_folder(s);
	s->lock = fg_monitor_lock(s->socket);
	fd = s->lock >= 0 || s->lock == FG_NO_LOCK ? fg_monitor_listen(s->socket, s->mode) :
						     s->lock;
	if (fd == -EADDRINUSE && s->socket[0] != '@' && !lstat(s->socket, &st) &&
	    !S_ISSOCK(st.st_mode))
		snprintf(why, size, "%s is no socket: give --socket another path", s->socket);
	else if (fd == -EADDRINUSE)
		snprintf(why, size,
			 "another monitor listens on %s already: end it, or give --socket",
			 s->socket);
	else if (fd == FG_STALE)
		snprintf(why, size,
			 "the dead socket %s cannot be removed: %sgive --socket a path of yours",
			 s->socket, geteuid() ? "start it as root, or " : "");
	else if (fd == -ENAMETOOLONG)
		snprintf(
		    why, size,
		    "'%s' is no socket's name: a path is wanted, or @NAME, of at most 107 bytes",
		    s->socket);
	else if (fd < 0)
		snprintf(why, size, "cannot listen on %s: %s%s", s->socket, strerror(-fd),
			 fd != -EACCES && fd != -ENOENT ? "" :
			 geteuid() ? ": start it as root, or give --socket a path of yours" :
				     ": give --socket a path in a folder that is there");
	if (fd < 0)
		return fd == FG_STALE ? -EADDRINUSE : fd;
	s->listener = fd;
	s->own_path = s->socket[0] != '@' && find_own_path(s);
	/* So that it can remove it where the folder's owner is another (sticky). */
	if (s->own_path && s->change_user)
		err = fg_monitor_give_away(s->socket, s->uid, s->gid);
	if (err)
		snprintf(why, size, "cannot give %s to user %d: %s%s", s->socket, (int)s->uid,
			 strerror(-err), of_namespace());
	return err;
}

int fg_service_open(struct fg_service *s, char *why, size_t size)
{
	int err = fg_service_descriptors(why, size);

	s->lock = FG_NO_LOCK;
	fg_monitor_find(); /* while root may still look into a folder that is closed to others */
	if (!err && s->listener < 0 && !s->listen_last)
		err = listen_at(s, why, size);
	if (!err && s->change_user) {
		err = become(s->uid, s->gid);
		if (err)
			snprintf(why, size, "cannot become user %d: %s%s", (int)s->uid,
				 strerror(-err), of_namespace());
	}
	(void)!chdir("/");
	if (!err && s->for_all && any_user_may_use_bpf()) {
		snprintf(
		    why, size,
		    "kernel.unprivileged_bpf_disabled is 0: any user's eBPF program could write "
		    "the counters that all programs read; first: sysctl -w "
		    "kernel.unprivileged_bpf_disabled=2");
		err = -EPERM;
	}
	s->cfg.domains_only = s->for_all;
	if (!err)
		err = fg_monitor_open(&s->monitor, &s->cfg, why, size);
	if (!err && s->listener < 0)
		err = listen_at(s, why, size);
	if (err) {
		fg_service_close(s);
		return err;
	}
	keep_for_serving();
	return 0;
}

int fg_service_run(struct fg_service *s, int stop_fd)
{
	return fg_monitor_serve(s->monitor, s->listener, s->lock, stop_fd);
}

void fg_service_close(struct fg_service *s)
{
	struct stat st;

	/*
	 * First the path, so that nobody comes any more; then the counters, so that all clients
	 * leave.
	 */
	if (s->own_path && !lstat(s->path, &st) && st.st_dev == s->device &&
	    st.st_ino == s->inode) /* not a later one's */
		unlink(s->path);
	if (s->listener >= 0)
		fg_brief_close_listener(s->listener);
	if (s->monitor)
		fg_monitor_close(s->monitor);
	if (s->lock >= 0)
		fg_brief_close_listener(s->lock);
	s->monitor = NULL;
	s->listener = -1;
	s->lock = FG_NO_LOCK;
	s->own_path = false;
}
