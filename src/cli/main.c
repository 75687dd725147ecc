/* SPDX-License-Identifier: MIT */
/* The command `flexguard`: finds the sub-command; each has a file of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/launch/embed.h"
#include "cli/launch/embedded.h"

/* What runs a command of the table. */
static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} commands[] = {
    {"run", fg_cmd_run},       {"doctor", fg_cmd_doctor},   {"demo", fg_cmd_demo},
    {"bench", fg_cmd_bench},   {"locks", fg_cmd_locks},	    {"monitor", fg_cmd_monitor},
    {"status", fg_cmd_status}, {"top", fg_cmd_top},	    {"stat", fg_cmd_stat},
    {"kernel", fg_cmd_kernel}, {"metrics", fg_cmd_metrics},
};

static void help(void)
{
	for (const struct fg_command *c = fg_commands; c->name; c++)
		printf("%s flexguard %s%s%s%s\n", c == fg_commands ? "usage:" : "      ", c->name,
		       c->options[0].name ? " [options]" : "", c->operands ? " " : "",
		       c->operands ? c->operands : "");
	puts("       flexguard help [command]\n"
	     "       flexguard --version\n");
	for (const struct fg_command *c = fg_commands; c->name; c++)
		printf("  %-8s %s\n", c->name, c->brief);
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

static int command(int argc, char **argv)
{
	const struct fg_command *c;

	if (argc < 2) {
		fg_error("which command? one of: %s (flexguard --help says more)", names());
		return FG_EXIT_OWN;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("flexguard " FG_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    (!strcmp(argv[1], "help") && argc == 2)) {
		help();
		return 0;
	}
	if (!strcmp(argv[1], "help")) {
		if (!strcmp(argv[2], "help") || !strcmp(argv[2], "--help") ||
		    !strcmp(argv[2], "-h")) {
			help();
			return 0;
		}
		c = fg_command_by_name(argv[2]);
		if (c) {
			fg_command_help(c);
			return 0;
		}
		fg_error("no command '%s'; one of: %s", argv[2], names());
		return FG_EXIT_OWN;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, argv[1]))
			return commands[i].main(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		fg_error("unknown option '%s'; one of: --help, --version", argv[1]);
	else
		fg_error("unknown command '%s'; one of: %s", argv[1], names());
	return FG_EXIT_OWN;
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
	return fg_cmd_kernel(argc, argv);
}

int main(int argc, char **argv)
{
	int status;

	if (argc == 2 && !strcmp(argv[0], FG_EMBEDDED_NAME))
		return fg_embedded_main(argv[1]);
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
