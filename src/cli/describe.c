/* SPDX-License-Identifier: MIT */
/*
 * Run while FlexGuard is built: makes of the table of commands (common/table.h)
 *   describe bash|zsh|fish          the completion for that shell
 *   describe man COMMAND < PAGE     the page with its synopsis in place of the line @SYNOPSIS@
 *                                   (scdoc(5));
 *                                   COMMAND flexguard: all of them
 */
#include <stdio.h>
#include <string.h>

#include "cli/common/table.h"

/* How each shell finds them. */
#define LOCKS	 "$(flexguard locks 2>/dev/null | awk 'NR > 2 {print $1}')"
#define FIGURES	 "$(flexguard bench --list 2>/dev/null | awk 'NR > 1 && /^ *[a-z]/ {print $1}')"
#define POLICIES "$(flexguard kernel list 2>/dev/null | awk 'NR > 1 && /^[a-z]/ {print $1}')"
#define PIDS	 "$(cd /proc && echo [0-9]*)"

static void each(const char *list, const char *format)
{
	size_t n;

	for (; *list; list += n + (list[n] == '|')) {
		n = strcspn(list, "|");
		printf(format, (int)n, list);
	}
}

static int is_choice(const struct fg_option *o)
{
	return o->value && strchr(o->value, '|');
}

/* `text` inside '...', for zsh with what _arguments takes for itself behind a backslash. */
static void quoted(const char *text, const char *escaped)
{
	for (; *text && *text != '\n'; text++)
		if (*text == '\'')
			printf("'\\''");
		else
			printf("%s%c", strchr(escaped, *text) ? "\\" : "", *text);
}

/* ---- bash ------------------------------------------------------------------------- */

static void bash_offer(enum fg_complete offer)
{
	static const char *const how[] = {
	    [FG_OFFER_NOTHING] = "",
	    [FG_OFFER_FILES] = "-f",
	    [FG_OFFER_USERS] = "-u",
	    [FG_OFFER_PROGRAMS] = "-c",
	    [FG_OFFER_PIDS] = "-W \"" PIDS "\"",
	    [FG_OFFER_LOCKS] = "-W \"" LOCKS "\"",
	    [FG_OFFER_FIGURES] = "-W \"" FIGURES "\"",
	    [FG_OFFER_POLICIES] = "-f -W \"" POLICIES "\"",
	};

	if (offer == FG_OFFER_NOTHING) {
		printf(":");
		return;
	}
	/* Folders get a slash and no blank behind them; not programs of the same name. */
	if (offer == FG_OFFER_PROGRAMS)
		printf("[[ $cur != */* ]] || ");
	if (offer == FG_OFFER_PROGRAMS || offer == FG_OFFER_FILES || offer == FG_OFFER_POLICIES)
		printf("compopt -o filenames 2>/dev/null; ");
	printf("mapfile -t COMPREPLY < <(compgen %s -- \"$cur\")", how[offer]);
}

static void bash_names(const struct fg_option *o)
{
	if (o->letter)
		printf("-%c | ", o->letter);
	printf("--%s", o->name);
}

