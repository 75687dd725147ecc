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
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/protocol.h"
#include "cli/cli.h"
#include "cli/service/service.h"

#define DAEMON_PROCESSES_PER_UID 1024

const char fg_help_monitor[] =
    "usage: flexguard monitor [--socket PATH] [--mode OCTAL] [--user NAME|UID]\n"
    "                         [--domains uid|cpuset] [--holder-test slot|mcs]\n"
    "                         [--kernel-threads defer|count] [--max-processes N]\n"
    "                         [--max-processes-per-uid N] [--max-slots N]\n"
    "                         [--max-slots-per-uid N] [--max-memory-per-uid SIZE]\n"
    "                         [--max-connections-per-uid N]\n\n"
    "One preemption monitor for all programs of the machine.  Runs in the foreground\n"
    "until SIGTERM or SIGINT; says so at its start and its end, in one line each\n"
    "(FLEXGUARD_VERBOSE=0 silences them).\n\n"
    "  --socket PATH     listen here, @NAME: abstract (or FLEXGUARD_SOCKET; default\n"
    "                    " FG_SOCKET_PATH ")\n"
    "  --mode OCTAL      mode of the socket, default 0666: any user may connect\n"
    "  --user NAME|UID   started as root: run as this user, with CAP_BPF only;\n"
    "                    default: user flexguard, or a number that no user has\n"
    "  --domains uid     waiters hear of threads of their own user only (default)\n"
    "  --domains cpuset  waiters hear of all threads that could use their CPU\n"
    "  --holder-test mcs        threads in the queue of an MCS lock (flexguard locks:\n"
    "                           hybrid-mcs) are judged by the BPF Hybrid Lock's test;\n"
    "                           default: slot, by what they say\n"
    "  --kernel-threads count   a thread that makes room for a kernel thread is\n"
    "                           preempted at once; default: defer, only if it does\n"
    "                           not come straight back\n"
    "  --max-processes N              registered processes, default 4096\n"
    "  --max-processes-per-uid N      of one user, default 1024\n"
    "  --max-slots N                  threads of one process, default 4096\n"
    "  --max-slots-per-uid N          of all processes of one user, default 1048576\n"
    "  --max-memory-per-uid SIZE      memory for them (K, M, G), default 256M\n"
    "  --max-connections-per-uid N    that have not said anything yet, default 64\n\n"
    "Exit status: 0 ended by a signal, 125 it could not start or had to end.\n";

struct options {
	struct fg_service s;
	const char *user;
};

/* "12", "12K", "12M", "12G"; false if it is nothing of that, 0, or above `max`. */
static bool number(const char *text, uint64_t max, uint64_t *value)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	for (int i = 0; unit && i <= unit - units; i++) {
		if (*value > UINT64_MAX / 1024)
			return false;
		*value *= 1024;
	}
	return !errno && !(unit ? end[1] : *end) && *value > 0 && *value <= max;
}

/* One of the limits: 1 it is and is taken, 0 it is not, -1 it has a bad value. */
static int limit(struct options *o, const char *arg, const char *next, int *used)
{
	struct fg_monitor_config *c = &o->s.cfg;
	const struct {
		const char *name;
		uint32_t *u32;
		uint64_t *u64;
		uint64_t max;
	} limits[] = {
	    {"max-processes", &c->max_processes, NULL, 1u << 20},
	    {"max-processes-per-uid", &c->max_per_uid, NULL, 1u << 20},
	    {"max-slots", &c->max_slots, NULL, FG_PIECES * FG_PIECE},
	    {"max-slots-per-uid", &c->max_slots_per_uid, NULL, 1u << 31},
	    {"max-connections-per-uid", &c->max_connections_per_uid, NULL, 1u << 20},
	    {"max-memory-per-uid", NULL, &c->max_memory_per_uid, UINT64_MAX},
	};
	const char *text;
	uint64_t value;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (!fg_option(arg, limits[i].name, &text))
			continue;
		*used = !text;
		if (!number(text ? text : next, limits[i].max, &value)) {
			fg_error("monitor: --%s needs a number from 1 to %llu", limits[i].name,
				 (unsigned long long)limits[i].max);
			return -1;
		}
		if (limits[i].u32)
			*limits[i].u32 = (uint32_t)value;
		else
			*limits[i].u64 = value;
		return 1;
	}
	return 0;
}

static bool set_mode(struct options *o, const char *text)
{
	char *end;
	unsigned long mode = strtoul(text ? text : "", &end, 8);

	if (!text || !*text || *end || mode > 0777) {
		fg_error("monitor: --mode needs an octal number, such as 0660");
		return false;
	}
	o->s.mode = (unsigned)mode;
	return true;
}

/* Options with two values, of which the second is set in *value as 1. */
static bool set_choice(const char *option, const char *text, const char *const names[2], int *value)
{
	for (int i = 0; text && i < 2; i++) {
		if (strcmp(text, names[i]))
			continue;
		*value = i;
		return true;
	}
	fg_error("monitor: unknown %s '%s'; one of: %s, %s", option, text ? text : "", names[0], names[1]);
	return false;
}

static const struct {
	const char *option, *names[2];
} choices[] = {
    {"domains", {[FG_DOMAINS_UID] = "uid", [FG_DOMAINS_CPUSET] = "cpuset"}},
    {"holder-test", {[FG_HOLDER_SLOT] = "slot", [FG_HOLDER_MCS] = "mcs"}},
    {"kernel-threads", {[FG_KTHREADS_DEFER] = "defer", [FG_KTHREADS_COUNT] = "count"}},
};

