/* SPDX-License-Identifier: MIT */
/*
 * `flexguard monitor`: one monitor for the whole machine.  It loads the eBPF program
 * once, as an unprivileged user, and serves any process that connects, until
 * SIGTERM.  Started by hand or by systemd (packaging/systemd).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/protocol.h"
#include "cli/commands/commands.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/interrupt.h"
#include "cli/common/message.h"
#include "cli/common/query.h"
#include "cli/common/units.h"
#include "cli/launch/embed.h"
#include "cli/service/service.h"
#include "monitor/namespace.h"

/* A quarter of FG_DEFAULT_PROCESSES.  Not varied. */
#define DAEMON_PROCESSES_PER_UID 1024

struct options {
	struct fg_service s;
	const char *user;
};

static bool set_limit(struct options *o, const struct fg_arguments *a, int option)
{
	struct fg_monitor_config *c = &o->s.cfg;
	const struct {
		uint32_t *u32;
		uint64_t *u64;
		uint64_t max;
	} limits[] = {
	    [FG_MONITOR_MAX_PROCESSES] = {&c->max_processes, NULL, FG_MOST_PROCESSES},
	    [FG_MONITOR_MAX_PROCESSES_PER_UID] = {&c->max_per_uid, NULL, FG_MOST_PROCESSES},
	    [FG_MONITOR_MAX_SLOTS] = {&c->max_slots, NULL, FG_PIECES * FG_PIECE},
	    [FG_MONITOR_MAX_SLOTS_PER_UID] = {&c->max_slots_per_uid, NULL, 1u << 31},
	    [FG_MONITOR_MAX_CONNECTIONS_PER_UID] = {&c->max_connections_per_uid, NULL, 1u << 20},
	    [FG_MONITOR_MAX_MEMORY_PER_UID] = {NULL, &c->max_memory_per_uid, UINT64_MAX},
	    [FG_MONITOR_MAX_MEMORY] = {NULL, &c->max_memory, UINT64_MAX},
	};
	uint64_t value;

	if (!fg_size(a->value, 1, limits[option].max, &value)) {
		if (limits[option].u64)
			fg_arguments_bad("--%s needs a size: in bytes, or such as 64M or 1G",
					 a->command->options[option].name);
		else
			fg_arguments_bad("--%s needs a number: 1 to %llu",
					 a->command->options[option].name,
					 (unsigned long long)limits[option].max);
		return false;
	}
	if (limits[option].u32)
		*limits[option].u32 = (uint32_t)value;
	else
		*limits[option].u64 = value;
	return true;
}

static bool set_mode(struct options *o, const char *text)
{
	uint64_t mode;

	if (!fg_octal(text, 0, 0777, &mode)) {
		fg_error("--mode needs an octal number: such as 0660");
		return false;
	}
	o->s.mode = (unsigned)mode;
	return true;
}

static bool set(struct options *o, const struct fg_arguments *a, int option)
{
	switch (option) {
	case FG_MONITOR_SOCKET: return fg_socket_option(a, &o->s.socket);
	case FG_MONITOR_USER:
		o->user = a->value;
		if (!*o->user)
			fg_arguments_bad("--user has no value: a name or a number is wanted");
		return *o->user;
	case FG_MONITOR_MODE: return set_mode(o, a->value);
	case FG_MONITOR_DOMAINS:
		o->s.cfg.domains = strcmp(a->value, "cpuset") ? FG_DOMAINS_UID : FG_DOMAINS_CPUSET;
		return true;
	case FG_MONITOR_HOLDER_TEST:
		o->s.cfg.holder_test = strcmp(a->value, "mcs") ? FG_HOLDER_SLOT : FG_HOLDER_MCS;
		return true;
	case FG_MONITOR_KERNEL_THREADS:
		o->s.cfg.kernel_threads = strcmp(a->value, "count") ? FG_KTHREADS_DEFER :
								      FG_KTHREADS_COUNT;
		return true;
	default: return set_limit(o, a, option);
	}
}

/* 0, or an exit status + 1. */
static int parse(struct options *o, int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	int option;

	while ((option = fg_arguments_next(&a)) >= 0)
		if (!set(o, &a, option))
			return FG_EXIT_OWN + 1;
	if (option == FG_ARGUMENTS_EXIT)
		return a.status + 1;
	return fg_arguments_no_more(&a) ? 0 : FG_EXIT_OWN + 1;
}

/* Of the numbers that systemd gives to services without a user (DynamicUser=). */
#define SPARE_FIRST 61184u
#define SPARE_LAST  65519u

/*
 * A user id that nobody has: no account, no process.  Not "nobody", who is not nobody: whatever
 * else runs as that user could stop the monitor.
 */
