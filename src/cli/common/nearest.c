/* SPDX-License-Identifier: MIT */
#include "cli/common/nearest.h"

#include <stdio.h>
#include <string.h>

#define SEPARATORS ", |"
#define LONGEST	   40 /* no name of ours has so many letters */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Letters put in, left out, changed, or swapped with their neighbour: F. J. Damerau, A technique
 * for computer detection and correction of spelling errors (CACM 1964), no letter edited twice.
 */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t row[3][LONGEST + 1], *before = row[0], *last = row[1], *now = row[2], *spare;

	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			now[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]),
				       1 + least(last[j], now[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[m];
}

/* So many letters may be wrong: one in three, of short words one. */
static size_t tolerated(size_t letters)
{
	return letters < 2 ? 0 : letters < 6 ? 1 : letters / 3;
}

bool fg_nearest(const char *word, const char *list, char *nearest, size_t size)
{
	size_t n = strlen(word), best = tolerated(n) + 1, begun = 0, m;
	const char *found = NULL, *longer = NULL;
	size_t found_size = 0, longer_size = 0;

	if (n > LONGEST)
		return false;
	for (const char *w = list; *w; w += m + strspn(w + m, SEPARATORS)) {
		size_t d;

		m = strcspn(w, SEPARATORS);
		if (m > LONGEST)
			continue;
		if (n > 1 && m > n && !strncmp(w, word, n)) {
			begun++;
			longer = w;
			longer_size = m;
		}
		d = distance(word, n, w, m);
		if (d < best) {
			best = d;
			found = w;
			found_size = m;
		}
	}
	if (begun == 1 && best > 1) {
		found = longer;
		found_size = longer_size;
	}
	if (!found)
		return false;
	snprintf(nearest, size, "%.*s", (int)found_size, found);
	return true;
}

const char *fg_instead(const char *word, const char *list, char *text, size_t size)
{
	char nearest[LONGEST + 1];

	if (fg_nearest(word, list, nearest, sizeof(nearest)))
		snprintf(text, size, "did you mean '%s'?", nearest);
	else
		snprintf(text, size, "one of: %s", list);
	return text;
}
