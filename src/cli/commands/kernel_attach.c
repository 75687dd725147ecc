/* SPDX-License-Identifier: MIT */
/*
 * `flexguard kernel attach`, `replace` and `detach`.  What is attached ends with this process, in
 * whichever way that ends, unless it is pinned: the kernel's link is the only thing that holds it.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/kernel_policy.h"
#include "cli/common/exit.h"
#include "cli/common/interrupt.h"
#include "cli/common/message.h"
#include "monitor/clock.h"

#define BPF_MAGIC 0xcafe4a11 /* linux/magic.h */
#define LOOK_NS	  1000000000ull

struct job {
	const struct fg_policy_calls *calls;
	const struct fg_policy_options *o;
	struct fg_policy_parts parts;
	struct fg_policy *policy;
	struct fg_kernel_target target[FG_POLICY_TARGETS];
	struct fg_policy_target address[FG_POLICY_TARGETS];
	size_t targets;
	char why[600];
};

/* ---- what both need ------------------------------------------------------------ */

static int resolve(struct job *job, int argc, char **argv)
{
	struct fg_kernel_symbols *symbols = NULL;
	char why[400];
	int err = 0;

	if (argc > FG_POLICY_TARGETS) {
		snprintf(job->why, sizeof(job->why), "%d targets: a policy has %d at most", argc,
			 FG_POLICY_TARGETS);
		return -E2BIG;
	}
	for (int i = 0; i < argc && !err; i++) {
		struct fg_kernel_target *t = &job->target[job->targets];

		if (!symbols && !strchr(argv[i], ':'))
			symbols = fg_kernel_symbols_open();
		err = fg_kernel_resolve(symbols, argv[i], t, why, sizeof(why));
		if (err)
			snprintf(job->why, sizeof(job->why), "%s", why);
		for (size_t k = 0; k < job->targets && !err; k++)
			if (job->target[k].address == t->address &&
			    job->target[k].flags == t->flags) {
				snprintf(job->why, sizeof(job->why),
					 "%s and %s are one lock: name it once",
					 job->target[k].name, t->name);
				err = -EINVAL;
			}
		job->address[job->targets++] = (struct fg_policy_target){
		    .address = t->address, .type = fg_kernel_type(t), .flags = t->flags};
	}
	fg_kernel_symbols_close(symbols);
	return err;
}

static int load(struct job *job, uint32_t keep_of)
{
	const char *defaults[4];
	char text[8192];
	struct fg_policy_config cfg = {.part = job->parts.part,
				       .parts = job->parts.count,
				       .options = job->o->option,
				       .nr_options = job->o->options,
				       .defaults = defaults,
				       .keep_of = keep_of};

	cfg.nr_defaults = fg_kernel_defaults(text, sizeof(text), defaults);
	return job->calls->load(&job->policy, &cfg, job->why, sizeof(job->why));
}

/* What the kernel says of it is more than an errno. */
static int refused(struct job *job, int err)
{
	char more[400], at[300] = "";
	size_t len = 0;

	for (size_t i = 0; i < job->targets && len < sizeof(at); i++)
		len += (size_t)snprintf(at + len, sizeof(at) - len, "%s%s", i ? ", " : " at ",
					job->target[i].name);
	if (fg_syncord_refusal(more, sizeof(more))) {
		/* "denied: target 1: why": which one it is, the user has said by name. */
		char *which = strstr(more, "target ");
		unsigned long n = which ? strtoul(which + 7, NULL, 10) : job->targets;

		if (n < job->targets && strchr(which, ':'))
			snprintf(at, sizeof(at), " at %s", job->target[n].name);
		snprintf(job->why, sizeof(job->why), "the kernel refuses %s%s: %s",
			 job->parts.count ? job->parts.part[0].name : "it", at, more);
	}
	return fg_kernel_refused(err == -ENOTSUP || err == -ENOSYS ? -EINVAL : err, job->why);
}

static void finish(struct job *job)
{
	if (job->policy)
		job->calls->close(job->policy);
	fg_kernel_parts_free(&job->parts);
}

/* The kernel without SynCord comes first, then what is wrong with the words. */
static int begin(struct job *job, const char *policy, int argc, char **argv)
{
	int err = fg_policy_preflight(job->why, sizeof(job->why));

	if (!err) {
		job->calls = fg_policy_calls(job->why, sizeof(job->why));
		err = job->calls ? 0 : -ENOSYS;
	}
	if (!err)
		err = fg_kernel_parts(policy, &job->parts, job->why, sizeof(job->why));
	return err ? err : resolve(job, argc, argv);
}

/* ---- attach -------------------------------------------------------------------- */

