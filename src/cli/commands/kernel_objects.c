/* SPDX-License-Identifier: MIT */
/* Policies by name, what is in them (list, check), and what the machine says of its CPUs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/kernel_policy.h"
#include "cli/common/exit.h"
#include "cli/common/library.h"
#include "cli/common/message.h"
#include "cli/common/units.h"

#define FOLDER "kernel/policies"
#define ENDING ".bpf.o"
#define CPUS   512 /* SYNCORD_CPUS in syncord.bpf.h */

int fg_kernel_refused(const char *verb, int err, const char *why)
{
	fg_error("kernel %s: %s", verb, why);
	return err == -ENOTSUP || err == -ENOSYS ? FG_EXIT_SKIP : FG_EXIT_OWN;
}

/* ---- names --------------------------------------------------------------------- */

static int is_policy(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > strlen(ENDING) && !strcmp(e->d_name + n - strlen(ENDING), ENDING);
}

/* Of the names in the folder, without their endings; free() each and all.  < 0: -errno. */
static int built_in(char ***names, char *why, size_t size)
{
	char *folder = fg_library(FOLDER, why, size);
	struct dirent **entry;
	int n;

	if (!folder)
		return -ENOENT;
	n = scandir(folder, &entry, is_policy, alphasort);
	if (n < 0) {
		n = -errno;
		snprintf(why, size, "cannot read %s: %s", folder, strerror(errno));
		free(folder);
		return n;
	}
	free(folder);
	*names = calloc((size_t)n + 1, sizeof(**names));
	for (int i = 0; i < n; i++) {
		if (*names)
			(*names)[i] = strndup(entry[i]->d_name,
					      strlen(entry[i]->d_name) - strlen(ENDING));
		free(entry[i]);
	}
	free(entry);
	return *names ? n : -ENOMEM;
}

static void free_names(char **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	if (n >= 0)
		free(names);
}

static char *file_of(const char *name, char *why, size_t size)
{
	char path[300], list[300] = "", **names;
	size_t len = 0;
	char *file;
	int n;

	if (strchr(name, '/') || (strlen(name) > 2 && !strcmp(name + strlen(name) - 2, ".o"))) {
		if (!access(name, R_OK))
			return strdup(name);
		snprintf(why, size, "cannot read %s: %s", name, strerror(errno));
		return NULL;
	}
	snprintf(path, sizeof(path), FOLDER "/%s" ENDING, name);
	file = *name ? fg_library(path, why, size) : NULL;
	if (file)
		return file;
	n = built_in(&names, why, size);
	if (n < 0)
		return NULL;
	for (int i = 0; i < n && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
					names[i]);
	free_names(names, n);
	snprintf(why, size, "no policy '%s'; one of: %s, or the file of one", name, list);
	return NULL;
}

int fg_kernel_parts(const char *text, struct fg_policy_parts *parts, char *why, size_t size)
{
	char *next;

	*parts = (struct fg_policy_parts){.text = strdup(text)};
	next = parts->text;
	while (next) {
		char *name = next;

		/* A file may have the sign in its name. */
		next = strchr(name, '/') && !access(name, R_OK) ? NULL : strchr(name, '+');
		if (next)
			*next++ = '\0';
		if (parts->count == FG_POLICY_PARTS) {
			snprintf(why, size, "'%s': more than %d policies at once", text,
				 FG_POLICY_PARTS);
			return -E2BIG;
		}
		for (size_t i = 0; i < parts->count; i++)
			if (!strcmp(parts->part[i].name, name)) {
				snprintf(why, size, "'%s' names %s twice", text, name);
				return -EINVAL;
			}
		parts->file[parts->count] = file_of(name, why, size);
		if (!parts->file[parts->count])
			return -ENOENT;
		parts->part[parts->count] = (struct fg_policy_part){
		    .name = name, .file = parts->file[parts->count]};
		parts->count++;
	}
	return parts->count ? 0 : -ENOMEM;
}

void fg_kernel_parts_free(struct fg_policy_parts *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		free(parts->file[i]);
	free(parts->text);
}

bool fg_kernel_id(const char *text, uint32_t *id)
{
	uint64_t n;

	if (!fg_integer(text, 1, UINT32_MAX, &n))
		return false;
	*id = (uint32_t)n;
	return true;
}

