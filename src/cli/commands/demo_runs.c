/* SPDX-License-Identifier: MIT */
/* The programs of `flexguard demo`: how they are started, and what they say. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/demo.h"
#include "cli/common/exit.h"
#include "cli/common/interrupt.h"
#include "monitor/clock.h"

/* None of these was varied. */
#define OUTPUT_MAX  16384    /* its end is what counts */
#define DB_KEYS	    "200000" /* of 116 bytes each: the database fits into memory */
#define MAX_ARGS    24
#define GRACE_NS    12000000000ull /* for a run to start and end, beyond its own time */
#define END_NS	    2000000000ull  /* to end when it is told to; looked at every END_LOOK_NS */
#define END_LOOK_NS 10000000ull

const char *const fg_workload_name[FG_WORKLOADS] = {"fillrandom", "readrandom", "threads"};

/* Its supervisor forwards SIGTERM; after that nobody is asked. */
static void end_group(pid_t pid, int *status)
{
	uint64_t until = fg_now_ns() + END_NS;
	struct timespec tick = fg_timespec(END_LOOK_NS);

	kill(-pid, SIGTERM);
	while (waitpid(pid, status, WNOHANG) == 0) {
		if (fg_now_ns() > until)
			kill(-pid, SIGKILL);
		nanosleep(&tick, NULL);
	}
	kill(-pid, SIGKILL);
}

static pid_t start(const char *const *argv, int out)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY);

		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(FG_EXIT_OWN);
		dup2(null, 0);
		dup2(out, 1);
		dup2(out, 2);
		execvp(argv[0], (char *const *)argv);
		_exit(errno == ENOENT ? FG_EXIT_NOTFOUND : FG_EXIT_NOEXEC);
	}
	if (pid > 0)
		setpgid(pid, pid);
	return pid;
}

