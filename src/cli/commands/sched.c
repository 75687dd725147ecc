/* SPDX-License-Identifier: MIT */
/*
 * `flexguard sched`: the companion scheduler, until Ctrl-C, a time, the kernel, or the end of the
 * monitor whose knowledge it uses.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/interrupt.h"
#include "cli/common/json.h"
#include "cli/common/message.h"
#include "cli/common/query.h"
#include "cli/common/units.h"
#include "cli/launch/embed.h"
#include "monitor/clock.h"
#include "monitor/scheduler.h"

#define LOOK_NS		 200000000ull /* between two looks whether the kernel has ended it */
#define MOST_EXTENDED_NS 100000000ull /* the watchdog waits for 30 s */

struct job {
	const struct fg_sched_calls *calls;
	struct fg_sched *sched;
	struct fg_sched_config cfg;
	uint64_t for_ns; /* 0: no limit */
	bool plain, json;
	const char *socket;
	int monitor; /* pidfd; -1: none */
	char why[600];
};

enum how { BY_SIGNAL, BY_TIME, BY_KERNEL, BY_MONITOR };
static const char *const how_name[] = {"signal", "time", "kernel", "monitor"};

/* The process that answers for the monitor: it has the maps. */
static int find_monitor(struct job *job)
{
	struct fg_answer a;
	int err = fg_query(job->socket, &a, job->why, sizeof(job->why));

	if (err)
		return err == -ENOTSUP ? -EPROTO : err;
	fg_answer_free(&a);
	job->cfg.monitor = a.pid;
	job->monitor = a.pid > 0 ? (int)syscall(SYS_pidfd_open, a.pid, 0) : -1;
	if (job->monitor >= 0)
		return 0;
	snprintf(job->why, sizeof(job->why),
		 "the monitor on %s is not to be seen from here: run this beside it, outside of "
		 "containers",
		 job->socket);
	return -ESRCH;
}

static enum how stay(struct job *job, const sigset_t *unblocked, struct fg_sched_end *end)
{
	uint64_t until = job->for_ns ? fg_now_ns() + job->for_ns : 0;

	for (;;) {
		struct pollfd monitor = {.fd = job->monitor, .events = POLLIN};
		uint64_t now = fg_now_ns(), left = until > now ? until - now : 0;
		struct timespec ts;

		if (job->calls->ended(job->sched, end))
			return BY_KERNEL;
		if (fg_interrupted)
			return BY_SIGNAL;
		if (until && !left)
			return BY_TIME;
		ts = fg_timespec(until && left < LOOK_NS ? left : LOOK_NS);
		if (ppoll(&monitor, 1, &ts, unblocked) > 0)
			return BY_MONITOR;
	}
}