/* One of these: 1 it is and is taken, 0 it is not, -1 it has a bad value. */
static int choice(struct options *o, const char *arg, const char *next, int *used)
{
	const char *value;
	int chosen = 0;

	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		if (!fg_option(arg, choices[i].option, &value))
			continue;
		*used = !value;
		if (!set_choice(choices[i].option, value ? value : next, choices[i].names, &chosen))
			return -1;
		if (i == 0)
			o->s.cfg.domains = (enum fg_domains)chosen;
		else if (i == 1)
			o->s.cfg.holder_test = (enum fg_holder_test)chosen;
		else
			o->s.cfg.kernel_threads = (enum fg_kernel_threads)chosen;
		return 1;
	}
	return 0;
}

/* 0, or an exit status + 1. */
static int parse(struct options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL, *value;
		int used = 0, r = limit(o, argv[i], next, &used);
		bool ok;

		if (!r)
			r = choice(o, argv[i], next, &used);
		ok = r > 0;

		if (r < 0)
			return FG_EXIT_OWN + 1;
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(fg_help_monitor, stdout);
			return 0 + 1;
		}
		if (!ok && fg_option(argv[i], "socket", &value)) {
			used = !value;
			o->s.socket = value ? value : next;
			ok = o->s.socket && *o->s.socket;
			if (!ok)
				fg_error("monitor: --socket needs a path");
		} else if (!ok && fg_option(argv[i], "user", &value)) {
			used = !value;
			o->user = value ? value : next;
			ok = o->user && *o->user;
			if (!ok)
				fg_error("monitor: --user needs a name or a number");
		} else if (!ok && fg_option(argv[i], "mode", &value)) {
			used = !value;
			ok = set_mode(o, value ? value : next);
		} else if (!ok) {
			fg_error("monitor: unknown option or argument '%s'; see flexguard monitor --help", argv[i]);
		}
		if (!ok)
			return FG_EXIT_OWN + 1;
		i += used;
	}
	return 0;
}

/* Of the numbers that systemd gives to services without a user (DynamicUser=). */
#define SPARE_FIRST 61184u
#define SPARE_LAST  65519u

/*
 * A user id that nobody has: no account, no process.  Not "nobody", who is not nobody: whatever else runs as
 * that user could stop the monitor.
 */
static uid_t spare_uid(void)
{
	static bool taken[SPARE_LAST - SPARE_FIRST + 1];
	const struct dirent *e;
	struct stat st;
	DIR *proc = opendir("/proc");

	while (proc && (e = readdir(proc)))
		if (*e->d_name >= '0' && *e->d_name <= '9' && !fstatat(dirfd(proc), e->d_name, &st, 0) &&
		    st.st_uid >= SPARE_FIRST && st.st_uid <= SPARE_LAST)
			taken[st.st_uid - SPARE_FIRST] = true;
	if (proc)
		closedir(proc);
	for (uid_t uid = SPARE_FIRST; uid <= SPARE_LAST; uid++)
		if (!taken[uid - SPARE_FIRST] && !getpwuid(uid) && !getgrgid(uid))
			return uid;
	return 65534;
}

/* Root does not stay root; anybody else is who he is. */
static bool choose_user(struct options *o)
{
	const struct passwd *p;
	uint64_t number_;
	char *end;

	if (geteuid() != 0) {
		if (o->user)
			fg_error("monitor: --user is for root");
		return !o->user;
	}
	o->s.change_user = true;
	if (!o->user) {
		p = getpwnam("flexguard");
		if (!p)
			o->s.uid = o->s.gid = spare_uid();
	} else {
		p = getpwnam(o->user);
		number_ = strtoull(o->user, &end, 10);
		if (!p && (*end || number_ >= UINT32_MAX)) {
			fg_error("monitor: no user '%s'", o->user);
			return false;
		}
		if (!p) {
			o->s.uid = o->s.gid = (uid_t)number_;
			p = getpwuid((uid_t)number_);
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

int fg_cmd_monitor(int argc, char **argv)
{
	struct options o = {.s = {.socket = fg_socket_path(), .mode = 0666, .listener = -1, .for_all = true}};
	char why[600];
	sigset_t stop;
	int err, stop_fd;
	bool passed;

	o.s.cfg.max_per_uid = DAEMON_PROCESSES_PER_UID;
	err = parse(&o, argc, argv);
	if (err)
		return err - 1;
	if (!choose_user(&o))
		return FG_EXIT_OWN;
	o.s.listener = fg_systemd_listener(why, sizeof(why));
	if (o.s.listener < -1) {
		fg_error("monitor: %s", why);
		return FG_EXIT_OWN;
	}
	passed = o.s.listener >= 0;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	stop_fd = signalfd(-1, &stop, SFD_CLOEXEC);
	if (stop_fd < 0 || fg_service_open(&o.s, why, sizeof(why))) {
		fg_error("monitor: %s", stop_fd < 0 ? strerror(errno) : why);
		return FG_EXIT_OWN;
	}
	fg_systemd_notify("READY=1\nSTATUS=Serving");
	fg_note("monitor: " FG_VERSION " serves at %s as user %d", !passed ? o.s.socket : "the socket that it was passed",
		(int)geteuid());
	err = fg_service_run(&o.s, stop_fd);
	fg_systemd_notify("STOPPING=1");
	fg_service_close(&o.s);
	if (err)
		fg_error("monitor: %s", strerror(-err));
	else
		fg_note("monitor: ends by %s; programs go on with the fallback", name_of_signal(stop_fd));
	return err ? FG_EXIT_OWN : 0;
}
