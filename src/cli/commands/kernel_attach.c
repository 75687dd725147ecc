/* SPDX-License-Identifier: MIT */
/*
 * `flexguard kernel attach`, `replace` and `detach`.  What is attached ends with this process, in
 * whichever way that ends, unless it is pinned: the kernel's link is the only thing that holds it.
 */
#include <dirent.h>
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
#include "cli/common/units.h"
#include "monitor/clock.h"

#define BPF_MAGIC 0xcafe4a11 /* linux/magic.h */
#define LOOK_NS	  1000000000ull
#define PIN	  "syncord_" /* and the id */

struct job {
	const struct fg_policy_calls *calls;
	const struct fg_policy_options *o;
	struct fg_policy_parts parts;
	struct fg_policy *policy;
	struct fg_kernel_target target[FG_POLICY_TARGETS];
	struct fg_policy_target address[FG_POLICY_TARGETS];
	size_t targets;
	char *before; /* the last refusal when it was loaded */
	char *who;    /* what `status` says of it, without what is counted */
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
				       .keep_of = keep_of,
				       .target = job->address,
				       .targets = job->targets};

	cfg.nr_defaults = fg_kernel_defaults(text, sizeof(text), defaults);
	job->before = fg_syncord_last_error();
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
	if (fg_syncord_refusal(job->before, err, more, sizeof(more))) {
		/* "denied: target 1: why": which one it is, the user has said by name. */
		char *which = strstr(more, "target ");
		unsigned long n = which ? strtoul(which + 7, NULL, 10) : job->targets;

		if (n < job->targets && strchr(which, ':'))
			snprintf(at, sizeof(at), " at %s", job->target[n].name);
		snprintf(job->why, sizeof(job->why), "the kernel refuses %s%s: %s",
			 job->parts.count ? job->parts.part[0].name : "it", at, more);
	}
	return fg_refused(err == -ENOTSUP || err == -ENOSYS ? -EINVAL : err, job->why);
}

static void finish(struct job *job)
{
	if (job->policy)
		job->calls->close(job->policy);
	fg_kernel_parts_free(&job->parts);
	free(job->before);
	free(job->who);
}

/* What attaches; a kernel without SynCord has none. */
static int find_calls(const struct fg_policy_calls **calls, char *why, size_t size)
{
	int err = fg_policy_preflight(why, size);

	if (err)
		return err;
	*calls = fg_policy_calls(why, size);
	return *calls ? 0 : -ENOSYS;
}

/* The kernel comes first, then what is wrong with the words. */
static int begin(struct job *job, const char *policy, int argc, char **argv)
{
	int err = find_calls(&job->calls, job->why, sizeof(job->why));

	if (!err)
		err = fg_kernel_parts(policy, &job->parts, job->why, sizeof(job->why));
	return err ? err : resolve(job, argc, argv);
}

