/* SPDX-License-Identifier: MIT */
#include "cli/common/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/options.h"
#include "cli/common/exit.h"
#include "cli/common/text.h"

static const char *speaker;

void fg_messages_of(const char *command)
{
	speaker = command;
}

/*
 * One line, on a terminal as many as it takes; one write(), so that lines of several processes do
 * not mix.
 */
static void say(const char *fmt, va_list ap)
{
	char text[1024], line[1400];
	size_t len = (size_t)snprintf(text, sizeof(text), "flexguard%s%s: ", speaker ? " " : "",
				      speaker ? speaker : "");

	if (vsnprintf(text + len, sizeof(text) - len, fmt, ap) < 0)
		return;
	fg_make_printable(text); /* and it is one line */
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

int fg_refused(int err, const char *why)
{
	fg_error("%s", why);
	return fg_exit_of(err);
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