static void say_attached(const struct job *job, uint32_t id, const char *policy)
{
	struct fg_json j = {.f = stdout};
	char address[24], at[300] = "";
	size_t len = 0;

	if (job->o->json) {
		fg_json_open(&j, NULL, '{');
		fg_json_text(&j, "event", "attached");
		fg_json_count(&j, "id", id);
		fg_json_text(&j, "policy", policy);
		fg_json_open(&j, "targets", '[');
		for (size_t i = 0; i < job->targets; i++) {
			snprintf(address, sizeof(address), "0x%" PRIx64, job->target[i].address);
			fg_json_open(&j, NULL, '{');
			fg_json_count(&j, "id", i);
			fg_json_text(&j, "name", job->target[i].name);
			fg_json_text(&j, "addr", address);
			fg_json_close(&j, '}');
		}
		fg_json_close(&j, ']');
		fg_json_close(&j, '}');
		fg_json_end(&j);
		fflush(stdout);
		return;
	}
	for (size_t i = 0; i < job->targets && len < sizeof(at); i++)
		len += (size_t)snprintf(at + len, sizeof(at) - len, "%s%s", i ? ", " : "",
					job->target[i].name);
	fg_note("%s is attached to %s, as %u; %s", policy, at, id,
		job->o->pin ? "flexguard kernel detach ends it" : "Ctrl-C detaches");
}

/* What was counted, while it still is there. */
static void say_counted(const struct job *job, uint32_t id, const char *ended)
{
	char *status = fg_kernel_text(FG_SYNCORD "/status");
	struct fg_json j = {.f = stdout};

	if (job->o->json) {
		fg_json_open(&j, NULL, '{');
		fg_json_text(&j, "event", "detached");
		fg_json_count(&j, "id", id);
		fg_json_text(&j, "because", ended);
		fg_syncord_json(&j, status ? status : "", id, job->calls);
		fg_json_close(&j, '}');
		fg_json_end(&j);
	} else if (status) {
		fg_syncord_print(status, id, job->calls);
	}
	free(status);
}

/* An object or a slab cache, which may end before this process does. */
static bool may_go(const struct fg_kernel_target *t)
{
	return fg_kernel_in_object(t) || fg_kernel_in_slab(t);
}

static bool has_gone(const struct fg_kernel_target *t)
{
	struct fg_kernel_target now;
	char why[400];

	if (fg_kernel_in_slab(t))
		return !fg_kernel_slab_stays(t);
	return fg_kernel_in_object(t) &&
	       (fg_kernel_resolve(NULL, t->name, &now, why, sizeof(why)) ||
		now.address != t->address);
}

/* A lock in an object has gone with it, or the name leads to another one now: which. */
static const struct fg_kernel_target *gone(const struct job *job)
{
	for (size_t i = 0; i < job->targets; i++)
		if (has_gone(&job->target[i]))
			return &job->target[i];
	return NULL;
}

/*
 * Until a signal, the time, the kernel, or the end of an object: which of them.  Locks in objects
 * are looked for once a second: the kernel goes by addresses, and a policy would soon hold for
 * whatever comes to lie there.
 */
static const char *stay(struct job *job, const sigset_t *unblocked)
{
	uint64_t end = job->o->for_ns ? fg_now_ns() + job->o->for_ns : 0;
	bool objects = false;

	for (size_t i = 0; i < job->targets; i++)
		objects |= may_go(&job->target[i]);
	for (;;) {
		struct pollfd link = {.fd = job->calls->link(job->policy)};
		uint64_t now = fg_now_ns(), left = end > now ? end - now : 0;
		const struct fg_kernel_target *lost;
		struct timespec ts;
		int n;

		if (fg_interrupted)
			return "signal";
		if (end && !left)
			return "time";
		if (objects && (!end || left > LOOK_NS))
			left = LOOK_NS;
		ts = fg_timespec(left);
		n = ppoll(&link, 1, end || objects ? &ts : NULL, unblocked);
		if (n > 0 && link.revents)
			return "kernel";
		if (n < 0 && errno != EINTR)
			return "signal";
		lost = n ? NULL : gone(job);
		if (lost) {
			snprintf(job->why, sizeof(job->why), "%s", lost->name);
			return "gone";
		}
	}
}

static int pin(struct job *job, uint32_t id)
{
	char path[64];

	snprintf(path, sizeof(path), FG_BPFFS "/syncord_%u", id);
	return job->calls->pin(job->policy, path, job->why, sizeof(job->why));
}

static bool has_bpffs(void)
{
	struct statfs fs;

	return !statfs(FG_BPFFS, &fs) && (unsigned long)fs.f_type == BPF_MAGIC;
}

