/* SPDX-License-Identifier: MIT */
#include "cli/common/arguments.h"

#include <string.h>

bool fg_option(const char *arg, const char *name, const char **value)
{
	size_t len = strlen(name);

	if (strncmp(arg, "--", 2) || strncmp(arg + 2, name, len))
		return false;
	if (arg[2 + len] != '\0' && arg[2 + len] != '=')
		return false;
	*value = arg[2 + len] == '=' ? arg + 3 + len : NULL;
	return true;
}

const char *fg_argument(int argc, char **argv, int *i, char letter, const char *name)
{
	const char *arg = argv[*i], *text;

	if (letter && arg[0] == '-' && arg[1] == letter)
		text = arg[2] ? arg + 2 : NULL;
	else if (!fg_option(arg, name, &text))
		return NULL;
	if (!text)
		text = *i + 1 < argc ? argv[++*i] : "";
	return text;
}
