/* SPDX-License-Identifier: MIT */
/*
 * What /sys/kernel/syncord says: lines of "key=value ...", with a text at the end of some.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/commands/kernel_policy.h"
#include "monitor/namespace.h"

#define TRIES 20
#define MOST  65536 /* of one read, which gives a page at most */

/*
 * Of one read there is one moment, and the next one is of another: lines have become longer, or are
 * others.  So each begins with the end of a line, which is still there, and ends with a line.
 */
static bool read_whole_lines(int fd, char **text)
{
	size_t have = 0, room = MOST;

	for (;;) {
		size_t before = have > 0;
		char *more = realloc(*text, have + room), *end;
		ssize_t n;

		if (!more)
			return false;
		*text = more;
		n = pread(fd, more + have - before, room - 1, (off_t)(have - before));
		if (n < (ssize_t)before || (before && more[have - 1] != '\n'))
			return false;
		if (n == (ssize_t)before) {
			more[have] = '\0';
			return true;
		}
		n -= (ssize_t)before;
		end = memrchr(more + have, '\n', (size_t)n);
		have = end ? (size_t)(end + 1 - more) : have + (size_t)n;
	}
}

char *fg_syncord_status(void)
{
	char *name, *text = NULL;
	int fd = -1;

	if (asprintf(&name, "%s" FG_SYNCORD "/status", fg_kernel_root()) >= 0) {
		fd = open(name, O_RDONLY | O_CLOEXEC);
		free(name);
	}
	for (int i = 0; fd >= 0 && i < TRIES; i++)
		if (read_whole_lines(fd, &text)) {
			close(fd);
			return text;
		}
	if (fd >= 0)
		close(fd);
	free(text);
	return fg_kernel_text(FG_SYNCORD "/status");
}

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

size_t fg_syncord_length(const char *line)
{
	size_t length = strcspn(line, " ");

	if (!strncmp(line, "text=", 5))
		return strlen(line);
	if (!strncmp(line, "symbol=", 7) && line[length] && line[length + 1] == '[')
		length += 1 + strcspn(line + length + 1, " ");
	return length;
}

bool fg_syncord_field(const char *line, const char *key, char *value, size_t size)
{
	size_t n = strlen(key);

	while (*line) {
		bool is = !strncmp(line, key, n) && line[n] == '=';
		size_t length = fg_syncord_length(line);

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

char *fg_syncord_last_error(void)
{
	return fg_kernel_line(FG_SYNCORD "/last_error");
}

/* As the kernel writes it, with '?' for what could be taken for something else (syncord_clean()) */
static bool has_our_name(const char *line)
{
	char name[16] = "", theirs[32];

	prctl(PR_GET_NAME, name);
	for (char *c = name; *c; c++)
		if (!isascii(*c) || !(isalnum(*c) || strchr("_.:+-", *c)))
			*c = '?';
	return fg_syncord_field(line, "comm", theirs, sizeof(theirs)) && !strcmp(name, theirs);
}

/* The loader makes EINVAL of what would mean that there is no SynCord. */
static bool has_errno(const char *line, int err)
{
	int theirs = (int)fg_syncord_number(line, "errno");

	return theirs == -err || (err == -EINVAL && (theirs == ENOTSUP || theirs == ENOSYS));
}

/*
 * The kernel says the number that a process has in the first namespace of pids, which one that has
 * ended may have had before, and of some errors nothing: so it has to be new and fit as well.  In
 * another namespace that number is not known, and the name has to do.
 */
bool fg_syncord_refusal(const char *before, int err, char *why, size_t size)
{
	char *line = fg_syncord_last_error();
	bool ours = line && before && strcmp(line, before) && has_errno(line, err) &&
		    (fg_in_first_pid_namespace() ?
			 fg_syncord_number(line, "pid") == (uint64_t)getpid() :
			 has_our_name(line));

	ours = ours && reason_of(line, why, size);
	free(line);
	return ours;
}

/* Those that stay true. */
static bool says_who(const char *field)
{
	static const char *const keys[] = {
	    "id=",    "name=",	 "pid=",  "comm=",   "hooks=", "max_bypass_us=", "max_wait_us=",
	    "flags=", "policy=", "addr=", "symbol=", "type=",  "cookie="};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strncmp(field, keys[i], strlen(keys[i])))
			return true;
	return false;
}

char *fg_syncord_who(const char *status, uint32_t id)
{
	char *text = NULL, line[1000];
	size_t size;
	FILE *f = open_memstream(&text, &size);
	bool found = false;

	while (f && fg_syncord_next_line(&status, line, sizeof(line))) {
		bool policy = fg_syncord_begins(line, "policy");
		const char *field = line;

		if ((!policy && !fg_syncord_begins(line, "target")) ||
		    fg_syncord_number(line, policy ? "id" : "policy") != id)
			continue;
		found = true;
		fputs(policy ? "policy" : "target", f);
		while (*field) {
			size_t length = fg_syncord_length(field);

			if (says_who(field))
				fprintf(f, " %.*s", (int)length, field);
			field += length;
			field += *field == ' ';
		}
		putc('\n', f);
	}
	if (f)
		fclose(f);
	if (!found) {
		free(text);
		text = NULL;
	}
	return text;
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
	char *all = fg_syncord_status(), line[1000];
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