/* ---- CPUs ---------------------------------------------------------------------- */

static long number_of(int cpu, const char *file)
{
	char path[120], *text, *end;
	long n;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
	text = fg_kernel_line(path);
	n = text ? strtol(text, &end, 10) : -1;
	n = text && end == text ? -1 : n;
	free(text);
	return n;
}

/* The first CPU of those that share the last level of cache; -1: not told. */
static long last_cache(int cpu)
{
	char file[60];
	long first = -1, n, level, most = -1;

	for (int i = 0; i < 8; i++) {
		snprintf(file, sizeof(file), "cache/index%d/level", i);
		level = number_of(cpu, file);
		snprintf(file, sizeof(file), "cache/index%d/shared_cpu_list", i);
		n = number_of(cpu, file);
		if (level > most && n >= 0) {
			most = level;
			first = n;
		}
	}
	return first;
}

/* "slow=4-7" without the ranges: "slow=4,5,6,7"; "llc=0,0,4,4". */
size_t fg_kernel_defaults(char *text, size_t size, const char **option)
{
	long capacity[CPUS], most = 0, cache;
	size_t len, options = 0;
	char *possible, *last;
	int cpus;

	possible = fg_kernel_line("/sys/devices/system/cpu/possible");
	last = possible ? strrchr(possible, '-') : NULL; /* "0-7" */
	cpus = last ? atoi(last + 1) + 1 : 1;
	cpus = cpus < 1 || cpus > CPUS ? CPUS : cpus;
	free(possible);
	for (int i = 0; i < cpus; i++) {
		capacity[i] = number_of(i, "cpu_capacity");
		most = capacity[i] > most ? capacity[i] : most;
	}
	option[options++] = text;
	len = (size_t)snprintf(text, size, "slow=");
	for (int i = 0, listed = 0; i < cpus && len < size; i++)
		if (capacity[i] >= 0 && capacity[i] < most)
			len += (size_t)snprintf(text + len, size - len, "%s%d", listed++ ? "," : "",
						i);
	len++;
	if (len + 16 > size || last_cache(0) < 0)
		return options;
	option[options++] = text + len;
	len += (size_t)snprintf(text + len, size - len, "llc=");
	for (int i = 0; i < cpus && len < size; i++) {
		cache = last_cache(i);
		len += (size_t)snprintf(text + len, size - len, "%s%ld", i ? "," : "",
					cache < 0 ? 0 : cache);
	}
	return options;
}

/* ---- list and check ------------------------------------------------------------ */

