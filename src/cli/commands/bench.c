/* SPDX-License-Identifier: MIT */
/* `flexguard bench`: finds the harness, which is Python, and becomes it. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/common/exit.h"
#include "cli/common/message.h"

/* Debian's own first: that is where its matplotlib is. */
static const char *const pythons[] = {"/usr/bin/python3", "python3"};

/* Where things are, as seen from the command: not installed, and installed. */
static const struct {
	const char *script, *programs;
} places[] = {
    {"bench/scripts/flexguard-bench", "bench"},
    {FG_TO_DATADIR "/bench/flexguard-bench", FG_TO_LIBDIR "/bench"},
    {"flexguard-bench-data/flexguard-bench", "flexguard-bench-data"}, /* of make bench-bundle */
    {FG_DATADIR "/bench/flexguard-bench", FG_LIBDIR "/bench"},	      /* as configured */
};

static void from(const char *dir, const char *place, char *path, size_t size)
{
	snprintf(path, size, "%s%s%s", *place == '/' ? "" : dir, *place == '/' ? "" : "/", place);
}

int fg_cmd_bench(int argc, char **argv)
{
	char self[PATH_MAX], script[PATH_MAX + 64], programs[PATH_MAX + 64], **args;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *dir;
	size_t i;

	if (n < 0) {
		fg_error("cannot find myself: %s", strerror(errno));
		return FG_EXIT_OWN;
	}
	self[n] = 0;
	dir = dirname(self);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		from(dir, places[i].script, script, sizeof(script));
		from(dir, places[i].programs, programs, sizeof(programs));
		if (!access(script, R_OK) && !access(programs, X_OK))
			break;
	}
	if (i == sizeof(places) / sizeof(places[0])) {
		fg_error("cannot find the harness beside %s: build it (make) or install "
			 "FlexGuard",
			 dir);
		return FG_EXIT_OWN;
	}
	args = calloc((size_t)argc + 7, sizeof(*args));
	if (!args) {
		fg_error("%s", strerror(errno));
		return FG_EXIT_OWN;
	}
	args[1] = script;
	args[2] = (char *)"--build";
	args[3] = (char *)dir;
	args[4] = (char *)"--programs";
	args[5] = programs;
	memcpy(&args[6], &argv[1], (size_t)argc * sizeof(*args)); /* with the NULL at its end */
	for (i = 0; i < sizeof(pythons) / sizeof(pythons[0]); i++) {
		args[0] = (char *)pythons[i];
		execvp(args[0], args);
	}
	fg_error("cannot start python3: %s", strerror(errno));
	free(args);
	return FG_EXIT_OWN;
}
