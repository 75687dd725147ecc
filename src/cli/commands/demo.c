/* SPDX-License-Identifier: MIT */
/*
 * `flexguard demo`: real programs on this machine, glibc's locks against
 * FlexGuard's, each run started as a user would start it.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/demo.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/interrupt.h"
#include "cli/common/message.h"
#include "cli/common/text.h"
#include "cli/common/units.h"
#include "cli/launch/target.h"
#include "monitor/clock.h"

/*
 * Rounds are started while one more fits into the budget; the limit ends a round.  Under three
 * minutes, and one, as the man page promises; not varied.
 */
#define BUDGET_NS	150000000000ull
#define QUICK_BUDGET_NS 50000000000ull
#define LIMIT_NS	165000000000ull

/*
 * For the databases: they and their logs grow for a second.  A container's /dev/shm has 64 MB.  Not
 * varied.
 */
#define ROOM_BYTES (512ull << 20)

struct options {
	bool quick, json;
	const char *json_file;
};

static bool in_path(const char *name)
{
	struct fg_target t;

	fg_target_find(&t, name);
	free(t.path);
	free(t.binary);
	return t.refusal == FG_TARGET_OK;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static bool has_room(const char *dir)
{
	struct statvfs fs;

	return !statvfs(dir, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize >= ROOM_BYTES;
}

/* Where there is room; if nowhere, the programs will say so. */
static bool make_dir(struct fg_demo *d)
{
	const char *tmp = secure_getenv("TMPDIR");
	const char *const base[] = {"/dev/shm", tmp && *tmp ? tmp : "/tmp", "/tmp"};
	const size_t n = sizeof(base) / sizeof(base[0]);

	for (size_t i = 0; i < 2 * n; i++) {
		snprintf(d->dir, sizeof(d->dir), "%.100s/flexguard-demo-XXXXXX", base[i % n]);
		if ((i >= n || has_room(base[i])) && mkdtemp(d->dir))
			return true;
	}
	return false;
}

static void make_cells(struct fg_demo *d, bool quick)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	int threads[4] = {cpus > 1 ? cpus / 2 : 1, cpus, 2 * cpus, 8 * cpus};

	for (int w = 0; w < FG_WORKLOADS; w++)
		for (int i = 0; i < 4; i++) {
			bool left_out = quick && (i == 0 || i == 2);

			if (left_out || (i && threads[i] == threads[i - 1] && !quick))
				continue;
			d->cell[d->nr_cells++] = (struct fg_cell){.workload = (enum fg_workload)w,
								  .threads = threads[i]};
		}
}

/* One line that changes, where a terminal can do that, else a line each. */
static void progress(bool done, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void progress(bool done, const char *fmt, ...)
{
	int columns = fg_can_rewrite(STDERR_FILENO) ? fg_prose_columns(STDERR_FILENO) : 0;
	char text[400];
	va_list ap;

	if (!columns && !done)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (columns) { /* a line that can be taken back */
		fg_cut(text, columns - 1);
		fprintf(stderr, "\r\033[K%s", text);
	} else {
		fprintf(stderr, "%s\n", text);
	}
	fflush(stderr);
}

/* Two runs in random order; false when interrupted. */
static bool run_pair(struct fg_demo *d, struct fg_cell *c, int round)
{
	double rate[FG_SIDES] = {0, 0};
	unsigned char coin = 0;
	char why[200], a[24], b[24];
	bool ok = true;

	(void)!getrandom(&coin, 1, GRND_NONBLOCK);
	for (int k = 0; k < FG_SIDES; k++) {
		enum fg_side side = (enum fg_side)((k + coin) & 1);
		int err;

		progress(false, "round %d: %s, %d threads, on %s ...", round + 1,
			 fg_workload_name[c->workload], c->threads,
			 side == FG_SIDE_GLIBC ? "glibc" : "FlexGuard");
		err = fg_demo_run(d, c, side, &rate[side], why, sizeof(why));
		if (err == -EINTR)
			return false;
		if (err) {
			progress(true, "round %d: %s, %d threads, failed on %s: %s", round + 1,
				 fg_workload_name[c->workload], c->threads,
				 side == FG_SIDE_GLIBC ? "glibc" : "FlexGuard", why);
			c->failed[side]++;
			ok = false;
		}
	}
	if (!ok)
		return true;
	for (int side = 0; side < FG_SIDES; side++)
		c->rate[side][c->pairs] = rate[side];
	c->pairs++;
	progress(true, "round %d: %s, %d threads: glibc %s ops/s, FlexGuard %s ops/s", round + 1,
		 fg_workload_name[c->workload], c->threads,
		 fg_human_count(a, sizeof(a), rate[FG_SIDE_GLIBC]),
		 fg_human_count(b, sizeof(b), rate[FG_SIDE_FLEXGUARD]));
	return true;
}

static void measure(struct fg_demo *d, uint64_t budget_ns)
{
	uint64_t longest = 0;

	for (int round = 0; round < FG_DEMO_PAIRS; round++) {
		uint64_t start = fg_now_ns();

		if (round && start + longest - d->started_ns > budget_ns)
			return;
		for (int i = 0; i < d->nr_cells; i++) {
			if (fg_now_ns() - d->started_ns > LIMIT_NS ||
			    !run_pair(d, &d->cell[i], round))
				return;
		}
		d->rounds++;
		if (fg_now_ns() - start > longest)
			longest = fg_now_ns() - start;
	}
}

/* 0, or an exit status + 1. */
static int parse(struct options *o, int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);

	for (;;)
		switch (fg_arguments_next(&a)) {
		case FG_DEMO_QUICK: o->quick = true; break;
		case FG_DEMO_JSON:
			o->json = true;
			o->json_file = a.value;
			break;
		case FG_ARGUMENTS_END: return fg_arguments_no_more(&a) ? 0 : FG_EXIT_OWN + 1;
		default: return a.status + 1;
		}
}

/* The glibc side must be glibc's, whatever this command was started with. */
static void clean_environment(void)
{
	const char *preload = getenv("LD_PRELOAD");

	if (preload && strstr(preload, "libflexguard"))
		unsetenv("LD_PRELOAD");
	unsetenv("FLEXGUARD_STATS");
	unsetenv("FLEXGUARD_LOCK");
}

static void context_at_start(struct fg_demo *d)
{
	time_t t = time(NULL);
	struct tm tm;

	strftime(d->date, sizeof(d->date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	d->steal_start_ns = fg_steal_ns();
	d->load_start = fg_load_average();
	d->started_ns = fg_now_ns();
	snprintf(d->monitor, sizeof(d->monitor), "unknown");
}

/* The disk may be full in the middle or at the end; main() looks after stdout. */
static bool close_json(FILE *json, const char *file)
{
	bool incomplete = ferror(json);

	errno = 0;
	if (!fclose(json) && !incomplete)
		return true;
	fg_error("cannot write '%s'%s%s", file, errno ? ": " : "", errno ? strerror(errno) : "");
	return false;
}

/* A program ended badly in some run. */
static bool has_failed(const struct fg_demo *d)
{
	for (int i = 0; i < d->nr_cells; i++)
		if (d->cell[i].failed[FG_SIDE_GLIBC] || d->cell[i].failed[FG_SIDE_FLEXGUARD])
			return true;
	return false;
}

int fg_cmd_demo(int argc, char **argv)
{
	static struct fg_demo d = {.seconds = 1};
	struct options o = {0};
	FILE *json = NULL;
	bool made;
	char why[300];
	ssize_t n;
	int err;

	err = parse(&o, argc, argv);
	if (err)
		return err - 1;
	if (!in_path("db_bench") || !in_path("sysbench")) {
		fg_error(
		    "db_bench and sysbench are missing: run `make demo` as root, or apt-get install "
		    "rocksdb-tools sysbench");
		return FG_EXIT_SKIP;
	}
	made = o.json_file && faccessat(AT_FDCWD, o.json_file, F_OK, AT_SYMLINK_NOFOLLOW);
	if (o.json) {
		/* Tried now, and emptied when there is something to write. */
		json = o.json_file ? fopen(o.json_file, "ae") : stdout;
		if (!json) {
			fg_error("cannot write '%s': %s", o.json_file, strerror(errno));
			return FG_EXIT_OWN;
		}
	}
	n = readlink("/proc/self/exe", d.self, sizeof(d.self) - 1);
	if (n <= 0 || !make_dir(&d)) {
		fg_error("cannot make a directory in /dev/shm, TMPDIR or /tmp: %s",
			 strerror(errno));
		if (made)
			unlink(o.json_file);
		return FG_EXIT_OWN;
	}
	fg_catch_interrupts();
	clean_environment();
	context_at_start(&d);
	make_cells(&d, o.quick);
	progress(true, "flexguard demo: preparing; Ctrl-C ends early, with what was measured");
	err = fg_demo_prepare(&d, why, sizeof(why));
	if (!err)
		measure(&d, o.quick ? QUICK_BUDGET_NS : BUDGET_NS);
	if (fg_can_rewrite(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	nftw(d.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (err && err != -EINTR) {
		fg_error("%s", why);
		if (made) /* there is nothing to write */
			unlink(o.json_file);
		return FG_EXIT_OWN;
	}
	if (json != stdout)
		fg_demo_table(&d);
	d.interrupted = fg_interrupted;
	fg_interrupted = 0; /* the context asks programs for versions */
	if (json) {
		if (json != stdout)
			(void)!ftruncate(fileno(json), 0); /* a device has no length */
		fg_demo_json(json, &d);
		if (json != stdout && !close_json(json, o.json_file))
			return FG_EXIT_OWN;
	}
	return d.interrupted ? 128 + d.interrupted : has_failed(&d);
}
