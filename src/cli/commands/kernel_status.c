/* SPDX-License-Identifier: MIT */
/*
 * `flexguard kernel status`: what /sys/kernel/syncord says, and the policies' own counters.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/kernel_policy.h"
#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/common/units.h"
#include "monitor/clock.h"

/* ---- text ---------------------------------------------------------------------- */

static void counters_of(const struct fg_policy_calls *calls, const struct fg_policy *held,
			uint32_t id, struct fg_policy_counters *c)
{
	char why[200];

	*c = (struct fg_policy_counters){0};
	if (held)
		calls->counted(held, c, why, sizeof(why));
	else if (calls)
		calls->counters(id, c, why, sizeof(why));
}

/* "  numa: heads 12, across 3" */
static void print_counters(const struct fg_policy_counters *c, uint32_t target)
{
	const char *policy = NULL;

	for (size_t i = 0; i < c->count; i++) {
		const struct fg_policy_counter *n = &c->counter[i];

		if (n->target != target)
			continue;
		if (!policy || strcmp(policy, n->policy))
			printf("%s        %s:", policy ? "\n" : "", n->policy);
		policy = n->policy;
		if (!n->bucket) {
			printf(" %s %" PRIu64, n->name, n->value);
			continue;
		}
		printf(" %s", n->name);
		for (size_t b = 0, some = 0; b < n->buckets; b++)
			if (n->bucket[b])
				printf("%c2^%zu:%" PRIu64, some++ ? ',' : ' ', b, n->bucket[b]);
	}
	if (policy)
		putchar('\n');
}

static void print_policy(const char *line)
{
	char name[40] = "", comm[40] = "", hooks[300] = "", c[24];

	fg_syncord_field(line, "name", name, sizeof(name));
	fg_syncord_field(line, "comm", comm, sizeof(comm));
	fg_syncord_field(line, "hooks", hooks, sizeof(hooks));
	printf("%" PRIu64 "  %s, of %s (%" PRIu64 ")", fg_syncord_number(line, "id"), name, comm,
	       fg_syncord_number(line, "pid"));
	/* Not of one that has ended. */
	if (fg_syncord_field(line, "age_ms", c, sizeof(c)))
		printf(", for %s", fg_human_ns(c, sizeof(c), 1e6 * strtod(c, NULL)));
	printf(": %s\n", hooks);
}

/* Which locks of the machine pay for the policies, by the kernel's static keys. */
static void print_keys(const char *line)
{
	static const struct {
		const char *key, *text, *unless;
	} shown[] = {{"fast_key", "every spinlock", ""},
		     {"slow_key", "contended spinlocks", "fast_key"},
		     {"mutex_fast_key", "every mutex", ""},
		     {"mutex_key", "contended mutexes", "mutex_fast_key"},
		     {"rwsem_key", "every rwsem", ""}};
	const char *before = "look themselves up: ";

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (fg_syncord_number(line, shown[i].key) &&
		    !fg_syncord_number(line, shown[i].unless)) {
			printf("%s%s", before, shown[i].text);
			before = ", ";
		}
	if (*before == ',')
		putchar('\n');
}

static void print_bias(const char *line)
{
	char c[24];

	if (fg_syncord_number(line, "biased") || fg_syncord_number(line, "arms"))
		printf("        %sbiased, for %" PRIu64 " reads; ended %" PRIu64
		       " times, in %s at most\n",
		       fg_syncord_number(line, "bias") ? "" : "was ",
		       fg_syncord_number(line, "biased"), fg_syncord_number(line, "revokes"),
		       fg_human_ns(c, sizeof(c), (double)fg_syncord_number(line, "revoke_max_ns")));
}

static void print_target(const char *line)
{
	static const struct {
		const char *key, *text;
	} shown[] = {{"slow", "waited"},	{"scans", "scans"},	{"moved", "moved"},
		     {"skipped", "skipped"},	{"overdue", "overdue"}, {"backoffs", "backed off"},
		     {"missed", "hooks missed"}};
	char lock[FG_KERNEL_NAME], c[24];

	fg_syncord_lock(line, lock, sizeof(lock));
	printf("    %s:", lock);
	if (!fg_syncord_field(line, shown[0].key, c, sizeof(c))) {
		putchar('\n'); /* what the kernel counts has gone with the policy */
		return;
	}
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		printf("%s %" PRIu64 " %s", i ? "," : "", fg_syncord_number(line, shown[i].key),
		       shown[i].text);
	printf(", longest wait %s\n",
	       fg_human_ns(c, sizeof(c), (double)fg_syncord_number(line, "wait_max_ns")));
	print_bias(line);
}

