/* SPDX-License-Identifier: MIT */
/*
 * Messages and names: one line on stderr each, and the tables of options.h as
 * text, so that no command has a list of its own.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/options.h"
#include "cli/cli.h"
#include "zoo/table.h"

/* One line, on a terminal as many as it takes; one write(), so that lines of several processes do not mix. */
static void say(const char *fmt, va_list ap)
{
	char text[1024] = "flexguard: ", line[1400];
	size_t len = strlen(text);
	int n = vsnprintf(text + len, sizeof(text) - len, fmt, ap);

	if (n < 0)
		return;
	fg_fold(line, sizeof(line) - 1, text, 0, 2, fg_prose_columns(STDERR_FILENO));
	len = strlen(line);
	line[len++] = '\n';
	while (write(STDERR_FILENO, line, len) < 0 && errno == EINTR)
		;
}

void fg_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void fg_note(const char *fmt, ...)
{
	const char *verbose = secure_getenv(FG_VERBOSE_ENV);
	va_list ap;

	if (verbose && !strcmp(verbose, "0"))
		return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

#define X(id, name, ...) name,
static const char *const lock_name[] = {FG_LOCK_TABLE(X) ZOO_TABLE(X) ZOO_RWLOCK_TABLE(X)};
const char *const fg_policy_name[] = {FG_POLICY_TABLE(X)};
#undef X

/* Each name with ", " before it; who uses it skips the first two bytes. */
#define X(id, name, ...) ", " name
static const char locks[] = FG_LOCK_TABLE(X) ZOO_TABLE(X) ZOO_RWLOCK_TABLE(X);
static const char policies[] = FG_POLICY_TABLE(X);
#undef X

int fg_lock_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(lock_name) / sizeof(lock_name[0]); i++)
		if (!strcmp(name, lock_name[i]))
			return (int)i;
	return -1;
}

int fg_policy_by_name(const char *name)
{
	for (int i = 0; i < FG_POLICY_COUNT; i++)
		if (!strcmp(name, fg_policy_name[i]))
			return i;
	return -1;
}

const char *fg_lock_names(void)
{
	return locks + 2;
}

const char *fg_policy_names(void)
{
	return policies + 2;
}

static const char *scaled(char *buf, size_t size, double v, double step, const char *const *unit, int units)
{
	int u = 0;

	while (u < units - 1 && v >= step * 0.9995) {
		v /= step;
		u++;
	}
	/* three significant digits; whole numbers below the first step */
	snprintf(buf, size, "%.*f%s%s",
		 u == 0	     ? 0
		 : v < 9.995 ? 2
		 : v < 99.95 ? 1
			     : 0,
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

/* Bytes of the character that begins here, in UTF-8 (RFC 3629); 0: it is none. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Written longer than needed, surrogates, beyond the last. */
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
	    (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Names of programs are any bytes: what is no character becomes U+FFFD. */
void fg_json_string(FILE *f, const char *s)
{
	const unsigned char *c = (const unsigned char *)s;
	size_t n;

	putc('"', f);
	for (; *c; c += n ? n : 1) {
		n = utf8_length(c);
		if (!n)
			fputs("\\ufffd", f);
		else if (*c == '"' || *c == '\\')
			fprintf(f, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(f, "\\u%04x", *c);
		else
			fwrite(c, 1, n, f);
	}
	putc('"', f);
}

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

void fg_fd_null(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null == fd) /* it was closed */
		fcntl(fd, F_SETFD, 0);
	if (null >= 0 && null != fd) {
		dup2(null, fd);
		close(null);
	}
}

int fg_fd_high(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (fd >= 0)
		close(fd);
	return high;
}