static void pin_path(char *path, size_t size, uint32_t id)
{
	snprintf(path, size, FG_BPFFS "/" PIN "%u", id);
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

/* Who it is, while it is there: of one that has ended the kernel says nothing. */
static void look_at_it(struct job *job, uint32_t id)
{
	char *status, *who;

	if (!job->calls->look(job->policy) && job->who)
		return;
	status = fg_syncord_status();
	who = fg_syncord_who(status, id);
	if (who) {
		free(job->who);
		job->who = who;
	}
	free(status);
}

/*
 * What was counted, in the same way however it has ended.  What the kernel has counted is there
 * while the policy is, its own counters for as long as this process.
 */
static void say_counted(struct job *job, uint32_t id, const char *ended)
{
	char *status, *now, *all;
	struct fg_json j = {.f = stdout};

	look_at_it(job, id);
	status = fg_syncord_status();
	now = fg_syncord_who(status, id);
	if (!now && asprintf(&all, "%s%s", status ? status : "", job->who ? job->who : "") >= 0) {
		free(status);
		status = all;
	}
	free(now);
	if (job->o->json) {
		fg_json_open(&j, NULL, '{');
		fg_json_text(&j, "event", "detached");
		fg_json_count(&j, "id", id);
		fg_json_text(&j, "because", ended);
		fg_syncord_json(&j, status, id, job->calls, job->policy);
		fg_json_close(&j, '}');
		fg_json_end(&j);
	} else {
		fg_syncord_print(status, id, job->calls, job->policy);
	}
	fflush(stdout); /* before what is said of the end */
	free(status);
}

/* One in an object or a slab cache, which may end before this process does; NULL: there is none. */
static const struct fg_kernel_target *may_go(const struct job *job)
{
	for (size_t i = 0; i < job->targets; i++)
		if (fg_kernel_in_object(&job->target[i]) || fg_kernel_in_slab(&job->target[i]))
			return &job->target[i];
	return NULL;
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

/*
 * A lock in an object has gone with it, or the name leads to another one now: which.  Not one that
 * a replacement has left: that lock is none of the link's any more.
 */
static const struct fg_kernel_target *gone(const struct job *job)
{
	for (size_t i = 0; i < job->targets; i++)
		if (has_gone(&job->target[i]) && !job->calls->left(job->policy, &job->address[i]))
			return &job->target[i];
	return NULL;
}

/*
 * Until a signal, the time, the kernel, or the end of an object: which of them.  Locks in objects
 * are looked for once a second: the kernel goes by addresses, and a policy would soon hold for
 * whatever comes to lie there.  So is what the link holds, which somebody may have replaced: when
 * it has ended nothing leads to its counters.
 */
static const char *stay(struct job *job, uint32_t id, const sigset_t *unblocked)
{
	uint64_t end = job->o->for_ns ? fg_now_ns() + job->o->for_ns : 0;
	bool objects = may_go(job);

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
		look_at_it(job, id);
		if (!end || left > LOOK_NS)
			left = LOOK_NS;
		ts = fg_timespec(left);
		n = ppoll(&link, 1, &ts, unblocked);
		if (n > 0 && link.revents)
			return "kernel";
		if (n < 0 && errno != EINTR)
			return "signal";
		lost = !n && objects ? gone(job) : NULL;
		if (lost) {
			snprintf(job->why, sizeof(job->why), "%s", lost->name);
			return "gone";
		}
	}
}

static bool has_bpffs(void)
{
	struct statfs fs;

	return !statfs(FG_BPFFS, &fs) && (unsigned long)fs.f_type == BPF_MAGIC;
}

static int may_pin(struct job *job)
{
	const struct fg_kernel_target *t = may_go(job);

	if (t) {
		snprintf(job->why, sizeof(job->why),
			 "--pin: nobody would look whether %s is still there", t->name);
		return -EINVAL;
	}
	if (!has_bpffs()) {
		snprintf(job->why, sizeof(job->why),
			 "--pin needs the BPF file system: mount -t bpf bpf " FG_BPFFS);
		return -ENOTDIR;
	}
	return 0;
}

static int pin(struct job *job, uint32_t id, const char *policy)
{
	char path[64];
	int err;

	pin_path(path, sizeof(path), id);
	err = job->calls->pin(job->policy, path, job->why, sizeof(job->why));
	if (err)
		return fg_refused(err, job->why);
	say_attached(job, id, policy);
	return 0;
}

static int watch(struct job *job, uint32_t id, const char *policy, const sigset_t *unblocked)
{
	const char *ended;
	bool ejected;

	say_attached(job, id, policy);
	ended = stay(job, id, unblocked);
	if (strcmp(ended, "kernel")) {
		if (!strcmp(ended, "gone"))
			fg_note("%s has gone: %s (%u) ends", job->why, policy, id);
		say_counted(job, id, ended);
		return 0;
	}
	ejected = fg_syncord_ejection(id, job->why, sizeof(job->why));
	say_counted(job, id, ejected ? "ejected" : "detached");
	if (ejected)
		fg_error("the kernel ejected %s (%u): %s", policy, id, job->why);
	else
		fg_note("%s (%u) was detached by somebody else", policy, id);
	return ejected;
}

int fg_kernel_attach(int argc, char **argv, const struct fg_policy_options *o)
{
	struct job job = {.o = o};
	sigset_t unblocked;
	uint32_t id;
	int err;

	err = begin(&job, argv[0], argc - 1, argv + 1);
	if (!err && o->pin)
		err = may_pin(&job);
	if (!err)
		err = load(&job, 0);
	if (err) {
		finish(&job);
		return fg_refused(err, job.why);
	}
	/* From here on they end the wait, and what has been counted is told. */
	fg_hold_interrupts(&unblocked);
	err = job.calls->attach(job.policy, job.address, job.targets, job.why, sizeof(job.why));
	if (err) {
		err = refused(&job, err);
	} else {
		id = job.calls->id(job.policy);
		err = o->pin ? pin(&job, id, argv[0]) : watch(&job, id, argv[0], &unblocked);
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

	if (!fg_kernel_id(argv[0], &id))
		return FG_EXIT_OWN;
	err = begin(&job, argv[1], argc - 2, argv + 2);
	if (!err && may_go(&job)) {
		snprintf(job.why, sizeof(job.why),
			 "nobody would look whether %s is still there: attach it",
			 may_go(&job)->name);
		err = -EINVAL;
	}
	if (!err)
		err = load(&job, o->keep ? id : 0);
	if (err) {
		finish(&job);
		return fg_refused(err, job.why);
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

static bool is_pinned(const struct fg_policy_calls *calls, uint32_t id)
{
	char path[64];

	pin_path(path, sizeof(path), id);
	return calls->pinned(path) == id;
}

/*
 * A link of another kind is not ours; of one that was ejected the pin is left, while the kernel
 * has the reason of the last 16 only.
 */
static bool is_ours(const struct fg_policy_calls *calls, uint32_t id)
{
	return fg_syncord_is_attached(id) || is_pinned(calls, id);
}

/* Those that are attached, and those that were ejected and are pinned: their number. */
static size_t all_of_ours(const struct fg_policy_calls *calls, uint32_t **ids)
{
	size_t n = fg_syncord_ids(ids), attached = n;
	DIR *pins = opendir(FG_BPFFS);
	struct dirent *e;
	uint32_t *more;
	uint64_t id;

	while (pins && (e = readdir(pins))) {
		bool known = strncmp(e->d_name, PIN, sizeof(PIN) - 1) ||
			     !fg_integer(e->d_name + sizeof(PIN) - 1, 1, UINT32_MAX, &id) ||
			     !is_pinned(calls, (uint32_t)id);

		for (size_t i = 0; i < attached && !known; i++)
			known = (*ids)[i] == id;
		more = known ? NULL : realloc(*ids, (n + 1) * sizeof(**ids));
		if (!more)
			continue;
		*ids = more;
		more[n++] = (uint32_t)id;
	}
	if (pins)
		closedir(pins);
	return n;
}

static int detach(const struct fg_policy_calls *calls, uint32_t id, char *why, size_t size)
{
	int err = calls->detach(id, why, size);
	char path[64];

	pin_path(path, sizeof(path), id);
	/* Of one that was ejected the pin was left. */
	return !unlink(path) && err == -ENOLINK ? 0 : err;
}

int fg_kernel_detach(int argc, char **argv, const struct fg_policy_options *o)
{
	const struct fg_policy_calls *calls;
	uint32_t one, *all = NULL, *ids = &one;
	struct fg_json j = {.f = stdout};
	char why[400];
	size_t n = 1;
	int err;

	if (!o->all && !fg_kernel_id(argv[0], &one))
		return FG_EXIT_OWN;
	err = find_calls(&calls, why, sizeof(why));
	if (err)
		return fg_refused(err, why);
	if (o->all) {
		n = all_of_ours(calls, &all);
		ids = all;
	} else if (!is_ours(calls, one)) {
		return fg_kernel_no_id(one);
	}
	if (o->json) {
		fg_json_open(&j, NULL, '{');
		fg_json_open(&j, "detached", '[');
	}
	for (size_t i = 0; i < n; i++) {
		int failed = detach(calls, ids[i], why, sizeof(why));

		/* With --all it may have ended by itself meanwhile. */
		if (failed && !(o->all && (failed == -ENOENT || failed == -ENOLINK)))
			err = fg_refused(failed, why);
		else if (o->json)
			fg_json_count(&j, NULL, ids[i]);
	}
	if (o->json) {
		fg_json_close(&j, ']');
		fg_json_close(&j, '}');
		fg_json_end(&j);
	}
	free(all);
	return err;
}