/* "SynCord is on; 1 policy on 2 locks" */
static void print_syncord(const char *line)
{
	uint64_t policies = fg_syncord_number(line, "policies"),
		 targets = fg_syncord_number(line, "targets");
	char state[20] = "?";

	fg_syncord_field(line, "state", state, sizeof(state));
	printf("SynCord is %s; %" PRIu64 " %s on %" PRIu64 " lock%s\n", state, policies,
	       policies == 1 ? "policy" : "policies", targets, targets == 1 ? "" : "s");
	print_keys(line);
}

void fg_syncord_print(const char *status, uint32_t id, const struct fg_policy_calls *calls,
		      const struct fg_policy *held)
{
	struct fg_policy_counters counters = {0};
	char line[1000];
	bool shown = false;

	while (fg_syncord_next_line(&status, line, sizeof(line))) {
		if (fg_syncord_begins(line, "syncord") && !id) {
			print_syncord(line);
		} else if (fg_syncord_begins(line, "policy")) {
			if (shown && calls)
				calls->free_counters(&counters);
			shown = !id || fg_syncord_number(line, "id") == id;
			if (!shown)
				continue;
			print_policy(line);
			counters_of(calls, held, (uint32_t)fg_syncord_number(line, "id"),
				    &counters);
		} else if (fg_syncord_begins(line, "target") && shown) {
			print_target(line);
			print_counters(&counters, (uint32_t)fg_syncord_number(line, "id"));
		}
	}
	if (shown && calls)
		calls->free_counters(&counters);
}

static void print_ejections(void)
{
	char *all = fg_kernel_text(FG_SYNCORD "/ejections"), line[500], name[40], why[400];
	const char *next = all;

	while (fg_syncord_next_line(&next, line, sizeof(line))) {
		uint32_t id = (uint32_t)fg_syncord_number(line, "id");

		if (fg_syncord_field(line, "name", name, sizeof(name)) &&
		    fg_syncord_ejection(id, why, sizeof(why)))
			printf("ejected: %u  %s: %s\n", id, name, why);
	}
	free(all);
}

/* ---- JSON ---------------------------------------------------------------------- */

static bool is_text(const char *key)
{
	static const char *const texts[] = {"name",   "comm",  "symbol", "type", "addr",
					    "cookie", "flags", "reason", "text", "state"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(key, texts[i]))
			return true;
	return false;
}

/*
 * Left out are `policy` of a target, which is the object around it, and the numbers of policies and
 * targets, which are inside.
 */
static void json_field(struct fg_json *j, const char *key, char *value)
{
	char *part;

	if (!strcmp(key, "hooks")) {
		fg_json_open(j, key, '[');
		while ((part = strsep(&value, ",")) && *part)
			fg_json_text(j, NULL, part);
		fg_json_close(j, ']');
	} else if (!strcmp(key, "calls")) {
		fg_json_open(j, key, '{');
		for (int i = 0; i < FG_HOOKS && (part = strsep(&value, ",")); i++)
			fg_json_count(j, fg_hook_name[i], strtoull(part, NULL, 10));
		fg_json_close(j, '}');
	} else if (is_text(key)) {
		fg_json_text(j, key, strcmp(value, "-") ? value : NULL);
	} else if (strcmp(key, "policy") && strcmp(key, "policies") && strcmp(key, "targets")) {
		fg_json_count(j, key, strtoull(value, NULL, 10));
	}
}

static void json_fields(struct fg_json *j, const char *line)
{
	char key[40], value[400];

	while (*line) {
		size_t n = strcspn(line, " =");

		if (line[n] == '=' && n < sizeof(key)) {
			snprintf(key, sizeof(key), "%.*s", (int)n, line);
			fg_syncord_field(line, key, value, sizeof(value));
			json_field(j, key, value);
		}
		line += fg_syncord_length(line);
		line += *line == ' ';
	}
}

static void json_counters(struct fg_json *j, const struct fg_policy_counters *c, uint32_t target)
{
	const char *policy = NULL;

	fg_json_open(j, "counters", '{');
	for (size_t i = 0; i < c->count; i++) {
		const struct fg_policy_counter *n = &c->counter[i];
		char key[80];

		if (n->target != target)
			continue;
		if (!policy || strcmp(policy, n->policy)) {
			if (policy)
				fg_json_close(j, '}');
			fg_json_open(j, n->policy, '{');
		}
		policy = n->policy;
		if (n->bucket) {
			fg_json_open(j, n->name, '[');
			for (size_t b = 0; b < n->buckets; b++)
				fg_json_count(j, NULL, n->bucket[b]);
			fg_json_close(j, ']');
			continue;
		}
		fg_json_count(j, n->name, n->value);
		snprintf(key, sizeof(key), "%s_by_cpu", n->name);
		fg_json_open(j, key, '[');
		for (size_t cpu = 0; cpu < n->cpus; cpu++)
			fg_json_count(j, NULL, n->cpu[cpu]);
		fg_json_close(j, ']');
	}
	if (policy)
		fg_json_close(j, '}');
	fg_json_close(j, '}');
}

