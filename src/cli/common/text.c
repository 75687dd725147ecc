/* SPDX-License-Identifier: MIT */
/* Text for people and from people: lines that fit a terminal, times with units. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

int fg_columns(int fd)
{
	struct winsize w;

	if (!isatty(fd))
		return 0;
	return !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col >= 20 ? w.ws_col : PROSE_COLUMNS;
}

int fg_prose_columns(int fd)
{
	int columns = fg_columns(fd);

	return columns > PROSE_COLUMNS ? PROSE_COLUMNS : columns;
}

void fg_fold(char *out, size_t size, const char *text, int at, int indent, int columns)
{
	size_t used = 0;

	if (columns && indent > columns / 2)
		indent = columns / 2;
	while (*text && used + 1 < size) {
		size_t word = strcspn(text, " \n"), gap = strspn(text + word, " ");
		bool full = columns && at > indent && at + (int)word > columns;

		if (full) {
			if (used && out[used - 1] == ' ')
				used--;
			if (used + 2 + (size_t)indent >= size)
				break;
			out[used++] = '\n';
			memset(out + used, ' ', (size_t)indent);
			used += (size_t)indent;
			at = indent;
		}
		word += gap;
		if (text[word] == '\n')
			word++;
		word = word ? word : 1;
		word = word < size - 1 - used ? word : size - 1 - used;
		memcpy(out + used, text, word);
		used += word;
		at = out[used - 1] == '\n' ? 0 : at + (int)word;
		text += word;
	}
	out[used] = '\0';
}

void fg_cut(char *text, int columns)
{
	if (columns > 3 && strlen(text) > (size_t)columns)
		strcpy(text + columns - 3, "...");
}

double fg_seconds(const char *text)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"m", 60}, {"h", 3600}};
	char *end;
	double v;

	/* Not what strtod takes besides: nan, inf, 0x10, a sign. */
	if (!text || !*text || strspn(text, "0123456789.") == 0)
		return -1;
	errno = 0;
	v = strtod(text, &end);
	if (errno || memchr(text, 'x', (size_t)(end - text)) || memchr(text, 'X', (size_t)(end - text)))
		return -1;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name))
			return v * units[i].seconds;
	return -1;
}
