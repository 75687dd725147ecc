/* SPDX-License-Identifier: MIT */
#include "cli/common/arguments.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/common/text.h"

#define MAX_OPTIONS 24	/* of a command: more than any has */
#define LONG	    256 /* val of the first option of the table, above all letters */
#define HELP	    (LONG + MAX_OPTIONS)
#define LIST_UP_TO  8 /* options that fit into an error's line */
#define HELP_COLUMN 26

const struct fg_command *fg_command_by_name(const char *name)
{
	const struct fg_command *c = fg_commands;

	while (c->name && strcmp(c->name, name))
		c++;
	return c->name ? c : NULL;
}

const char *fg_option_text(const struct fg_option *o, char *text, size_t size)
{
	const char *value = o->value && strlen(o->value) < 16 ? o->value : "NAME";

	snprintf(text, size, "--%s%s%s%s", o->name,
		 !o->value   ? "" :
		 o->optional ? "[=" :
			       " ",
		 o->value ? value : "", o->optional ? "]" : "");
	return text;
}

static size_t count_of(const struct fg_command *c)
{
	size_t n = 0;

	while (c->options[n].name)
		n++;
	return n;
}

/* ---- help -------------------------------------------------------------------------- */

static void print_folded(const char *text, int at, int indent)
{
	char folded[2000];

	fg_fold(folded, sizeof(folded), text, at, indent, PROSE_COLUMNS);
	fputs(folded, stdout);
}

static void print_option(const struct fg_option *o, int width)
{
	char text[100], line[120];
	int at;

	snprintf(line, sizeof(line), o->letter ? "  -%c, %s" : "  %.0d%s", o->letter,
		 fg_option_text(o, text, sizeof(text)));
	at = printf("%-*s", width, line);
	if (at > width || at < (int)strlen(line) + 2) {
		putchar('\n');
		at = printf("%*s", width, "");
	}
	print_folded(o->help, at, width);
	putchar('\n');
	if (o->list)
		fputs(o->list, stdout);
}

void fg_command_help(const struct fg_command *c)
{
	char usage[600], text[100];
	int indent = printf("usage: flexguard %s ", c->name), width = 0;
	size_t len = 0;

	/* No line is broken inside an option. */
	for (const struct fg_option *o = c->options; o->name; o++) {
		int n;

		fg_option_text(o, text, sizeof(text));
		n = (int)strlen(text) + (o->letter ? 4 : 0) + 4;
		width = n > width ? n : width;
		len += (size_t)snprintf(usage + len, sizeof(usage) - len, "[%s]%s ", text,
					o->repeated ? "..." : "");
	}
	if (c->operands)
		len += (size_t)snprintf(usage + len, sizeof(usage) - len, "%s", c->operands);
	if (len && usage[len - 1] == ' ')
		usage[--len] = '\0';
	for (char *p = usage; (p = strchr(p, ' ')); p++) /* spaces in brackets stay together */
		for (const char *q = p; q > usage && *q != ']'; q--)
			if (*q == '[' && p[1] != '[') {
				*p = '\1';
				break;
			}
	{
		char folded[900];

		fg_fold(folded, sizeof(folded), usage, indent, indent, PROSE_COLUMNS);
		for (char *p = folded; *p; p++)
			putchar(*p == '\1' ? ' ' : *p);
	}
	fputs("\n\n", stdout);
	print_folded(c->about, 0, 0);
	fputs(c->options[0].help ? "\n\n" : "\n", stdout);
	width = width > HELP_COLUMN ? HELP_COLUMN : width;
	for (const struct fg_option *o = c->options; o->name && o->help; o++)
		print_option(o, width);
	if (c->after) {
		if (c->options[0].help)
			putchar('\n');
		print_folded(c->after, 0, 0);
		putchar('\n');
	}
}

/* ---- reading ------------------------------------------------------------------------ */

struct fg_arguments fg_arguments(int argc, char **argv)
{
	optind = 0; /* glibc: begin again */
	opterr = 0;
	return (struct fg_arguments){
	    .argc = argc, .argv = argv, .command = fg_command_by_name(argv[0])};
}

int fg_arguments_bad(const struct fg_arguments *a, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fg_error("%s: %s", a->command->name, text);
	return FG_EXIT_OWN;
}

static int exit_with(struct fg_arguments *a, int status)
{
	a->status = status;
	return FG_ARGUMENTS_EXIT;
}

static int unknown(struct fg_arguments *a, const char *what)
{
	char list[400] = "", text[100];
	size_t len = 0;

	if (count_of(a->command) > LIST_UP_TO)
		return exit_with(
		    a,
		    fg_arguments_bad(a, "unknown option or argument '%s'; see flexguard %s --help",
				     what, a->command->name));
	for (const struct fg_option *o = a->command->options; o->name; o++) {
		fg_option_text(o, text, sizeof(text));
		if (o->letter)
			len += (size_t)snprintf(list + len, sizeof(list) - len, "-%c, ", o->letter);
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s, ", text);
	}
	return exit_with(a,
			 fg_arguments_bad(a, "unknown option '%s'; one of: %s--help", what, list));
}

static void describe(const struct fg_command *c, struct option *longs, char *shorts)
{
	size_t n = 0;

	/*
	 * What is missing is reported by ':', and said by the command, which knows what it wants.
	 */
	if (c->stops)
		*shorts++ = '+';
	*shorts++ = ':';
	*shorts++ = 'h';
	for (; c->options[n].name && n < MAX_OPTIONS; n++) {
		const struct fg_option *o = &c->options[n];
		int has = !o->value   ? no_argument :
			  o->optional ? optional_argument :
					required_argument;

		longs[n] = (struct option){o->name, has, NULL, LONG + (int)n};
		if (!o->letter)
			continue;
		*shorts++ = o->letter;
		if (has != no_argument)
			*shorts++ = ':';
	}
	*shorts = '\0';
	longs[n] = (struct option){"help", no_argument, NULL, HELP};
	longs[n + 1] = (struct option){0};
}

/*
 * getopt_long() takes --pol for --policy; scripts that do so would break with the next option.  So
 * it is none.
 */
static bool is_abbreviated(const char *arg, const char *name)
{
	return strcspn(arg + 2, "=") != strlen(name);
}

int fg_arguments_next(struct fg_arguments *a)
{
	struct option longs[MAX_OPTIONS + 2];
	char shorts[3 * MAX_OPTIONS + 4], letter[3] = "-?";
	const char *arg;
	int which = -1, c;

	describe(a->command, longs, shorts);
	c = getopt_long(a->argc, a->argv, shorts, longs, &which);
	a->value = optarg;
	a->next = optind;
	if (c == -1)
		return FG_ARGUMENTS_END;
	if (c == ':') { /* its value is missing */
		c = optopt;
		a->value = "";
	} else if (which >= 0) {
		arg = a->argv[optind - (optarg && optarg == a->argv[optind - 1] ? 2 : 1)];
		if (is_abbreviated(arg, longs[which].name))
			return unknown(a, arg);
	}
	if (c == 'h' || c == HELP) {
		fg_command_help(a->command);
		return exit_with(a, 0);
	}
	if (c >= LONG && c < HELP)
		return c - LONG;
	for (int i = 0; c != '?' && a->command->options[i].name; i++)
		if (a->command->options[i].letter == c)
			return i;
	letter[1] = (char)optopt;
	return unknown(a, optopt && optopt < LONG ? letter : a->argv[optind - 1]);
}

bool fg_arguments_no_more(struct fg_arguments *a)
{
	if (a->next >= a->argc)
		return true;
	unknown(a, a->argv[a->next]);
	return false;
}