int fg_kernel_attach(int argc, char **argv, const struct fg_policy_options *o)
{
	struct job job = {.o = o};
	sigset_t unblocked;
	const char *ended;
	uint32_t id;
	int err;

	err = begin(&job, argv[0], argc - 1, argv + 1);
	for (size_t i = 0; !err && o->pin && i < job.targets; i++)
		if (may_go(&job.target[i])) {
			snprintf(job.why, sizeof(job.why),
				 "--pin: nobody would look whether %s is still there",
				 job.target[i].name);
			err = -EINVAL;
		}
	if (!err && o->pin && !has_bpffs()) {
		snprintf(job.why, sizeof(job.why),
			 "--pin needs the BPF file system: mount -t bpf bpf " FG_BPFFS);
		err = -ENOTDIR;
	}
	if (!err)
		err = load(&job, 0);
	if (err) {
		finish(&job);
		return fg_kernel_refused(err, job.why);
	}
	/* From here on they end the wait, and what has been counted is told. */
	fg_hold_interrupts(&unblocked);
	err = job.calls->attach(job.policy, job.address, job.targets, job.why, sizeof(job.why));
	if (err) {
		err = refused(&job, err);
		finish(&job);
		return err;
	}
	id = job.calls->id(job.policy);
	if (o->pin) {
		err = pin(&job, id);
		if (err)
			err = fg_kernel_refused(err, job.why);
		else
			say_attached(&job, id, argv[0]);
		finish(&job);
		return err;
	}
	say_attached(&job, id, argv[0]);
	ended = stay(&job, &unblocked);
	if (!strcmp(ended, "kernel")) {
		bool ejected = fg_syncord_ejection(id, job.why, sizeof(job.why));

		if (o->json)
			say_counted(&job, id, ejected ? "ejected" : "detached");
		if (ejected)
			fg_error("the kernel ejected %s (%u): %s", argv[0], id, job.why);
		else
			fg_note("%s (%u) was detached by somebody else", argv[0], id);
		err = ejected;
	} else {
		if (!strcmp(ended, "gone"))
			fg_note("%s has gone: %s (%u) ends", job.why, argv[0], id);
		say_counted(&job, id, ended);
	}
	finish(&job);
	return err;
}

/* ---- replace and detach -------------------------------------------------------- */

int fg_kernel_replace(int argc, char **argv, const struct fg_policy_options *o)
{
	struct job job = {.o = o};
	uint32_t id;
	int err;

	if (!fg_kernel_id(argv[0], &id)) {
		fg_error("'%s' is not the number of a policy: flexguard kernel status shows them",
			 argv[0]);
		return FG_EXIT_OWN;
	}
	err = begin(&job, argv[1], argc - 2, argv + 2);
	for (size_t i = 0; !err && i < job.targets; i++)
		if (may_go(&job.target[i])) {
			snprintf(job.why, sizeof(job.why),
				 "nobody would look whether %s is still there: attach it",
				 job.target[i].name);
			err = -EINVAL;
		}
	if (!err)
		err = load(&job, o->keep ? id : 0);
	if (err) {
		finish(&job);
		return fg_kernel_refused(err, job.why);
	}
	err = job.calls->replace(job.policy, id, job.address, job.targets, job.why,
				 sizeof(job.why));
	if (err) {
		err = refused(&job, err);
	} else if (o->json) {
		struct fg_json j = {.f = stdout};

		fg_json_open(&j, NULL, '{');
		fg_json_text(&j, "event", "replaced");
		fg_json_count(&j, "id", id);
		fg_json_text(&j, "policy", argv[1]);
		fg_json_close(&j, '}');
		fg_json_end(&j);
	} else {
		fg_note("%u is %s now", id, argv[1]);
	}
	finish(&job);
	return err;
}

int fg_kernel_detach(int argc, char **argv, const struct fg_policy_options *o)
{
	const struct fg_policy_calls *calls = NULL;
	uint32_t *ids = NULL, one;
	struct fg_json j = {.f = stdout};
	char why[400], path[64];
	size_t n = 1;
	int err;

	if (!o->all && !fg_kernel_id(argv[0], &one)) {
		fg_error("'%s' is not the number of a policy: flexguard kernel status shows them",
			 argv[0]);
		return FG_EXIT_OWN;
	}
	err = fg_policy_preflight(why, sizeof(why));
	if (!err) {
		calls = fg_policy_calls(why, sizeof(why));
		err = calls ? 0 : -ENOSYS;
	}
	if (err)
		return fg_kernel_refused(err, why);
	n = fg_syncord_ids(&ids);
	if (!o->all) {
		/* A link of another kind is not ours; a pinned one may have been ejected. */
		bool attached = false, ejected = fg_syncord_ejection(one, why, sizeof(why));

		for (size_t i = 0; i < n; i++)
			attached |= ids[i] == one;
		snprintf(path, sizeof(path), FG_BPFFS "/syncord_%u", one);
		free(ids);
		if (!attached && !(ejected && !access(path, F_OK))) {
			snprintf(
			    why, sizeof(why),
			    "nothing is attached with id %u: flexguard kernel status shows what is",
			    one);
			return fg_kernel_refused(-ENOENT, why);
		}
		ids = NULL;
		n = 1;
	}
	if (o->json) {
		fg_json_open(&j, NULL, '{');
		fg_json_open(&j, "detached", '[');
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t id = o->all ? ids[i] : one;
		int e = calls->detach(id, why, sizeof(why));

		snprintf(path, sizeof(path), FG_BPFFS "/syncord_%u", id);
		if (!unlink(path) && e == -ENOLINK)
			e = 0;
		/* With --all it may have ended by itself meanwhile. */
		if (e && !(o->all && (e == -ENOENT || e == -ENOLINK)))
			err = fg_kernel_refused(e, why);
		else if (o->json)
			fg_json_count(&j, NULL, id);
	}
	if (o->json) {
		fg_json_close(&j, ']');
		fg_json_close(&j, '}');
		fg_json_end(&j);
	}
	free(ids);
	return err;
}
