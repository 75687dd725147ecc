/* SPDX-License-Identifier: MIT */
/*
 * `flexguard run`: start a program on FlexGuard's locks.  Where neither a
 * monitor of our own nor statistics are wanted, it is an exec in place;
 * otherwise the program is a child and everything that can be seen from
 * outside (status, signals, job control, descriptors) is passed through.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/options.h"
#include "abi/protocol.h"
#include "abi/socket.h"
#include "abi/stats.h"
#include "cli/commands/commands.h"
#include "cli/commands/locks.h"
#include "cli/common/arguments.h"
#include "cli/common/descriptors.h"
#include "cli/common/exit.h"
#include "cli/common/library.h"
#include "cli/common/message.h"
#include "cli/common/names.h"
#include "cli/common/query.h"
#include "cli/launch/elf.h"
#include "cli/launch/embed.h"
#include "cli/launch/filter.h"
#include "cli/launch/inherit.h"
#include "cli/launch/statsfile.h"
#include "cli/launch/supervise.h"
#include "cli/launch/target.h"
#include "monitor/clock.h"

struct run {
	const char *lock, *policy, *futex; /* NULL: from the environment, or the default */
	bool monitor_now;
	bool stats;
	const char *stats_file;
	char **argv;
};

/* 0, or an exit status + 1. */
static int parse(struct run *r, int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	int option;

	while ((option = fg_arguments_next(&a)) >= 0)
		switch (option) {
		case FG_RUN_LOCK:
			r->lock = a.value;
			if (!*r->lock)
				return fg_arguments_bad("--lock has no value: flexguard locks "
							"lists the names") +
				       1;
			if (fg_lock_by_name(r->lock) < 0)
				return fg_arguments_unknown("lock", r->lock, fg_lock_names()) + 1;
			break;
		case FG_RUN_POLICY: r->policy = a.value; break;
		case FG_RUN_FUTEX: r->futex = a.value; break;
		case FG_RUN_MONITOR: r->monitor_now = !strcmp(a.value, "now"); break;
		case FG_RUN_STATS:
			r->stats = true;
			r->stats_file = a.value;
			if (a.value && !*a.value)
				return fg_arguments_bad("--stats= has no value: name a file, or "
							"--stats alone for stderr") +
				       1;
			break;
		}
	if (option == FG_ARGUMENTS_EXIT)
		return a.status + 1;
	if (a.next >= argc)
		return fg_arguments_bad(
			   "no program: flexguard run [options] [--] program [args...]") +
		       1;
	r->argv = argv + a.next;
	return 0;
}

/* Whether waits of other libraries look first: not where a filter would kill for it. */
static bool choose_futex(struct run *r)
{
	const char *choice = r->futex ? r->futex : secure_getenv(FG_FUTEX_ENV);

	if (!choice || !*choice)
		return true;
	if (fg_futex_by_name(choice) < 0) {
		fg_arguments_unknown(FG_FUTEX_ENV, choice, fg_futex_names());
		return false;
	}
	if (fg_futex_by_name(choice) == FG_FUTEX_ON && !fg_filters_pass_looks()) {
		fg_note("a seccomp filter does not let FUTEX_CMP_REQUEUE pass: waits of other "
			"libraries do not look first");
		r->futex = "off";
	}
	return true;
}

/*
 * The lock to run on, and whether this choice of lock and policy listens to a monitor; -1: a bad
 * name.
 */
static int choose(struct run *r, bool *monitor)
{
	const char *lock = r->lock ? r->lock : secure_getenv(FG_LOCK_ENV);
	const char *policy = r->policy ? r->policy : secure_getenv(FG_POLICY_ENV);
	int l = lock && *lock ? fg_lock_by_name(lock) : FG_LOCK_FLEXGUARD;
	int p = policy && *policy ? fg_policy_by_name(policy) : FG_POLICY_DEFAULT;
	const char *why = lock ? fg_lock_unavailable(lock) : NULL;

	if (why) {
		fg_error("--lock %s cannot run here: %s", lock, why);
		return -1;
	}
	why = lock ? fg_lock_caveat(lock) : NULL;
	if (why)
		fg_note("--lock %s: %s", lock, why);
	if (l < 0) {
		fg_arguments_unknown(FG_LOCK_ENV, lock, fg_lock_names());
		return -1;
	}
	if (p < 0) {
		fg_arguments_unknown(FG_POLICY_ENV, policy, fg_policy_names());
		return -1;
	}
	if (!choose_futex(r))
		return -1;
	/* Those of the zoo too: the other objects are ours there as well. */
	*monitor = l != FG_LOCK_GLIBC && (p == FG_POLICY_DEFAULT || p == FG_POLICY_PAPER);
	return l;
}

