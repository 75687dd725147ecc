/* SPDX-License-Identifier: MIT */
#include "cli/common/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *scaled(char *buf, size_t size, double v, double step, const char *const *unit,
			  int units)
{
	int u = 0;

	while (u < units - 1 && v >= step * 0.9995) {
		v /= step;
		u++;
	}
	/* three significant digits; whole numbers below the first step */
	snprintf(buf, size, "%.*f%s%s",
		 u == 0	   ? 0 :
		 v < 9.995 ? 2 :
		 v < 99.95 ? 1 :
			     0,
		 v, *unit[u] ? " " : "", unit[u]);
	return buf;
}

const char *fg_human_count(char *buf, size_t size, double n)
{
	static const char *const unit[] = {"", "k", "M", "G", "T"};

	if (n < 10000) {
		snprintf(buf, size, "%.0f", n);
		return buf;
	}
	return scaled(buf, size, n, 1000, unit, 5);
}

const char *fg_human_ns(char *buf, size_t size, double ns)
{
	static const char *const unit[] = {"ns", "us", "ms", "s"};

	return scaled(buf, size, ns, 1000, unit, 4);
}

double fg_seconds(const char *text)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1},	  {"s", 1},  {"ms", 1e-3}, {"us", 1e-6},
		     {"min", 60}, {"m", 60}, {"h", 3600}};
	char *end;
	double v;

	/* Not what strtod takes besides: nan, inf, 0x10, a sign. */
	if (!text || !*text || strspn(text, "0123456789.") == 0)
		return -1;
	errno = 0;
	v = strtod(text, &end);
	if (errno || memchr(text, 'x', (size_t)(end - text)) ||
	    memchr(text, 'X', (size_t)(end - text)))
		return -1;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name))
			return v * units[i].seconds;
	return -1;
}