static void bash_command(const struct fg_command *c)
{
	int values = 0;

	printf("\t%s)\n", c->name);
	if (c->stops && c->operands) {
		printf(
		    "\t\t# behind the options, the program's own completion\n"
		    "\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n\t\t\tcase ${COMP_WORDS[i]} in\n\t\t\t");
		for (const struct fg_option *o = c->options; o->name; o++)
			if (o->value && !o->optional) {
				printf("%s", values++ ? " | " : "");
				bash_names(o);
			}
		printf(
		    ") [[ ${COMP_WORDS[i + 1]} == = ]] || ((i++)) ;;\n\t\t\t=) ((i++)) ;;\n"
		    "\t\t\t--) ((i++)); break ;;\n\t\t\t-*) ;;\n\t\t\t*) break ;;\n\t\t\tesac\n\t\tdone\n"
		    "\t\tif ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then\n"
		    "\t\t\t_command_offset \"$i\"\n\t\t\treturn\n\t\tfi\n");
	}
	printf("\t\tcase $prev in\n");
	for (const struct fg_option *o = c->options; o->name; o++) {
		if (!o->value)
			continue;
		printf("\t\t");
		if (!o->optional) {
			bash_names(o);
			printf(" | ");
		}
		printf("--%s=", o->name);
		printf(") ");
		if (is_choice(o)) {
			printf("mapfile -t COMPREPLY < <(compgen -W '");
			each(o->value, "%.*s ");
			printf("' -- \"$cur\")");
		} else {
			bash_offer(o->offer);
		}
		printf(" ;;\n");
	}
	printf("\t\t*)\n\t\t\tcase $cur in\n\t\t\t%s) mapfile -t COMPREPLY < <(compgen -W '",
	       c->operands ? "-*" : "*");
	for (const struct fg_option *o = c->options; o->name; o++) {
		if (o->letter)
			printf("-%c ", o->letter);
		printf("--%s ", o->name);
		if (o->optional)
			printf("--%s= ", o->name);
	}
	printf("--help%s' -- \"$cur\") ;;\n", c->stops && c->operands ? " --" : "");
	if (c->operands) {
		printf("\t\t\t*) ");
		if (c->verbs) {
			printf(
			    "if ((COMP_CWORD == 2)); then mapfile -t COMPREPLY < <(compgen -W '");
			each(c->verbs, "%.*s ");
			printf("' -- \"$cur\"); else ");
		}
		bash_offer(c->offer);
		if (c->verbs)
			printf("; fi");
		printf(" ;;\n");
	}
	printf("\t\t\tesac ;;\n\t\tesac ;;\n");
}

static void bash(void)
{
	printf(
	    "# SPDX-License-"
	    "Identifier: MIT\n# bash completion for flexguard, made from src/cli/common/table.c\n"
	    "_flexguard()\n{\n"
	    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} cmd=${COMP_WORDS[1]} i\n"
	    "\tlocal commands='");
	for (const struct fg_command *c = fg_commands; c->name; c++)
		printf("%s ", c->name);
	printf(
	    "'\n\n\tCOMPREPLY=()\n"
	    "\t# --option=value comes as three words\n"
	    "\tif [[ $cur == = ]]; then\n\t\tcur= prev+='='\n"
	    "\telif [[ $prev == = ]] && ((COMP_CWORD > 2)); then\n"
	    "\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}=\n\tfi\n"
	    "\tif ((COMP_CWORD == 1)); then\n"
	    "\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands help --help --version -h -V\" -- \"$cur\")\n"
	    "\t\treturn\n\tfi\n\tcase $cmd in\n"
	    "\thelp) mapfile -t COMPREPLY < <(compgen -W \"$commands --help\" -- \"$cur\") ;;\n");
	for (const struct fg_command *c = fg_commands; c->name; c++)
		bash_command(c);
	printf("\tesac\n}\ncomplete -F _flexguard flexguard\n");
	printf(
	    "_syncord()\n{\n\tCOMP_WORDS=(flexguard kernel \"${COMP_WORDS[@]:1}\")\n\t((++COMP_CWORD))\n"
	    "\t_flexguard\n}\ncomplete -F _syncord syncord\n");
}

/* ---- zsh -------------------------------------------------------------------------- */

static const char *zsh_action(enum fg_complete offer)
{
	static const char *const action[] = {
	    [FG_OFFER_NOTHING] = " ",
	    [FG_OFFER_FILES] = "_files",
	    [FG_OFFER_USERS] = "_users",
	    [FG_OFFER_PROGRAMS] = "_command_names -e",
	    [FG_OFFER_PIDS] = "_pids",
	    [FG_OFFER_LOCKS] =
		"compadd -- ${(f)\"$(flexguard locks 2>/dev/null | awk '\\''NR > 2 {print $1}'\\'')\"}",
	    [FG_OFFER_FIGURES] =
		"compadd -- ${(f)\"$(flexguard bench --list 2>/dev/null | awk '\\''NR > 1 && /^ *[a-z]/ {print $1}'\\'')\"}",
	    [FG_OFFER_POLICIES] =
		"{compadd -- ${(f)\"$(flexguard kernel list 2>/dev/null | awk '\\''NR > 1 && /^[a-z]/ {print $1}'\\'')\"}; _files}",
	};

	return action[offer];
}

static void zsh_value(const struct fg_option *o)
{
	printf("%s%s:", o->optional ? "::" : ":", is_choice(o) ? "choice" : o->value);
	if (is_choice(o)) {
		putchar('(');
		each(o->value, "%.*s ");
		putchar(')');
	} else {
		printf("%s", zsh_action(o->offer));
	}
}

