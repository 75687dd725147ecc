/* SPDX-License-Identifier: MIT */
/* The command `flexguard`: finds the sub-command; each has a file of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/common/arguments.h"
#include "cli/common/descriptors.h"
#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/common/nearest.h"
#include "cli/common/text.h"
#include "cli/launch/embed.h"
#include "cli/launch/embedded.h"
#include "cli/launch/inherit.h"

/* What runs a command of the table. */
static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} commands[] = {
    {"run", fg_cmd_run},       {"doctor", fg_cmd_doctor}, {"demo", fg_cmd_demo},
    {"bench", fg_cmd_bench},   {"locks", fg_cmd_locks},	  {"monitor", fg_cmd_monitor},
    {"status", fg_cmd_status}, {"top", fg_cmd_top},	  {"stat", fg_cmd_stat},
    {"kernel", fg_cmd_kernel}, {"sched", fg_cmd_sched},	  {"metrics", fg_cmd_metrics},
};

static void help(void)
{
	char text[200], folded[300];

	for (const struct fg_command *c = fg_commands; c->name; c++)
		printf("%s flexguard %s%s%s%s\n", c == fg_commands ? "usage:" : "      ", c->name,
		       c->options[0].name ? " [options]" : "", c->operands ? " " : "",
		       c->operands ? c->operands : "");
	puts("       flexguard help [command]\n"
	     "       flexguard --version\n");
	for (const struct fg_command *c = fg_commands; c->name; c++) {
		snprintf(text, sizeof(text), "  %-8s %s", c->name, c->brief);
		fg_fold(folded, sizeof(folded), text, 0, 11, fg_help_columns());
		puts(folded);
	}
}

/* "run, doctor, ..., help" */
static const char *names(void)
{
	static char list[200];
	size_t len = 0;

	for (const struct fg_command *c = fg_commands; c->name; c++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s, ", c->name);
	snprintf(list + len, sizeof(list) - len, "help");
	return list;
}

static bool has_verb(const struct fg_command *c, const char *verb)
{
	size_t n = strlen(verb);

	for (const char *v = c->verbs; v && n; v = strchr(v, '|') ? strchr(v, '|') + 1 : NULL)
		if (!strncmp(v, verb, n) && (!v[n] || v[n] == '|'))
			return true;
	return false;
}

static bool has_option(const struct fg_command *c, const char *word)
{
	size_t n = strcspn(word, "=");

	for (const struct fg_option *o = c->options; o->name; o++)
		if (n > 2 && strlen(o->name) == n - 2 && !strncmp(o->name, word + 2, n - 2))
			return true;
	return false;
}

static int unknown_option(const char *word)
{
	for (const struct fg_command *c = fg_commands; c->name; c++)
		if (!strncmp(word, "--", 2) && has_option(c, word)) {
			fg_error("unknown option '%s': behind its command, flexguard %s %s?", word,
				 c->name, word);
			return FG_EXIT_OWN;
		}
	return fg_arguments_unknown("option", word, "--help, --version");
}

static int unknown_command(const char *word)
{
	char nearest[80];

	if (strchr(word, '/')) {
		fg_error("unknown command '%s': a program is run by flexguard run %s", word, word);
		return FG_EXIT_OWN;
	}
	for (const struct fg_command *c = fg_commands; c->name; c++)
		if (has_verb(c, word) && !fg_nearest(word, names(), nearest, sizeof(nearest))) {
			fg_error("unknown command '%s': did you mean flexguard %s %s?", word,
				 c->name, word);
			return FG_EXIT_OWN;
		}
	return fg_arguments_unknown("command", word, names());
}

static int too_much(const char *word)
{
	fg_error("'%s' is too much: see flexguard --help", word);
	return FG_EXIT_OWN;
}

static int help_of(const char *word)
{
	const struct fg_command *c = fg_command_by_name(word);

	if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h"))
		help();
	else if (c)
		fg_command_help(c);
	else
		return unknown_command(word);
	return 0;
}

static int command(int argc, char **argv)
{
	if (argc < 2) {
		fg_error("no command: one of: %s (flexguard --help says more)", names());
		return FG_EXIT_OWN;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		if (argc > 2)
			return too_much(argv[2]);
		puts("flexguard " FG_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], "help"))
		return argc > 3 ? too_much(argv[3]) : help_of(argc > 2 ? argv[2] : "help");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return argc > 2 ? too_much(argv[2]) : help_of("help");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, argv[1])) {
			fg_messages_of(commands[i].name);
			if (commands[i].main != fg_cmd_run) /* the program finds them closed */
				fg_fds_reserve();
			return commands[i].main(argc - 1, argv + 1);
		}
	return argv[1][0] == '-' ? unknown_option(argv[1]) : unknown_command(argv[1]);
}

/* `syncord attach ...`, a link to this program, is `flexguard kernel attach ...`. */
static bool is_syncord(const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	return name && !strcmp(slash ? slash + 1 : name, "syncord");
}

static int syncord(int argc, char **argv)
{
	static char kernel[] = "kernel";

	if (argc == 2 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
		puts("syncord, of flexguard " FG_VERSION);
		return 0;
	}
	argv[0] = kernel;
	fg_messages_of("kernel");
	fg_fds_reserve();
	return fg_cmd_kernel(argc, argv);
}

int main(int argc, char **argv)
{
	int status;

	if (argc == 2 && !strcmp(argv[0], FG_EMBEDDED_NAME))
		return fg_embedded_main(argv[1]);
	fg_inherit_not_sigchld(); /* first: most commands have children, by which they go on */
	status = is_syncord(argv[0]) ? syncord(argc, argv) : command(argc, argv);
	/*
	 * A full disk shows here at the earliest; `run` has executed the program or said its own by
	 * now.
	 */
	errno = 0;
	if ((fflush(stdout) || ferror(stdout)) && status != FG_EXIT_OWN) {
		fg_error("cannot write the output%s%s", errno ? ": " : "",
			 errno ? strerror(errno) : "");
		return FG_EXIT_OWN;
	}
	return status;
}
