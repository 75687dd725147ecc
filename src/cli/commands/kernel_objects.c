/* SPDX-License-Identifier: MIT */
/* Policies by name, and what the machine says of its CPUs. */
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
#include "cli/common/nearest.h"
#include "cli/common/units.h"

#define FOLDER "kernel/policies"
#define ENDING ".bpf.o"
#define CPUS   512 /* SYNCORD_CPUS in syncord.bpf.h */

/* ---- names --------------------------------------------------------------------- */

static int is_policy(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > strlen(ENDING) && !strcmp(e->d_name + n - strlen(ENDING), ENDING);
}

int fg_kernel_built_in(char ***names, char *why, size_t size)
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
	if (*names)
		return n;
	snprintf(why, size, "out of memory");
	return -ENOMEM;
}

void fg_kernel_free_names(char **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	if (n >= 0)
		free(names);
}

static char *file_of(const char *name, char *why, size_t size)
{
	char path[300], list[300] = "", instead[320], **names;
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
	n = fg_kernel_built_in(&names, why, size);
	if (n < 0)
		return NULL;
	for (int i = 0; i < n && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
					names[i]);
	fg_kernel_free_names(names, n);
	snprintf(why, size, "no policy '%s': %s or the file of one", name,
		 fg_instead(name, list, instead, sizeof(instead)));
	return NULL;
}

int fg_kernel_parts(const char *text, struct fg_policy_parts *parts, char *why, size_t size)
{
	char *next;

	/* The SynCord paper's name of two that are attached as one. */
	*parts = (struct fg_policy_parts){
	    .text = strdup(strcmp(text, "numa-scl") ? text : "numa+scl")};
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
	if (parts->count)
		return 0;
	snprintf(why, size, "out of memory");
	return -ENOMEM;
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

	if (!fg_integer(text, 1, UINT32_MAX, &n)) {
		fg_error("'%s' is not the number of a policy: flexguard kernel status shows them",
			 text);
		return false;
	}
	*id = (uint32_t)n;
	return true;
}

int fg_kernel_no_id(uint32_t id)
{
	fg_error("nothing is attached with id %u: flexguard kernel status shows what is", id);
	return FG_EXIT_OWN;
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
	long capacity[CPUS], cache[CPUS], most = 0;
	bool told = false;
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
		cache[i] = last_cache(i);
		told |= cache[i] >= 0;
	}
	option[options++] = text;
	len = (size_t)snprintf(text, size, "slow=");
	for (int i = 0, listed = 0; i < cpus && len < size; i++)
		if (capacity[i] >= 0 && capacity[i] < most)
			len += (size_t)snprintf(text + len, size - len, "%s%d", listed++ ? "," : "",
						i);
	len++;
	if (len + 16 > size || !told)
		return options;
	option[options++] = text + len;
	len += (size_t)snprintf(text + len, size - len, "llc=");
	/* One that is off shares none that are known: a number of its own, which no other has. */
	for (int i = 0; i < cpus && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%ld", i ? "," : "",
					cache[i] < 0 ? i : cache[i]);
	return options;
}
