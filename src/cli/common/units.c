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

uint64_t fg_duration_ns(const char *text)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9},	    {"s", 1e9},	 {"ms", 1e6},  {"us", 1e3},
		     {"min", 60e9}, {"m", 60e9}, {"h", 3600e9}};
	char *end;
	double v;

	/* Not what strtod takes besides: nan, inf, 0x10, a sign. */
	if (!text || !*text || strspn(text, "0123456789.") == 0)
		return 0;
	errno = 0;
	v = strtod(text, &end);
	if (errno || memchr(text, 'x', (size_t)(end - text)) ||
	    memchr(text, 'X', (size_t)(end - text)))
		return 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name))
			return v * units[i].ns < 1e18 ? (uint64_t)(v * units[i].ns) : 0;
	return 0;
}

/* Digits; *end behind them.  False: there is none, or they say more than a number holds. */
static bool digits(const char *text, int base, uint64_t *value, const char **end)
{
	char *last;

	if (!text || *text < '0' || *text >= '0' + base)
		return false;
	errno = 0;
	*value = strtoull(text, &last, base);
	*end = last;
	return !errno;
}

static bool in_range(uint64_t n, uint64_t low, uint64_t high, uint64_t *value)
{
	if (n < low || n > high)
		return false;
	*value = n;
	return true;
}

bool fg_integer(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	const char *end;
	uint64_t n;

	return digits(text, 10, &n, &end) && !*end && in_range(n, low, high, value);
}

bool fg_octal(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	const char *end;
	uint64_t n;

	return digits(text, 8, &n, &end) && !*end && in_range(n, low, high, value);
}

bool fg_size(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	static const char units[] = "KMG";
	const char *end, *unit;
	uint64_t n;

	if (!digits(text, 10, &n, &end))
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	for (int i = 0; unit && i <= unit - units; i++) {
		if (n > UINT64_MAX / 1024)
			return false;
		n *= 1024;
	}
	return !(unit ? end[1] : *end) && in_range(n, low, high, value);
}