static void say_json(const struct job *job, const struct fg_sched_counts *c, enum how how,
		     const struct fg_sched_end *end, uint64_t ns)
{
	struct fg_json j = {.f = stdout};

	fg_json_open(&j, NULL, '{');
	fg_json_text(&j, "ended_by", how_name[how]);
	fg_json_text(&j, "reason", end->kind ? end->reason : NULL);
	fg_json_text(&j, "message", end->kind ? end->message : NULL);
	fg_json_real(&j, "seconds", 3, (double)ns / 1e9);
	fg_json_flag(&j, "owners", !job->plain);
	fg_json_count(&j, "extended", c->extended);
	fg_json_count(&j, "released", c->released);
	fg_json_count(&j, "preempted", c->preempted);
	fg_json_count(&j, "first", c->first);
	fg_json_count(&j, "yielded", c->yielded);
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

static void say_text(const struct fg_sched_counts *c)
{
	char n[24], m[24];

	printf("extended   %s turns of owners that others waited for, %s given back\n",
	       fg_human_count(n, sizeof(n), (double)c->extended),
	       fg_human_count(m, sizeof(m), (double)c->released));
	printf("preempted  %s turns ended on the critical path of a lock, %s of these threads\n"
	       "           went on first\n",
	       fg_human_count(n, sizeof(n), (double)c->preempted),
	       fg_human_count(m, sizeof(m), (double)c->first));
	printf("yielded    %s turns of waiters that spun\n",
	       fg_human_count(n, sizeof(n), (double)c->yielded));
}

/* "runnable task stall: thread[12] failed to run for 30.2s" */
static int say_end(const struct job *job, enum how how, const struct fg_sched_end *end)
{
	if (how == BY_KERNEL)
		fg_error("the kernel has ended the scheduler, its own goes on: %s%s%s", end->reason,
			 *end->message ? ": " : "", end->message);
	else if (how == BY_MONITOR)
		fg_error("the monitor on %s has ended, and with it this: start both again",
			 job->socket);
	return how == BY_KERNEL || how == BY_MONITOR;
}

static int run(struct job *job)
{
	struct fg_sched_end end = {0};
	struct fg_sched_counts counts;
	sigset_t unblocked;
	uint64_t start;
	enum how how;
	int err = fg_sched_preflight(job->why, sizeof(job->why));

	if (!err) {
		job->calls = fg_sched_calls(job->why, sizeof(job->why));
		err = job->calls ? 0 : -ENOSYS;
	}
	if (!err && !job->plain)
		err = find_monitor(job);
	if (err)
		return fg_refused(err, job->why);
	/* From here on they end the wait, and what has been counted is told. */
	fg_hold_interrupts(&unblocked);
	err = job->calls->open(&job->sched, &job->cfg, job->why, sizeof(job->why));
	if (err) /* the kernel has sched_ext, and refuses */
		return fg_refused(err == -ENOTSUP ? -EINVAL : err, job->why);
	start = fg_now_ns();
	if (job->plain)
		fg_note(
		    "schedules by virtual time alone; Ctrl-C gives the kernel's scheduler back");
	else
		fg_note("schedules with what the monitor on %s knows of owners; Ctrl-C gives the "
			"kernel's scheduler back",
			job->socket);
	how = stay(job, &unblocked, &end);
	job->calls->counts(job->sched, &counts);
	job->calls->close(job->sched);
	if (job->json)
		say_json(job, &counts, how, &end, fg_now_ns() - start);
	else
		say_text(&counts);
	return say_end(job, how, &end);
}

static bool duration(const struct fg_arguments *a, const char *name, uint64_t *ns)
{
	*ns = fg_duration_ns(a->value);
	if (!*ns)
		fg_arguments_bad("--%s needs a time: 30s, 500ms or 10min, not '%s'", name,
				 a->value);
	return *ns != 0;
}

int fg_cmd_sched(int argc, char **argv)
{
	struct fg_arguments args = fg_arguments(argc, argv);
	struct job job = {
	    .cfg.extension_ns = FG_SCHED_EXTENSION_NS, .socket = fg_socket_path(), .monitor = -1};
	int option, status;

	while ((option = fg_arguments_next(&args)) >= 0) {
		bool good = true;

		switch (option) {
		case FG_SCHED_FOR: good = duration(&args, "for", &job.for_ns); break;
		case FG_SCHED_EXTENSION:
			job.cfg.extension_ns = 0;
			if (strcmp(args.value, "0"))
				good = duration(&args, "extension", &job.cfg.extension_ns);
			if (job.cfg.extension_ns > MOST_EXTENDED_NS) {
				fg_arguments_bad("--extension is too long: 100ms at most, not '%s'",
						 args.value);
				good = false;
			}
			break;
		case FG_SCHED_PLAIN: job.plain = true; break;
		case FG_SCHED_JSON: job.json = true; break;
		default: good = fg_socket_option(&args, &job.socket);
		}
		if (!good)
			return FG_EXIT_OWN;
	}
	if (option == FG_ARGUMENTS_EXIT)
		return args.status;
	if (!fg_arguments_no_more(&args))
		return FG_EXIT_OWN;
	status = run(&job);
	if (job.monitor >= 0)
		close(job.monitor);
	return status;
}