/*
 * Entries of LD_PRELOAD: those of AddressSanitizer, which want to be first, and all others; none of
 * ours.
 */
struct others {
	char *asan, *rest; /* ':' in front of each entry */
};

static bool is_ours(const char *entry)
{
	const char *slash = strrchr(entry, '/'), *name = slash ? slash + 1 : entry;

	return !strncmp(name, FG_PRELOAD_NAME, strlen(FG_PRELOAD_NAME)) ||
	       !strncmp(name, FG_ZOO_NAME, strlen(FG_ZOO_NAME));
}

/* Ours are there inside another `flexguard run`, and not always in front.  False: no memory. */
static bool read_others(struct others *o)
{
	const char *list = getenv("LD_PRELOAD");
	char *copy = strdup(list ? list : ""), *entry, *rest = NULL;
	size_t size = copy ? strlen(copy) + 2 : 0;

	o->asan = calloc(1, size);
	o->rest = calloc(1, size);
	if (!copy || !o->asan || !o->rest)
		return false;
	for (entry = strtok_r(copy, ": ", &rest); entry; entry = strtok_r(NULL, ": ", &rest)) {
		char *to = fg_is_asan(entry) ? o->asan : o->rest;

		if (!is_ours(entry))
			sprintf(to + strlen(to), ":%s", entry);
	}
	free(copy);
	return true;
}

/*
 * AddressSanitizer's runtime, ours, and what was there.  `asan` is what the program needs of the
 * first, or "".  No library: glibc's locks, also inside another `flexguard run`.
 */
static int set_preload(const char *library, const char *asan)
{
	struct others o = {0};
	char *list = NULL;
	int err = -1;

	if (!read_others(&o))
		return -1;
	if (!library)
		asan = "";
	if (asprintf(&list, "%s%s%s%s%s", *o.asan ? o.asan : ":", *o.asan ? "" : asan,
		     library ? ":" : "", library ? library : "", o.rest) >= 0)
		err = list[strspn(list, ":")] ? setenv("LD_PRELOAD", list + strspn(list, ":"), 1) :
						unsetenv("LD_PRELOAD");
	free(list);
	free(o.asan);
	free(o.rest);
	return err;
}

/*
 * GNU's OpenMP looks 300,000 times at a word before it sleeps, and less often only where its own
 * threads outnumber the CPUs: other processes do not count.  With a tenth of that nothing was lost
 * alone, and beside busy processes teams of two were twice as fast (docs/design/experiments.md).
 * Who has chosen something keeps it.
 */
#define OPENMP_LOOKS "30000"

static int set_openmp(bool ours)
{
	const char *chosen = getenv("GOMP_SPINCOUNT");

	if (!ours) /* also inside another `flexguard run` */
		return chosen && !strcmp(chosen, OPENMP_LOOKS) ? unsetenv("GOMP_SPINCOUNT") : 0;
	return chosen || getenv("OMP_WAIT_POLICY") ? 0 : setenv("GOMP_SPINCOUNT", OPENMP_LOOKS, 1);
}

/* Appending: two runs at once that name the same file each leave a whole report in it. */
static FILE *open_report(const char *file)
{
	int fd = fg_fd_high(file ? open(file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
					0666) :
				   fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f)
		fg_error("cannot write '%s': %s", file ? file : "stderr", strerror(errno));
	return f;
}

static void report(FILE *f, const char *file, const struct fg_stats *s,
		   const struct fg_stats_report *r)
{
	size_t len = file ? strlen(file) : 0;

	if (len >= 5 && !strcmp(file + len - 5, ".json"))
		fg_stats_print_json(f, s, r);
	else
		fg_stats_print(f, s, r);
	if (fclose(f))
		fg_error("cannot write '%s': %s", file ? file : "stderr", strerror(errno));
}

