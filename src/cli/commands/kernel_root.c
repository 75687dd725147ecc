/* SPDX-License-Identifier: MIT */
/*
 * Where /proc and /sys are.  The tests have a program that is this one but for this file's first
 * function (test/cli/recorded.c), so that nothing a user can set leads elsewhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/kernel_policy.h"

__attribute__((weak)) const char *fg_kernel_root(void)
{
	return "";
}

char *fg_kernel_text(const char *path)
{
	size_t have = 0, room = 4096, n;
	char *text = malloc(room), *all, *name;
	FILE *f = NULL;

	if (asprintf(&name, "%s%s", fg_kernel_root(), path) >= 0) {
		f = fopen(name, "re");
		free(name);
	}
	while (f && text && (n = fread(text + have, 1, room - have - 1, f))) {
		have += n;
		if (have + 1 < room)
			continue;
		all = realloc(text, room *= 2);
		if (!all)
			free(text);
		text = all;
	}
	if (text)
		text[have] = '\0';
	if (!f || ferror(f)) {
		free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	return text;
}

char *fg_kernel_line(const char *path)
{
	char *text = fg_kernel_text(path);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}
