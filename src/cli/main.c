/* SPDX-License-Identifier: MIT */
/* The command `flexguard`: finds the sub-command; each has a file of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/launch/embed.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
	const char *usage, *brief;
} commands[] = {
    {"run", fg_cmd_run, fg_help_run, "[options] [--] program [args...]",
     "run a program with FlexGuard's locks in place of glibc's"},
    {"doctor", fg_cmd_doctor, fg_help_doctor, "[--json] [program]",
     "say what works on this machine, and for a program"},
    {"demo", fg_cmd_demo, fg_help_demo, "[--quick] [--json[=FILE]]",
     "measure real programs, glibc's locks against FlexGuard's"},
    {"bench", fg_cmd_bench, fg_help_bench, "[--figure ID]... [-o DIR] [--quick] [--list]",
     "measure what the papers measure, and draw their figures"},
    {"locks", fg_cmd_locks, fg_help_locks, "[--json]", "what --lock can name"},
    {"monitor", fg_cmd_monitor, fg_help_monitor, "[--socket PATH] [options]",
     "serve all programs of this machine with one preemption monitor"},
    {"status", fg_cmd_status, fg_help_status, "[--json]", "the monitor and its clients"},
    {"top", fg_cmd_top, fg_help_top, "[-b] [-n N] [-d TIME] [--json]", "contended locks by process, live"},
    {"stat", fg_cmd_stat, fg_help_stat, "[-p] PID [-d TIME] [--by lock|caller] [--json]",
     "where the threads of one process wait"},
    {"metrics", fg_cmd_metrics, fg_help_metrics, "[--listen ADDRESS]", "the monitor's counts for Prometheus"},
};
#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(void)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		printf("%s flexguard %s %s\n", i ? "      " : "usage:", commands[i].name, commands[i].usage);
	puts("       flexguard help [command]\n"
	     "       flexguard --version\n");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		printf("  %-8s %s\n", commands[i].name, commands[i].brief);
}

/* "run, doctor, ..., help" */
static const char *names(void)
{
	static char list[200];
	size_t len = 0;

	for (size_t i = 0; i < NR_COMMANDS; i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s, ", commands[i].name);
	snprintf(list + len, sizeof(list) - len, "help");
	return list;
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int command(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		fg_error("which command? one of: %s (flexguard --help says more)", names());
		return FG_EXIT_OWN;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("flexguard " FG_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (!strcmp(argv[1], "help") && argc == 2)) {
		help();
		return 0;
	}
	if (!strcmp(argv[1], "help")) {
		if (!strcmp(argv[2], "help") || !strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")) {
			help();
			return 0;
		}
		c = find(argv[2]);
		if (c) {
			fputs(c->help, stdout);
			return 0;
		}
		fg_error("no command '%s'; one of: %s", argv[2], names());
		return FG_EXIT_OWN;
	}
	c = find(argv[1]);
	if (c)
		return c->main(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		fg_error("unknown option '%s'; one of: --help, --version", argv[1]);
	else
		fg_error("unknown command '%s'; one of: %s", argv[1], names());
	return FG_EXIT_OWN;
}

int main(int argc, char **argv)
{
	int status;

	if (argc == 2 && !strcmp(argv[0], FG_EMBEDDED_NAME))
		return fg_embedded_main(argv[1]);
	status = command(argc, argv);
	/* A full disk shows here at the earliest; `run` has executed the program or said its own by now. */
	errno = 0;
	if ((fflush(stdout) || ferror(stdout)) && status != FG_EXIT_OWN) {
		fg_error("cannot write the output%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
		return FG_EXIT_OWN;
	}
	return status;
}
