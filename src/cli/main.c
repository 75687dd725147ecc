/* SPDX-License-Identifier: MIT */
/* The command `flexguard`: finds the sub-command; each has a file of its own. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
	const char *brief;
} commands[] = {
    {"run", fg_cmd_run, fg_help_run, "run a program with FlexGuard's locks in place of glibc's"},
    {"doctor", fg_cmd_doctor, fg_help_doctor, "say what works on this machine, and for a program"},
    {"monitor", fg_cmd_monitor, fg_help_monitor, "serve all programs of this machine with one preemption monitor"},
    {"demo", fg_cmd_demo, fg_help_demo, "measure real programs, glibc's locks against FlexGuard's"},
};
#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(FILE *f)
{
	fprintf(f, "usage: flexguard run [options] [--] program [args...]\n"
		   "       flexguard doctor [--json] [program]\n"
		   "       flexguard monitor [--socket PATH] [options]\n"
		   "       flexguard demo [--quick] [--json[=FILE]]\n"
		   "       flexguard help [command]\n"
		   "       flexguard --version\n\n");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].brief);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		fg_error("which command? one of: run, doctor, monitor, demo, help (flexguard --help says more)");
		return FG_EXIT_OWN;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("flexguard " FG_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (!strcmp(argv[1], "help") && argc == 2)) {
		help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "help")) {
		c = find(argv[2]);
		if (c) {
			fputs(c->help, stdout);
			return 0;
		}
		fg_error("no command '%s'; one of: run, doctor, monitor, demo", argv[2]);
		return FG_EXIT_OWN;
	}
	c = find(argv[1]);
	if (c)
		return c->main(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		fg_error("unknown option '%s'; one of: --help, --version", argv[1]);
	else
		fg_error("unknown command '%s'; one of: run, doctor, monitor, demo, help", argv[1]);
	return FG_EXIT_OWN;
}
