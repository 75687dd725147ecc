/* SPDX-License-Identifier: MIT */
#include "cli/common/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int fg_columns(int fd)
{
	struct winsize w;

	if (!isatty(fd))
		return 0;
	return !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col >= 20 ? w.ws_col : PROSE_COLUMNS;
}

/* Emacs' shell, for one, is "dumb", and would show what others obey. */
bool fg_can_rewrite(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && strcmp(term, "dumb");
}

int fg_prose_columns(int fd)
{
	int columns = fg_columns(fd);

	return columns > PROSE_COLUMNS ? PROSE_COLUMNS : columns;
}

int fg_help_columns(void)
{
	int columns = fg_prose_columns(STDOUT_FILENO);

	return columns ? columns : PROSE_COLUMNS;
}

/* The bytes of the character there if it is one that a terminal obeys, else 0. */
static size_t obeyed(const unsigned char *c)
{
	if (*c < 0x20 || *c == 0x7f)
		return 1;
	if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
		return 2;
	/* What turns a line (Unicode, UAX 9): U+061C, 200E, 200F, 202A to 202E, 2066 to 2069. */
	if (*c == 0xd8 && c[1] == 0x9c)
		return 2;
	if (*c != 0xe2)
		return 0;
	if (c[1] == 0x80)
		return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xaa && c[2] <= 0xae) ? 3 : 0;
	return c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9 ? 3 : 0;
}

void fg_make_printable(char *text)
{
	for (size_t n; *text; text += n ? n : 1) {
		n = obeyed((const unsigned char *)text);
		memset(text, '?', n);
	}
}

void fg_put_text(const char *fmt, ...)
{
	char text[900], folded[1100];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fg_fold(folded, sizeof(folded), text, 0, 2, fg_prose_columns(STDOUT_FILENO));
	puts(folded);
}

size_t fg_first(const char *text, int columns)
{
	size_t n = 0;

	while (text[n] && columns--)
		while ((text[++n] & 0xc0) == 0x80)
			;
	return n;
}

void fg_put_row(const char *fmt, ...)
{
	int columns = fg_columns(STDOUT_FILENO), n;
	char text[1000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = (int)(columns ? fg_first(text, columns) : strlen(text));
	while (n > 0 && text[n - 1] == ' ')
		n--;
	printf("%.*s\n", n, text);
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
			while (used && out[used - 1] == ' ')
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
	if (columns > 3 && text[fg_first(text, columns)])
		strcpy(text + fg_first(text, columns - 3), "...");
}