static uid_t spare_uid(void)
{
	static bool taken[SPARE_LAST - SPARE_FIRST + 1];
	const struct dirent *e;
	struct stat st;
	DIR *proc = opendir("/proc");

	while (proc && (e = readdir(proc)))
		if (*e->d_name >= '0' && *e->d_name <= '9' &&
		    !fstatat(dirfd(proc), e->d_name, &st, 0) && st.st_uid >= SPARE_FIRST &&
		    st.st_uid <= SPARE_LAST)
			taken[st.st_uid - SPARE_FIRST] = true;
	if (proc)
		closedir(proc);
	for (uid_t uid = SPARE_FIRST; uid <= SPARE_LAST; uid++)
		if (!taken[uid - SPARE_FIRST] && !getpwuid(uid) && !getgrgid(uid))
			return uid;
	return 65534;
}

/* Root does not stay root; any other user stays what it is. */
static bool choose_user(struct options *o)
{
	const struct passwd *p;
	uint64_t number;

	if (geteuid() != 0) {
		if (o->user)
			fg_error("--user needs root: without it the monitor runs as its caller");
		return !o->user;
	}
	o->s.change_user = true;
	if (!o->user) {
		p = getpwnam("flexguard");
		if (!p)
			o->s.uid = o->s.gid = spare_uid();
	} else {
		p = getpwnam(o->user);
		if (!p && !fg_integer(o->user, 0, UINT32_MAX - 1, &number)) {
			fg_error("no user '%s': name another, or give a number", o->user);
			return false;
		}
		if (!p) {
			o->s.uid = o->s.gid = (uid_t)number;
			p = getpwuid((uid_t)number);
		}
	}
	if (p) {
		o->s.uid = p->pw_uid;
		o->s.gid = p->pw_gid;
	}
	if (o->s.uid == 0)
		o->s.change_user = false; /* --user root: as asked for */
	return true;
}

static const char *name_of_signal(int fd)
{
	struct signalfd_siginfo si;

	if (read(fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return "a signal";
	return si.ssi_signo == SIGTERM ? "SIGTERM" : si.ssi_signo == SIGINT ? "SIGINT" : "SIGHUP";
}

/* What happens while it serves. */
static void note(const char *sentence)
{
	fg_note("%s", sentence);
}

/* Else one user's programs run on the fallback, and nobody knows why. */
static void note_descriptors(const struct options *o)
{
	uint32_t per_uid = o->s.cfg.max_per_uid, all = o->s.cfg.max_processes;
	struct rlimit files;

	if (all && all < per_uid)
		per_uid = all;
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / FG_FILES_EACH < per_uid)
		fg_note(
		    "%llu descriptors are enough for some %llu processes of a user: for %u raise "
		    "the limit to %llu (ulimit -n, LimitNOFILE=)",
		    (unsigned long long)files.rlim_cur,
		    (unsigned long long)files.rlim_cur / FG_FILES_EACH, per_uid,
		    (unsigned long long)FG_FILES_EACH * per_uid);
}

int fg_cmd_monitor(int argc, char **argv)
{
	struct options o = {
	    .s = {.socket = fg_socket_path(), .mode = 0666, .listener = -1, .for_all = true}};
	char why[600];
	sigset_t stop;
	int err, stop_fd;
	bool passed;

	o.s.cfg.max_per_uid = DAEMON_PROCESSES_PER_UID;
	o.s.cfg.note = note;
	err = parse(&o, argc, argv);
	if (err)
		return err - 1;
	if (!choose_user(&o))
		return FG_EXIT_OWN;
	o.s.listener = fg_systemd_listener(why, sizeof(why));
	if (o.s.listener < -1) {
		fg_error("%s", why);
		return FG_EXIT_OWN;
	}
	passed = o.s.listener >= 0;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	if (fg_hangup_ends()) /* signalfd(2) tells of ignored ones, too */
		sigaddset(&stop, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	stop_fd = signalfd(-1, &stop, SFD_CLOEXEC);
	if (stop_fd < 0 || fg_service_open(&o.s, why, sizeof(why))) {
		fg_error("%s", stop_fd < 0 ? "cannot wait for signals: too many open files: raise "
					     "`ulimit -n`" :
					     why);
		return FG_EXIT_OWN;
	}
	fg_systemd_notify("READY=1\nSTATUS=Serving");
	fg_note(FG_VERSION " serves at %s as user %d",
		!passed ? o.s.socket : "the socket that it was passed", (int)geteuid());
	note_descriptors(&o);
	/* Else silence: the programs of others go on as if nobody listened. */
	if (!passed && o.s.socket[0] == '@' && geteuid() && !o.s.change_user)
		fg_note("only programs of user %d trust an abstract name that root does "
			"not listen at; for all: start it as root, or with a path",
			(int)geteuid());
	if (!fg_in_first_pid_namespace())
		fg_note("processes outside this container's pid namespace are refused: for "
			"all, start it outside (docker run --pid=host)");
	err = fg_service_run(&o.s, stop_fd);
	fg_systemd_notify("STOPPING=1");
	fg_service_close(&o.s);
	if (err)
		fg_error("it had to end: %s", strerror(-err));
	else
		fg_note("ends by %s; programs go on with the fallback", name_of_signal(stop_fd));
	return err ? FG_EXIT_OWN : 0;
}