/* The end of a policy and of its targets. */
static void close_policy(struct fg_json *j, const struct fg_policy_calls *calls,
			 struct fg_policy_counters *counters)
{
	fg_json_close(j, ']');
	fg_json_close(j, '}');
	if (calls)
		calls->free_counters(counters);
}

void fg_syncord_json(struct fg_json *j, const char *status, uint32_t id,
		     const struct fg_policy_calls *calls, const struct fg_policy *held)
{
	struct fg_policy_counters counters = {0};
	bool open = false, list = false;
	char line[1000];

	while (fg_syncord_next_line(&status, line, sizeof(line))) {
		if (fg_syncord_begins(line, "syncord")) {
			json_fields(j, line);
		} else if (fg_syncord_begins(line, "policy")) {
			if (open)
				close_policy(j, calls, &counters);
			if (!list)
				fg_json_open(j, "policies", '[');
			list = true;
			open = !id || fg_syncord_number(line, "id") == id;
			if (!open)
				continue;
			fg_json_open(j, NULL, '{');
			json_fields(j, line);
			fg_json_open(j, "targets", '[');
			counters_of(calls, held, (uint32_t)fg_syncord_number(line, "id"),
				    &counters);
		} else if (fg_syncord_begins(line, "target") && open) {
			fg_json_open(j, NULL, '{');
			json_fields(j, line);
			json_counters(j, &counters, (uint32_t)fg_syncord_number(line, "id"));
			fg_json_close(j, '}');
		}
	}
	if (open)
		close_policy(j, calls, &counters);
	if (!list)
		fg_json_open(j, "policies", '[');
	fg_json_close(j, ']');
}

static void json_ejections(struct fg_json *j)
{
	char *all = fg_kernel_text(FG_SYNCORD "/ejections"), line[500];
	const char *next = all;

	fg_json_open(j, "ejections", '[');
	while (fg_syncord_next_line(&next, line, sizeof(line))) {
		fg_json_open(j, NULL, '{');
		json_fields(j, line);
		fg_json_close(j, '}');
	}
	fg_json_close(j, ']');
	free(all);
}

void fg_syncord_print_json(const char *status, uint32_t id, const struct fg_policy_calls *calls)
{
	struct fg_json j = {.f = stdout};

	fg_json_open(&j, NULL, '{');
	fg_syncord_json(&j, status, id, calls, NULL);
	json_ejections(&j);
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

/* ---- the commands -------------------------------------------------------------- */

int fg_syncord_not_attached(uint32_t id)
{
	char text[400];

	if (!id || fg_syncord_is_attached(id))
		return 0;
	if (!fg_syncord_ejection(id, text, sizeof(text)))
		return fg_kernel_no_id(id);
	fg_error("%u was ejected: %s", id, text);
	return FG_EXIT_OWN;
}

int fg_syncord_start(int argc, char **argv, uint32_t *id, const struct fg_policy_calls **calls)
{
	char why[400], *status;
	int err;

	*id = 0;
	if (argc && !fg_kernel_id(argv[0], id))
		return FG_EXIT_OWN;
	status = fg_syncord_status();
	if (!status) {
		err = fg_policy_preflight(why, sizeof(why));
		if (!err)
			snprintf(why, sizeof(why),
				 "no %s/status: this kernel's SynCord is older or newer than "
				 "this command",
				 FG_SYNCORD);
		return fg_refused(err ? err : -ENOTSUP, why);
	}
	free(status);
	err = fg_syncord_not_attached(*id);
	if (err)
		return err;
	/* Without them the kernel's own numbers are left. */
	*calls = *fg_kernel_root() ? NULL : fg_policy_calls(why, sizeof(why));
	return 0;
}

int fg_kernel_status(int argc, char **argv, const struct fg_policy_options *o)
{
	const struct fg_policy_calls *calls = NULL;
	char *status;
	uint32_t id;
	int failed = fg_syncord_start(argc, argv, &id, &calls);

	if (failed)
		return failed;
	status = fg_syncord_status();
	if (o->json) {
		fg_syncord_print_json(status, id, calls);
	} else {
		fg_syncord_print(status, id, calls, NULL);
		if (!id)
			print_ejections();
	}
	free(status);
	return 0;
}
