/* SPDX-License-Identifier: MIT */
/* `flexguard kernel list` and `check`: what is in policies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/kernel_policy.h"
#include "cli/common/message.h"
#include "cli/common/text.h"

static void hooks_text(unsigned hooks, char *text, size_t size)
{
	size_t len = 0;

	*text = '\0';
	for (int i = 0; i < FG_HOOKS && len < size; i++)
		if (hooks & (1u << i))
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
						fg_hook_name[i]);
}

static void json_about(struct fg_json *j, const char *name, const struct fg_policy_about *about)
{
	fg_json_text(j, "policy", name);
	fg_json_open(j, "hooks", '[');
	for (int i = 0; i < FG_HOOKS; i++)
		if (about->hooks & (1u << i))
			fg_json_text(j, NULL, fg_hook_name[i]);
	fg_json_close(j, ']');
	fg_json_open(j, "options", '{');
	for (size_t i = 0; i < about->options; i++)
		fg_json_text(j, about->option[i].name, about->option[i].value);
	fg_json_close(j, '}');
}

/* `text` behind `at` columns, and below them where the terminal is narrower. */
static void print_at(int at, const char *text)
{
	char folded[600];

	fg_fold(folded, sizeof(folded), text, at, at, fg_columns(STDOUT_FILENO));
	puts(folded);
}

/* Behind `at` columns that have been written. */
static void print_options(int at, const struct fg_policy_about *about)
{
	char text[400] = "";
	size_t len = 0;

	for (size_t i = 0; i < about->options && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s=%s", i ? " " : "",
					about->option[i].name, about->option[i].value);
	fg_make_printable(text); /* the file may be anybody's */
	print_at(at, text);
}

/*
 * Which locks it can be attached to: only spinlocks have a queue that is reordered, and only rwsems
 * a bias.
 */
static const char *const lock_types[] = {"spin", "mutex", "rwsem"};
#define TYPES (sizeof(lock_types) / sizeof(lock_types[0]))

static bool is_for(unsigned hooks, size_t type)
{
	if (hooks & (FG_HOOK_REORDER | FG_HOOK_SKIP))
		return type == 0;
	return !(hooks & FG_HOOK_BIAS) || type == TYPES - 1;
}

static const char *types_of(unsigned hooks)
{
	return !is_for(hooks, TYPES - 1) ? lock_types[0] :
	       !is_for(hooks, 0)	 ? lock_types[TYPES - 1] :
					   "all";
}

/* A row of the list. */
static int list_one(const struct fg_policy_calls *calls, const char *name, struct fg_json *j,
		    char *why, size_t size)
{
	struct fg_policy_parts parts;
	struct fg_policy_about about;
	char text[300];
	int err = fg_kernel_parts(name, &parts, why, size);

	if (!err)
		err = calls->about(&parts.part[0], &about, why, size);
	fg_kernel_parts_free(&parts);
	if (err)
		return err;
	if (j) {
		fg_json_line(j);
		fg_json_open(j, NULL, '{');
		json_about(j, name, &about);
		fg_json_open(j, "lock_types", '[');
		for (size_t i = 0; i < TYPES; i++)
			if (is_for(about.hooks, i))
				fg_json_text(j, NULL, lock_types[i]);
		fg_json_close(j, ']');
		fg_json_close(j, '}');
		return 0;
	}
	hooks_text(about.hooks, text, sizeof(text));
	print_at(printf("%-12s %-8s ", name, types_of(about.hooks)), text);
	if (about.options)
		print_options(printf("%22s", ""), &about);
	return 0;
}

int fg_kernel_list(int argc, char **argv, const struct fg_policy_options *o)
{
	const struct fg_policy_calls *calls;
	struct fg_json j = {.f = stdout};
	char why[400], **names, *status;
	int n, err = 0;

	calls = fg_policy_calls(why, sizeof(why));
	if (!calls)
		return fg_refused(-ENOSYS, why);
	n = fg_kernel_built_in(&names, why, sizeof(why));
	if (n < 0)
		return fg_refused(n, why);
	status = fg_syncord_status();
	if (o->json) {
		fg_json_open(&j, NULL, '{');
		fg_json_open(&j, "policies", '[');
	} else {
		printf("%-12s %-8s %s\n", "POLICY", "LOCKS", "HOOKS, OPTIONS");
	}
	for (int i = 0; i < n && !err; i++)
		err = list_one(calls, names[i], o->json ? &j : NULL, why, sizeof(why));
	fg_kernel_free_names(names, n);
	if (o->json) {
		fg_json_close(&j, ']');
		if (status) {
			fg_json_open(&j, "kernel", '{');
			fg_syncord_json(&j, status, 0, NULL, NULL);
			fg_json_close(&j, '}');
		} else {
			fg_json_text(&j, "kernel", NULL);
		}
		fg_json_close(&j, '}');
		fg_json_end(&j);
	} else if (status) {
		putchar('\n');
		fg_syncord_print(status, 0, NULL, NULL);
	} else {
		puts("\nNothing can be attached: this kernel has no SynCord.");
	}
	free(status);
	return err ? fg_refused(err, why) : 0;
}

