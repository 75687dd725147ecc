/* SPDX-License-Identifier: MIT */
#include "cli/common/arguments.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/common/nearest.h"
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

	fg_fold(folded, sizeof(folded), text, at, indent, fg_help_columns());
	fputs(folded, stdout);
}

/* Names, and below each what it is, further in. */
static void print_list(const char *list)
{
	char line[400];

	for (size_t n; *list; list += n + (list[n] == '\n')) {
		n = strcspn(list, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)n, list);
		print_folded(line, 0, (int)strspn(line, " "));
		putchar('\n');
	}
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
		print_list(o->list);
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

		fg_fold(folded, sizeof(folded), usage, indent, indent, fg_help_columns());
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

int fg_arguments_bad(const char *fmt, ...)
{
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fg_error("%s", text);
	return FG_EXIT_OWN;
}

int fg_arguments_unknown(const char *what, const char *word, const char *list)
{
	char text[800];

	return fg_arguments_bad("unknown %s '%s': %s", what, word,
				fg_instead(word, list, text, sizeof(text)));
}

static int exit_with(struct fg_arguments *a, int status)
{
	a->status = status;
	return FG_ARGUMENTS_EXIT;
}

/* "--lock NAME, -o, --option KEY=VALUE, --help"; or only "lock, option, help". */
static void list_options(const struct fg_command *c, bool whole, char *list, size_t size)
{
	char text[100];
	size_t len = 0;

	for (const struct fg_option *o = c->options; o->name && len < size; o++) {
		if (whole && o->letter)
			len += (size_t)snprintf(list + len, size - len, "-%c, ", o->letter);
		if (len < size)
			len += (size_t)snprintf(list + len, size - len, "%s, ",
						whole ? fg_option_text(o, text, sizeof(text)) :
							o->name);
	}
	if (len < size)
		snprintf(list + len, size - len, whole ? "--help" : "help");
}

static int unknown(struct fg_arguments *a, const char *what)
{
	char list[600], name[80], nearest[80];
	const char *command = a->command->name;

	if (what[0] != '-' || !what[1])
		return exit_with(a, fg_arguments_bad("'%s' is too much: see flexguard %s --help",
						     what, command));
	list_options(a->command, false, list, sizeof(list));
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(what + strspn(what, "-"), "="),
		 what + strspn(what, "-"));
	if (name[0] && name[1] && fg_nearest(name, list, nearest, sizeof(nearest)))
		return exit_with(a, fg_arguments_bad("unknown option '%s': did you mean '--%s'?",
						     what, nearest));
	if (count_of(a->command) > LIST_UP_TO)
		return exit_with(a, fg_arguments_bad("unknown option '%s': see flexguard %s --help",
						     what, command));
	list_options(a->command, true, list, sizeof(list));
	return exit_with(a, fg_arguments_bad("unknown option '%s': one of: %s", what, list));
}

static bool is_one_of(const char *value, const char *choices)
{
	size_t n = strlen(value);

	for (const char *c = choices; n && !strchr(value, '|') && c;
	     c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
		if (!strncmp(c, value, n) && (!c[n] || c[n] == '|'))
			return true;
	return false;
}

/* The option, unless it has choices and its value is none. */
static int checked(struct fg_arguments *a, int option)
{
	const struct fg_option *o = &a->command->options[option];
	char list[300], text[400];
	size_t len = 0;

	if (!o->value || !strchr(o->value, '|') || (o->optional && !a->value) ||
	    is_one_of(a->value, o->value))
		return option;
	for (const char *c = o->value; *c && len + 3 < sizeof(list); c++) {
		if (*c == '|')
			list[len++] = ',';
		list[len++] = *c == '|' ? ' ' : *c;
	}
	list[len] = '\0';
	if (!*a->value)
		return exit_with(a,
				 fg_arguments_bad("--%s has no value: one of: %s", o->name, list));
	return exit_with(a, fg_arguments_bad("unknown --%s '%s': %s", o->name, a->value,
					     fg_instead(a->value, list, text, sizeof(text))));
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
		arg = a->argv[optind - 1];
		if (optopt >= LONG && is_abbreviated(arg, longs[optopt - LONG].name))
			return unknown(a, arg);
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
		return checked(a, c - LONG);
	for (int i = 0; c != '?' && a->command->options[i].name; i++)
		if (a->command->options[i].letter == c)
			return checked(a, i);
	letter[1] = (char)optopt;
	arg = optind < a->argc ? a->argv[optind] : "";
	if (optopt && arg[0] == '-' && arg[1] == optopt && arg[2])
		return unknown(a, arg); /* -lock */
	return unknown(a, optopt && optopt < LONG ? letter : a->argv[optind - 1]);
}

bool fg_arguments_no_more(struct fg_arguments *a)
{
	if (a->next >= a->argc)
		return true;
	unknown(a, a->argv[a->next]);
	return false;
}