static int supervised(const struct run *r, const struct fg_target *t, struct fg_embed *mon)
{
	struct fg_statsfile sf = {0};
	FILE *out = NULL;
	sigset_t all, mask;
	uint64_t start;
	int status, err, keep[3], nr_keep = 0;

	if (r->stats) {
		out = open_report(r->stats_file);
		if (!out)
			return FG_EXIT_OWN;
		keep[nr_keep++] = fileno(out);
	}
	/*
	 * From here on a signal goes to the program, and the statistics file does not stay behind.
	 */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	if (r->stats) {
		err = fg_statsfile_create(&sf);
		if (err || setenv(FG_STATS_ENV, sf.path, 1)) {
			fg_error("--stats cannot create memory for the counts: %s",
				 strerror(err ? -err : errno));
			fg_statsfile_remove(&sf);
			return FG_EXIT_OWN;
		}
	}
	if (r->stats)
		keep[nr_keep++] = sf.fd;
	if (mon->pid)
		keep[nr_keep++] = mon->control;
	start = fg_now_ns();
	status = fg_supervise(t, r->argv, mon, &sf, keep, nr_keep, &mask);
	fg_statsfile_remove(&sf);
	if (status < 0) {
		fg_error("cannot fork: %s", strerror(-status));
		return FG_EXIT_OWN;
	}
	if (out)
		report(out, r->stats_file, sf.map,
		       &(struct fg_stats_report){r->argv[0], fg_now_ns() - start, status});
	fg_embed_stop(mon);
	fg_exit_like(status);
}

/* Processes of the program may begin in other folders.  False: no memory. */
static bool keep_socket(const char *path)
{
	char here[PATH_MAX], *whole;
	struct sockaddr_un un;
	bool kept = true;

	if (*path == '/' || *path == '@' || !getcwd(here, sizeof(here)))
		return true;
	if (asprintf(&whole, "%s/%s", here, path) < 0)
		return false;
	if (fg_socket_address(&un, whole))
		kept = !setenv(FG_SOCKET_ENV, whole, 1);
	free(whole);
	return kept;
}

/*
 * The one that listens already, or one of its own.  `in_place`: the program is to be no child of
 * ours, which a monitor of its own takes.
 */
static void find_monitor(struct fg_embed *mon, const struct run *r, bool in_place)
{
	char why[600] = "the caller has record locks (fcntl), which a child does not have";
	const char *path = fg_socket_path();
	bool none;

	if (fg_daemon_answers(path, r->monitor_now))
		none = fg_monitor_is_another_version(path, why, sizeof(why));
	else
		none = in_place || fg_embed_start(mon, r->monitor_now, why, sizeof(why));
	if (none)
		fg_note("no preemption monitor, going on with the fallback: %s", why);
}

int fg_cmd_run(int argc, char **argv)
{
	struct fg_embed mon = {.control = -1};
	struct fg_target target;
	struct run r = {0};
	char why[600], *library;
	int err, lock;
	bool monitor, locked;

	err = parse(&r, argc, argv);
	if (err)
		return err - 1;
	lock = choose(&r, &monitor);
	if (lock < 0)
		return FG_EXIT_OWN;
	fg_target_find(&target, r.argv[0]);
	if (target.refusal) {
		fg_error("%s", target.why);
		return fg_target_exit_status(&target);
	}
	if (lock != FG_LOCK_GLIBC && fg_target_judges_glibc(&target, r.argv, why, sizeof(why))) {
		fg_note("%s", why);
		lock = FG_LOCK_GLIBC;
		r.lock = "glibc";
		monitor = false;
	}
	library = fg_preload_library(lock < FG_LOCK_COUNT ? FG_PRELOAD_NAME : FG_ZOO_NAME, why,
				     sizeof(why));
	if (!library) {
		fg_error("%s", why);
		return FG_EXIT_OWN;
	}
	if (lock != FG_LOCK_GLIBC && !fg_filters_tell())
		monitor = false;
	locked = fg_has_record_locks();
	if (locked && r.stats)
		fg_note("the record locks (fcntl) of the caller end: with --stats the program is a "
			"child, which has none of them");
	if (monitor)
		find_monitor(&mon, &r, locked && !r.stats);
	/* Not earlier: neither we nor the monitor need them. */
	if (set_preload(lock == FG_LOCK_GLIBC ? NULL : library, target.asan) ||
	    (r.lock && setenv(FG_LOCK_ENV, r.lock, 1)) ||
	    (r.policy && setenv(FG_POLICY_ENV, r.policy, 1)) ||
	    (r.futex && setenv(FG_FUTEX_ENV, r.futex, 1)) ||
	    set_openmp(lock == FG_LOCK_FLEXGUARD) || (!mon.pid && !keep_socket(fg_socket_path())) ||
	    (mon.pid &&
	     (setenv(FG_SOCKET_ENV, mon.socket, 1) || setenv(FG_SECRET_ENV, mon.secret, 1)))) {
		fg_error("cannot set the environment: %s", strerror(errno));
		return FG_EXIT_OWN;
	}
	if (mon.pid || r.stats)
		return supervised(&r, &target, &mon);
	return fg_exec(&target, r.argv);
}