static void hooks_text(unsigned hooks, char *text, size_t size)
{
	size_t len = 0;

	*text = '\0';
	for (int i = 0; i < FG_HOOKS && len < size; i++)
		if (hooks & (1u << i))
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? "," : "",
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

static void print_options(const struct fg_policy_about *about)
{
	for (size_t i = 0; i < about->options; i++)
		printf("%s%s=%s", i ? " " : "", about->option[i].name, about->option[i].value);
	putchar('\n');
}

int fg_kernel_list(int argc, char **argv, const struct fg_policy_options *o)
{
	const struct fg_policy_calls *calls;
	struct fg_json j = {.f = stdout};
	char why[400], text[300], **names, *status;
	int n, err = 0;

	calls = fg_policy_calls(why, sizeof(why));
	if (!calls)
		return fg_kernel_refused("list", -ENOSYS, why);
	n = built_in(&names, why, sizeof(why));
	if (n < 0)
		return fg_kernel_refused("list", n, why);
	status = fg_kernel_text(FG_SYNCORD "/status");
	if (o->json) {
		fg_json_open(&j, NULL, '{');
		fg_json_open(&j, "policies", '[');
	} else {
		printf("%-12s %-8s %s\n", "POLICY", "LOCKS", "HOOKS, OPTIONS");
	}
	for (int i = 0; i < n && !err; i++) {
		struct fg_policy_parts parts;
		struct fg_policy_about about;

		err = fg_kernel_parts(names[i], &parts, why, sizeof(why));
		if (!err)
			err = calls->about(&parts.part[0], &about, why, sizeof(why));
		fg_kernel_parts_free(&parts);
		if (err)
			break;
		if (o->json) {
			fg_json_line(&j);
			fg_json_open(&j, NULL, '{');
			json_about(&j, names[i], &about);
			fg_json_open(&j, "lock_types", '[');
			fg_json_text(&j, NULL, "spin");
			fg_json_close(&j, ']');
			fg_json_close(&j, '}');
			continue;
		}
		hooks_text(about.hooks, text, sizeof(text));
		printf("%-12s %-8s %s\n", names[i], "spin", text);
		if (about.options) {
			printf("%22s", "");
			print_options(&about);
		}
	}
	free_names(names, n);
	if (o->json) {
		fg_json_close(&j, ']');
		if (status) {
			fg_json_open(&j, "kernel", '{');
			fg_syncord_json(&j, status, 0, NULL);
			fg_json_close(&j, '}');
		} else {
			fg_json_text(&j, "kernel", NULL);
		}
		fg_json_close(&j, '}');
		fg_json_end(&j);
	} else if (status) {
		putchar('\n');
		fg_syncord_print(status, 0, NULL);
	} else {
		puts("\nNothing can be attached: this kernel has no SynCord.");
	}
	free(status);
	return err ? fg_kernel_refused("list", err, why) : 0;
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
		    "has hooks of the fast path: while it is attached, every spinlock of the "
		    "machine looks whether it is a target";
	if ((hooks & FG_HOOK_REORDER) && !(hooks & FG_HOOK_SKIP))
		warning[n++] =
		    "reorders and never skips: others come only when they have waited for the "
		    "kernel's bound";
	if ((hooks & FG_HOOK_SKIP) && !(hooks & FG_HOOK_REORDER))
		warning[n++] = "skip_reorder without should_reorder: the kernel will refuse it";
	return n;
}

int fg_kernel_check(int argc, char **argv, const struct fg_policy_options *o)
{
	const struct fg_policy_calls *calls;
	struct fg_policy_parts parts = {.count = 0};
	struct fg_policy_about about[FG_POLICY_PARTS];
	struct fg_policy_config cfg;
	struct fg_policy *p = NULL;
	const char *defaults[4], *warning[8];
	char why[500], text[8192];
	struct fg_json j = {.f = stdout};
	int err = -ENOSYS;
	size_t n;

	calls = fg_policy_calls(why, sizeof(why));
	if (calls)
		err = fg_kernel_parts(argv[0], &parts, why, sizeof(why));
	for (size_t i = 0; i < parts.count && !err; i++)
		err = calls->about(&parts.part[i], &about[i], why, sizeof(why));
	if (err) {
		fg_kernel_parts_free(&parts);
		return fg_kernel_refused("check", err, why);
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
		fg_json_open(&j, NULL, '{');
	if (o->json)
		fg_json_open(&j, "objects", '[');
	for (size_t i = 0; i < parts.count; i++) {
		n = warnings(about[i].hooks, warning);
		if (o->json) {
			fg_json_open(&j, NULL, '{');
			json_about(&j, parts.part[i].name, &about[i]);
			fg_json_open(&j, "warnings", '[');
			for (size_t k = 0; k < n; k++)
				fg_json_text(&j, NULL, warning[k]);
			fg_json_close(&j, ']');
			fg_json_close(&j, '}');
			continue;
		}
		hooks_text(about[i].hooks, text, sizeof(text));
		printf("%s: %s\n", parts.part[i].name, *text ? text : "hooks not known");
		if (about[i].options) {
			printf("  options: ");
			print_options(&about[i]);
		}
		for (size_t k = 0; k < n; k++)
			printf("  warning: %s\n", warning[k]);
	}
	if (o->json) {
		fg_json_close(&j, ']');
		if (err && err != -EACCES)
			fg_json_text(&j, "verified", NULL);
		else
			fg_json_flag(&j, "verified", !err);
		fg_json_text(&j, "why", err ? why : NULL);
		fg_json_close(&j, '}');
		fg_json_end(&j);
	} else if (!err) {
		puts("the verifier accepts it");
	}
	calls->close(p);
	fg_kernel_parts_free(&parts);
	fflush(stdout);
	if (!err)
		return 0;
	fg_kernel_refused("check", err, why);
	return err == -ENOTSUP || err == -ENOSYS ? FG_EXIT_SKIP : err == -EACCES ? 1 : FG_EXIT_OWN;
}