int fg_capture(const char *const *argv, uint64_t timeout_ns, char *out, size_t size)
{
	uint64_t until = fg_now_ns() + timeout_ns;
	size_t len = 0;
	int fd[2], status = 0, err = 0;
	pid_t pid;

	out[0] = '\0';
	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	pid = start(argv, fd[1]);
	close(fd[1]);
	if (pid < 0)
		err = -errno;
	while (!err) {
		struct pollfd p = {.fd = fd[0], .events = POLLIN};
		int n = poll(&p, 1, 100);
		ssize_t got;

		if (fg_interrupted)
			err = -EINTR;
		else if (fg_now_ns() > until)
			err = -ETIMEDOUT;
		if (err || n <= 0)
			continue;
		if (len > size / 2) { /* what counts stands at the end */
			memmove(out, out + size / 4, len - size / 4);
			len -= size / 4;
		}
		got = read(fd[0], out + len, size - 1 - len);
		if (got <= 0)
			break;
		len += (size_t)got;
		out[len] = '\0';
	}
	close(fd[0]);
	if (pid < 0)
		return err;
	if (err)
		end_group(pid, &status);
	else
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	if (err)
		return err;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The number before `unit` on the line that begins with `start`. */
static bool number_before(const char *text, const char *start, const char *unit, double *value)
{
	size_t len = strlen(start);

	for (const char *line = text; line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *end = line + strcspn(line, "\n"), *at = strstr(line, unit);

		if (strncmp(line, start, len) || !at || at >= end)
			continue;
		while (at > line && at[-1] == ' ')
			at--;
		while (at > line && strchr("0123456789.", at[-1]))
			at--;
		*value = atof(at);
		return *value > 0;
	}
	return false;
}

static bool number_after(const char *text, const char *label, double *value)
{
	const char *at = strstr(text, label);

	if (!at)
		return false;
	*value = atof(at + strlen(label));
	return *value > 0;
}

static bool parse(enum fg_workload w, const char *out, double *rate)
{
	double events, seconds;

	if (w != FG_THREADS)
		return number_before(out, fg_workload_name[w], "ops/sec", rate);
	if (!number_after(out, "total number of events:", &events) ||
	    !number_after(out, "total time:", &seconds))
		return false;
	*rate = events / seconds;
	return true;
}

/* The last line that has something to say, for an error message. */
static void last_line(char *why, size_t size, const char *out)
{
	const char *end = out + strlen(out), *start;

	while (end > out && strchr("\n\r ", end[-1]))
		end--;
	for (start = end; start > out && start[-1] != '\n'; start--)
		;
	snprintf(why, size, "%.*s", (int)(end - start), start);
}

/* What is to be said of a run that gave nothing within that time. */
static void say_why(int status, uint64_t timeout_ns, const char *out, char *why, size_t size)
{
	if (status == -ETIMEDOUT)
		snprintf(why, size, "no result after %.0f s", (double)timeout_ns / 1e9);
	else
		last_line(why, size, out);
}

struct command {
	const char *argv[MAX_ARGS];
	int argc;
	char db[160], threads[32], seconds[32];
};

static void add(struct command *c, const char *arg)
{
	if (c->argc < MAX_ARGS - 1)
		c->argv[c->argc++] = arg;
}

/* As a user would type it, but that the monitor is loaded before the second that counts. */
static void command(struct command *c, const struct fg_demo *d, enum fg_workload w, int threads,
		    enum fg_side side)
{
	memset(c, 0, sizeof(*c));
	if (side == FG_SIDE_FLEXGUARD) {
		add(c, d->self);
		add(c, "run");
		add(c, "--monitor=now");
		add(c, "--");
	}
	snprintf(c->threads, sizeof(c->threads), "--threads=%d", threads);
	if (w == FG_THREADS) {
		snprintf(c->seconds, sizeof(c->seconds), "--time=%d", d->seconds);
		add(c, "sysbench");
		add(c, "threads");
		add(c, "--thread-locks=1");
		add(c, c->threads);
		add(c, c->seconds);
		add(c, "run");
		return;
	}
	snprintf(c->seconds, sizeof(c->seconds), "--duration=%d", d->seconds);
	add(c, "db_bench");
	add(c, "--compression_type=none");
	add(c, "--num=" DB_KEYS);
	add(c, c->threads);
	add(c, c->seconds);
	add(c, c->db);
	if (w == FG_FILLRANDOM) {
		snprintf(c->db, sizeof(c->db), "--db=%s/fill", d->dir);
		add(c, "--benchmarks=fillrandom");
	} else {
		snprintf(c->db, sizeof(c->db), "--db=%s/read", d->dir);
		add(c, "--benchmarks=readrandom");
		add(c, "--use_existing_db=1");
		add(c, "--readonly=1");
	}
}

static uint64_t run_ns(const struct fg_demo *d)
{
	return (uint64_t)d->seconds * 1000000000;
}

int fg_demo_run(const struct fg_demo *d, const struct fg_cell *cell, enum fg_side side,
		double *rate, char *why, size_t why_size)
{
	static char out[OUTPUT_MAX];
	struct command c;
	int status;

	command(&c, d, cell->workload, cell->threads, side);
	status = fg_capture(c.argv, run_ns(d) + GRACE_NS, out, sizeof(out));
	if (status == 0 && parse(cell->workload, out, rate))
		return 0;
	say_why(status, run_ns(d) + GRACE_NS, out, why, why_size);
	return status < 0 ? status : -EIO;
}

/*
 * Whether a program under `flexguard run` reached a monitor, from its own statistics.  0, or as
 * fg_capture(): none runs there.
 */
static int find_monitor(struct fg_demo *d, char *out, size_t size)
{
	char file[160], option[200], line[4096] = "";
	const char *argv[] = {d->self,	 "run",		"--monitor=now", option, "--", "sysbench",
			      "threads", "--threads=2", "--time=1",	 "run",	 NULL};
	int status;
	double n;
	FILE *f;

	snprintf(file, sizeof(file), "%s/stats.json", d->dir);
	snprintf(option, sizeof(option), "--stats=%s", file);
	status = fg_capture(argv, GRACE_NS, out, size);
	if (status)
		return status;
	f = fopen(file, "re");
	if (f && fgets(line, sizeof(line), f) && number_after(line, "\"monitored\":", &n)) {
		snprintf(d->monitor, sizeof(d->monitor), "yes");
	} else {
		const char *note = strstr(out, "flexguard run: no preemption monitor");

		snprintf(d->monitor, sizeof(d->monitor), "no%s%.*s", note ? ": " : "",
			 note ? (int)strcspn(note, "\n") : 0, note ? note : "");
	}
	if (f)
		fclose(f);
	return 0;
}

int fg_demo_prepare(struct fg_demo *d, char *why, size_t why_size)
{
	static char out[OUTPUT_MAX];
	char db[160], said[200];
	const char *argv[] = {"db_bench",
			      "--benchmarks=fillrandom,compact",
			      "--num=" DB_KEYS,
			      "--compression_type=none",
			      db,
			      NULL};
	int status;

	snprintf(db, sizeof(db), "--db=%s/read", d->dir);
	status = fg_capture(argv, GRACE_NS, out, sizeof(out));
	if (status) {
		say_why(status, GRACE_NS, out, said, sizeof(said));
		snprintf(why, why_size, "db_bench failed: %s", said);
		return status < 0 ? status : -EIO;
	}
	status = find_monitor(d, out, sizeof(out));
	if (status && !fg_interrupted) {
		say_why(status, GRACE_NS, out, said, sizeof(said));
		snprintf(why, why_size, "sysbench failed on FlexGuard: %s", said);
		return -EIO;
	}
	return fg_interrupted ? -EINTR : 0;
}
