/* SPDX-License-Identifier: MIT */
/*
 * What /sys/kernel/syncord says: lines of "key=value ...", with a text at the end of some.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/kernel_policy.h"

bool fg_syncord_next_line(const char **text, char *line, size_t size)
{
	size_t n;

	if (!*text || !**text)
		return false;
	n = strcspn(*text, "\n");
	snprintf(line, size, "%.*s", (int)n, *text);
	*text += n + ((*text)[n] == '\n');
	return true;
}

bool fg_syncord_begins(const char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && (line[n] == ' ' || !line[n]);
}

bool fg_syncord_field(const char *line, const char *key, char *value, size_t size)
{
	size_t n = strlen(key);

	while (*line) {
		bool is = !strncmp(line, key, n) && line[n] == '=';
		/* text=... is the last, and has spaces. */
		size_t length = strncmp(line, "text=", 5) ? strcspn(line, " ") : strlen(line);

		if (is) {
			snprintf(value, size, "%.*s", (int)(length - n - 1), line + n + 1);
			return true;
		}
		line += length;
		line += *line == ' ';
	}
	return false;
}

uint64_t fg_syncord_number(const char *line, const char *key)
{
	char value[32];

	return fg_syncord_field(line, key, value, sizeof(value)) ? strtoull(value, NULL, 0) : 0;
}

void fg_syncord_lock(const char *line, char *name, size_t size)
{
	snprintf(name, size, "-");
	fg_syncord_field(line, "symbol", name, size);
	if (!strcmp(name, "-"))
		fg_syncord_field(line, "addr", name, size);
}

/* "slow_hook: should_reorder took ..." */
static bool reason_of(const char *line, char *why, size_t size)
{
	char reason[40], text[300] = "";

	if (!fg_syncord_field(line, "reason", reason, sizeof(reason)))
		return false;
	fg_syncord_field(line, "text", text, sizeof(text));
	snprintf(why, size, "%s%s%s", reason, *text ? ": " : "", text);
	return true;
}

bool fg_syncord_refusal(char *why, size_t size)
{
	char *line = fg_kernel_line(FG_SYNCORD "/last_error");
	bool ours = line && fg_syncord_number(line, "pid") == (uint64_t)getpid() &&
		    reason_of(line, why, size);

	free(line);
	return ours;
}

bool fg_syncord_ejection(uint32_t id, char *why, size_t size)
{
	char *all = fg_kernel_text(FG_SYNCORD "/ejections"), line[500];
	const char *next = all;
	bool found = false;

	while (fg_syncord_next_line(&next, line, sizeof(line)))
		if (fg_syncord_number(line, "id") == id)
			found |= reason_of(line, why, size);
	free(all);
	return found;
}

size_t fg_syncord_ids(uint32_t **ids)
{
	char *all = fg_kernel_text(FG_SYNCORD "/status"), line[1000];
	const char *next = all;
	uint32_t *more;
	size_t n = 0;

	*ids = NULL;
	while (fg_syncord_next_line(&next, line, sizeof(line))) {
		if (!fg_syncord_begins(line, "policy"))
			continue;
		more = realloc(*ids, (n + 1) * sizeof(**ids));
		if (!more)
			break;
		*ids = more;
		more[n++] = (uint32_t)fg_syncord_number(line, "id");
	}
	free(all);
	return n;
}

bool fg_syncord_is_attached(uint32_t id)
{
	uint32_t *ids;
	size_t n = fg_syncord_ids(&ids);
	bool is = false;

	for (size_t i = 0; i < n; i++)
		is |= ids[i] == id;
	free(ids);
	return is;
}
