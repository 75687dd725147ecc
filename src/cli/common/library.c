/* SPDX-License-Identifier: MIT */
#include "cli/common/library.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Of the command; without /proc, by the name that it was started by. */
static const char *own_folder(char exe[PATH_MAX])
{
	const char *name = (const char *)getauxval(AT_EXECFN);
	ssize_t n = readlink("/proc/self/exe", exe, PATH_MAX - 1);

	if (n > 0)
		exe[n] = '\0';
	else if (!name || !realpath(name, exe))
		return NULL;
	return dirname(exe);
}

/* Not installed, the library lies beside the command. */
char *fg_library(const char *name, char *why, size_t why_size)
{
	/* Not installed; installed, wherever the tree was moved to; as configured. */
	static const char *const places[] = {".", FG_TO_LIBDIR, FG_LIBDIR};
	char exe[PATH_MAX], *file = NULL;
	const char *dir = own_folder(exe);
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		/* never one of the working directory, which may be anybody's */
		if (!dir && *places[i] != '/')
			continue;
		free(file);
		if (asprintf(&file, "%s%s%s/%s", *places[i] == '/' ? "" : dir,
			     *places[i] == '/' ? "" : "/", places[i], name) < 0)
			file = NULL;
		if (file && !access(file, R_OK)) {
			char *real = realpath(file, NULL);

			free(file);
			file = real;
			break;
		}
	}
	if (!file || access(file, R_OK)) {
		snprintf(why, why_size,
			 "cannot find %s beside the command or in " FG_LIBDIR
			 ": build it (make) or install FlexGuard",
			 name);
		free(file);
		return NULL;
	}
	return file;
}

char *fg_preload_library(const char *name, char *why, size_t why_size)
{
	char *file = fg_library(name, why, why_size);

	/* LD_PRELOAD is a list separated by these, and has no escape. */
	if (file && strpbrk(file, " :")) {
		snprintf(
		    why, why_size,
		    "LD_PRELOAD cannot name '%s', because of the space or colon in it: move it",
		    file);
		free(file);
		return NULL;
	}
	return file;
}