/* What a reader of the design would look for; count of them. */
static size_t warnings(unsigned hooks, const char **warning)
{
	size_t n = 0;

	if (!hooks)
		warning[n++] =
		    "no section is named struct_ops/HOOK: its hooks are known when it is "
		    "loaded";
	if (hooks & FG_HOOKS_OF_EVERY_LOCK)
		warning[n++] =
		    "has hooks of the fast path: while it is attached, every lock of the machine "
		    "of its targets' types looks whether it is one";
	if ((hooks & FG_HOOK_REORDER) && !(hooks & FG_HOOK_SKIP))
		warning[n++] =
		    "reorders and never skips: others come only when they have waited for the "
		    "kernel's bound";
	if ((hooks & FG_HOOK_SKIP) && !(hooks & FG_HOOK_REORDER))
		warning[n++] = "skip_reorder without should_reorder: the kernel will refuse it";
	return n;
}

static void json_checked(const struct fg_policy_parts *parts, const struct fg_policy_about *about,
			 int err, const char *why)
{
	struct fg_json j = {.f = stdout};
	const char *warning[8];
	size_t n;

	fg_json_open(&j, NULL, '{');
	fg_json_open(&j, "objects", '[');
	for (size_t i = 0; i < parts->count; i++) {
		fg_json_open(&j, NULL, '{');
		json_about(&j, parts->part[i].name, &about[i]);
		n = warnings(about[i].hooks, warning);
		fg_json_open(&j, "warnings", '[');
		for (size_t k = 0; k < n; k++)
			fg_json_text(&j, NULL, warning[k]);
		fg_json_close(&j, ']');
		fg_json_close(&j, '}');
	}
	fg_json_close(&j, ']');
	if (err && err != -EACCES)
		fg_json_text(&j, "verified", NULL);
	else
		fg_json_flag(&j, "verified", !err);
	fg_json_text(&j, "why", err ? why : NULL);
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

static void print_checked(const struct fg_policy_parts *parts, const struct fg_policy_about *about,
			  int err)
{
	const char *warning[8];
	char text[300];
	size_t n;

	for (size_t i = 0; i < parts->count; i++) {
		hooks_text(about[i].hooks, text, sizeof(text));
		print_at(printf("%s: ", parts->part[i].name), *text ? text : "hooks not known");
		if (about[i].options)
			print_options(printf("  options: "), &about[i]);
		n = warnings(about[i].hooks, warning);
		for (size_t k = 0; k < n; k++)
			print_at(printf("  warning: "), warning[k]);
	}
	if (!err)
		puts("the verifier accepts it");
}

int fg_kernel_check(int argc, char **argv, const struct fg_policy_options *o)
{
	const struct fg_policy_calls *calls;
	struct fg_policy_parts parts = {.count = 0};
	struct fg_policy_about about[FG_POLICY_PARTS];
	struct fg_policy_config cfg;
	struct fg_policy *p = NULL;
	const char *defaults[4];
	char why[500], text[8192];
	int err = -ENOSYS, status;

	calls = fg_policy_calls(why, sizeof(why));
	if (calls)
		err = fg_kernel_parts(argv[0], &parts, why, sizeof(why));
	for (size_t i = 0; i < parts.count && !err; i++)
		err = calls->about(&parts.part[i], &about[i], why, sizeof(why));
	if (err) {
		fg_kernel_parts_free(&parts);
		return fg_refused(err, why);
	}
	cfg = (struct fg_policy_config){.part = parts.part,
					.parts = parts.count,
					.options = o->option,
					.nr_options = o->options,
					.defaults = defaults};
	cfg.nr_defaults = fg_kernel_defaults(text, sizeof(text), defaults);
	/* Without a difference between the CPUs it is verified all the same. */
	if (!strcmp(defaults[0], "slow="))
		defaults[0] = "slow=0";
	err = calls->load(&p, &cfg, why, sizeof(why));
	if (o->json)
		json_checked(&parts, about, err, why);
	else
		print_checked(&parts, about, err);
	calls->close(p);
	fg_kernel_parts_free(&parts);
	fflush(stdout);
	if (!err)
		return 0;
	status = fg_refused(err, why);
	return err == -EACCES ? 1 : status; /* of the verifier */
}