static void zsh_option(const struct fg_option *o, char letter)
{
	printf(" \\\n\t\t\t'%s", o->repeated ? "*" : "");
	if (letter)
		printf("-%c%s", letter, o->value ? "+" : "");
	else
		printf("--%s%s", o->name, !o->value ? "" : o->optional ? "=-" : "=");
	if (o->help) {
		putchar('[');
		quoted(o->help, "[]:");
		putchar(']');
	}
	if (o->value)
		zsh_value(o);
	putchar('\'');
}

static void zsh(void)
{
	printf("#compdef flexguard syncord\n# SPDX-License-"
	       "Identifier: MIT\n# made from src/cli/common/table.c\n"
	       "_flexguard()\n{\n\tlocal -a subcommands\n"
	       "\tif [[ $service == syncord ]]; then\n"
	       "\t\twords=(flexguard kernel \"${(@)words[2,-1]}\")\n\t\t((CURRENT++))\n\tfi\n"
	       "\tsubcommands=(\n");
	for (const struct fg_command *c = fg_commands; c->name; c++) {
		printf("\t\t'%s:", c->name);
		quoted(c->brief, ":");
		printf("'\n");
	}
	printf("\t\t'help:say what a command does'\n\t)\n\tif ((CURRENT == 2)); then\n"
	       "\t\t_describe command subcommands\n\t\treturn\n\tfi\n"
	       "\tshift words\n\t((CURRENT--))\n\tcase $words[1] in\n"
	       "\thelp) _describe command subcommands ;;\n");
	for (const struct fg_command *c = fg_commands; c->name; c++) {
		printf("\t%s)\n\t\t_arguments -S '(- *)--help[say what it does]'", c->name);
		for (const struct fg_option *o = c->options; o->name; o++) {
			if (o->letter)
				zsh_option(o, o->letter);
			zsh_option(o, 0);
		}
		if (c->operands && c->stops)
			/* Behind -- the words begin with it. */
			printf(" \\\n\t\t\t'(-)1:program:_command_names -e'"
			       " \\\n\t\t\t'*::arguments:{[[ $words[1] == -- ]] && shift words && "
			       "((CURRENT--)); _normal}'");
		else if (c->verbs) {
			printf(" \\\n\t\t\t'1:what:(");
			each(c->verbs, "%.*s ");
			printf(")' '*:policy or lock:%s'", zsh_action(c->offer));
		} else if (c->operands)
			printf(" \\\n\t\t\t'1:%s:%s'",
			       c->offer == FG_OFFER_PIDS ? "process" : "program",
			       zsh_action(c->offer));
		printf(" ;;\n");
	}
	printf("\tesac\n}\n_flexguard \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------- */

static const char *fish_offer(enum fg_complete offer)
{
	static const char *const how[] = {
	    [FG_OFFER_NOTHING] = " -x",
	    [FG_OFFER_FILES] = " -r -F",
	    [FG_OFFER_USERS] = " -x -a '(__fish_complete_users)'",
	    [FG_OFFER_PROGRAMS] = " -x -a '(__fish_complete_command)'",
	    [FG_OFFER_PIDS] = " -x -a '(__fish_complete_pids)'",
	    [FG_OFFER_LOCKS] =
		" -x -a '(flexguard locks 2>/dev/null | awk \"NR > 2 {print \\$1}\")'",
	    [FG_OFFER_FIGURES] =
		" -x -a '(flexguard bench --list 2>/dev/null | awk \"NR > 1 && /^ *[a-z]/ {print \\$1}\")'",
	    [FG_OFFER_POLICIES] =
		" -a '(flexguard kernel list 2>/dev/null | awk \"NR > 1 && /^[a-z]/ {print \\$1}\")'",
	};

	return how[offer];
}

/* In the place of the first operand one of them; behind it what they take. */
static void fish_verbs(const struct fg_command *c)
{
	for (int behind = 0; behind < 2; behind++) {
		printf("complete -c flexguard -n '__fish_seen_subcommand_from %s; and %s"
		       "__fish_seen_subcommand_from ",
		       c->name, behind ? "" : "not ");
		each(c->verbs, "%.*s ");
		printf("'");
		if (behind) {
			printf("%s", fish_offer(c->offer));
		} else {
			printf(" -f -a '");
			each(c->verbs, "%.*s ");
			printf("'");
		}
		printf("\n");
	}
}

static void fish(void)
{
	printf(
	    "# SPDX-License-"
	    "Identifier: MIT\n# fish completion for flexguard, made from src/cli/common/table.c\n"
	    "complete -c flexguard -n __fish_use_subcommand -f\n"
	    "complete -c flexguard -n __fish_use_subcommand -l version -s V -d 'its version'\n"
	    "complete -c flexguard -n __fish_use_subcommand -a help -d 'say what a command does'\n"
	    "complete -c syncord -w 'flexguard kernel'\n");
	for (const struct fg_command *c = fg_commands; c->name; c++) {
		printf("complete -c flexguard -n __fish_use_subcommand -a %s -d '", c->name);
		quoted(c->brief, "");
		printf("'\n");
	}
	printf("complete -c flexguard -n '__fish_seen_subcommand_from help' -f -a '");
	for (const struct fg_command *c = fg_commands; c->name; c++)
		printf("%s ", c->name);
	printf("'\n");
	for (const struct fg_command *c = fg_commands; c->name; c++) {
		char when[80];

		snprintf(when, sizeof(when),
			 "complete -c flexguard -n '__fish_seen_subcommand_from %s'", c->name);
		printf("%s -l help -s h -d 'say what it does'\n", when);
		if (c->verbs) {
			fish_verbs(c);
		} else if (c->operands && c->stops) {
			printf("%s -x -a '(__fish_complete_subcommand --fcs-skip=2", when);
			for (const struct fg_option *o = c->options; o->name; o++)
				if (o->value && !o->optional)
					printf(" --%s", o->name);
			printf(")'\n");
		} else if (c->operands)
			printf("%s%s\n", when, fish_offer(c->offer));
		else
			printf("%s -f\n", when);
		for (const struct fg_option *o = c->options; o->name; o++) {
			printf("%s -l %s", when, o->name);
			if (o->letter)
				printf(" -s %c", o->letter);
			if (is_choice(o)) {
				printf(" -x -a '");
				each(o->value, "%.*s ");
				putchar('\'');
			} else if (o->value && !o->optional) {
				printf("%s", fish_offer(o->offer));
			}
			if (o->help) {
				printf(" -d '");
				quoted(o->help, "");
				putchar('\'');
			}
			putchar('\n');
		}
	}
}

/* ---- scdoc ------------------------------------------------------------------------ */

/* Words of capitals are what the user puts in. */
static void value(const char *text)
{
	int name = *text >= 'A' && *text <= 'Z';

	printf(name ? "_%s_" : "%s", text);
}

static void synopsis(const struct fg_command *c)
{
	printf("*flexguard %s*", c->name);
	if (c->verbs)
		printf(" _verb_");
	for (const struct fg_option *o = c->options; o->name; o++) {
		printf(" [");
		if (o->letter)
			printf("-%c|", o->letter);
		printf("--%s%s", o->name, !o->value ? "" : o->optional ? "[=" : " ");
		if (o->value)
			value(is_choice(o) && strlen(o->value) >= 16 ? "NAME" : o->value);
		printf("%s]%s", o->optional ? "]" : "", o->repeated ? "..." : "");
	}
	if (c->operands && c->stops)
		printf(" [--] _program_ [_args_...]");
	else if (c->verbs)
		printf(" [_operand_...]");
	else if (c->operands)
		printf(c->operands[0] == '[' ? " [_program_]" : " _%s_", c->operands);
}

static int man(const char *name)
{
	char line[1000];

	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "@SYNOPSIS@\n")) {
			fputs(line, stdout);
			continue;
		}
		for (const struct fg_command *c = fg_commands; c->name; c++)
			if (!strcmp(name, c->name) || !strcmp(name, "flexguard")) {
				synopsis(c);
				printf("%s\n", !strcmp(name, "flexguard") ? "++" : "");
			}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "man"))
		return man(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "bash"))
		bash();
	else if (argc == 2 && !strcmp(argv[1], "zsh"))
		zsh();
	else if (argc == 2 && !strcmp(argv[1], "fish"))
		fish();
	else
		return 2;
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
