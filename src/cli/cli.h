/* SPDX-License-Identifier: MIT */
/*
 * What the files of the command share: the commands, the steps of `flexguard run` (find and check the target,
 * monitor, statistics, supervise), and what is in common/.
 */
#ifndef FG_CLI_H
#define FG_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "cli/common/arguments.h"
#include "cli/common/descriptors.h"
#include "cli/common/message.h"
#include "cli/common/names.h"
#include "cli/common/text.h"
#include "cli/common/units.h"

/* Exit statuses of our own, those of env(1) and of test harnesses. */
#define FG_EXIT_SKIP	 77  /* demo: packages missing */
#define FG_EXIT_OWN	 125 /* flexguard itself failed or refused */
#define FG_EXIT_NOEXEC	 126 /* found, but cannot be executed */
#define FG_EXIT_NOTFOUND 127

/* ---- commands: argv[0] is the command's name; the exit status is returned ---- */
int fg_cmd_run(int argc, char **argv);
int fg_cmd_doctor(int argc, char **argv);
int fg_cmd_demo(int argc, char **argv);
int fg_cmd_monitor(int argc, char **argv);
int fg_cmd_bench(int argc, char **argv);
int fg_cmd_locks(int argc, char **argv);
int fg_cmd_status(int argc, char **argv);
int fg_cmd_top(int argc, char **argv);
int fg_cmd_stat(int argc, char **argv);
int fg_cmd_metrics(int argc, char **argv);
/* A sentence if this lock cannot be had on this machine, or NULL. */
const char *fg_lock_unavailable(const char *name);
/* What programs on this lock must not do, or NULL. */
const char *fg_lock_caveat(const char *name);

/* ---- launch/filter.c ---- */
/* Seccomp filters of this process; 0: none, -1: the kernel does not say how many. */
int fg_filters_here(void);
/* Finds out whether the library may make its calls, and tells the program that is to be started (filter.c). */
bool fg_filters_tell(void);
/* A child of this process lives through the calls that the library makes. */
bool fg_filters_pass(void);

/* ---- target.c: the program to run ---- */
enum fg_refusal {
	FG_TARGET_OK,
	FG_TARGET_NOTFOUND,
	FG_TARGET_NOEXEC,
	FG_TARGET_SCRIPT, /* text without an interpreter */
	FG_TARGET_DAMAGED, /* ELF, and no program that the kernel could start */
	FG_TARGET_STATIC,
	FG_TARGET_SETID,
	FG_TARGET_FOREIGN,
	FG_TARGET_LIBC,
};

struct fg_target {
	char *path;    /* what to give to execve() */
	char *binary;  /* the ELF file that will run: the end of the #! chain */
	char asan[64]; /* AddressSanitizer's runtime, which wants to be loaded before us; "": none */
	bool tsan;     /* linked with ThreadSanitizer's */
	char why[512]; /* when refused: one sentence, what is wrong and what to do */
	enum fg_refusal refusal;
};

/* Search PATH as execvp(3) does, and see whether a library can be preloaded. */
void fg_target_find(struct fg_target *t, const char *name);
/*
 * Whether it judges races by glibc's lock functions, so that with ours it sees none of the locking and reports
 * races that are none: a sentence in `why`.  The arguments tell, if it is valgrind.
 */
bool fg_target_judges_glibc(const struct fg_target *t, char **argv, char *why, size_t why_size);
int fg_target_exit_status(const struct fg_target *t);
/* Path of a library of ours, or NULL with a sentence in `why`; the second: one that LD_PRELOAD can name. */
char *fg_library(const char *name, char *why, size_t why_size);
char *fg_preload_library(const char *name, char *why, size_t why_size);
#define FG_PRELOAD_NAME "libflexguard-preload.so"
#define FG_ZOO_NAME	"libflexguard-zoo.so"

/* ---- embed.c: which monitor ---- */
struct fg_embed {
	pid_t pid;   /* 0: none */
	int control; /* the monitor ends when all have closed this end of a socket */
	char socket[64];
	char secret[33]; /* FG_SECRET characters that only this program is told */
};

const char *fg_socket_path(void); /* $FLEXGUARD_SOCKET or the default */
bool fg_daemon_answers(const char *path);
/* A monitor for one program, asleep until that has a second thread, or `now`; 0, or -errno and a sentence in `why`. */
int fg_embed_start(struct fg_embed *e, bool now, char *why, size_t why_size);
void fg_embed_ended(struct fg_embed *e); /* it has been waited for: say why */
/* Ends it, unless processes are left that were told of it: then it stays as long as they do. */
void fg_embed_stop(struct fg_embed *e);

/* ---- statsfile.c ---- */
struct fg_stats;
struct fg_statsfile {
	struct fg_stats *map;
	int fd; /* of a file without a name, to be kept open while the program runs; else -1 */
	char dir[256];
	char path[320];
};

int fg_statsfile_create(struct fg_statsfile *s); /* 0 or -errno */
void fg_statsfile_remove(struct fg_statsfile *s);
struct fg_stats_report {
	const char *program;
	double seconds;
	int wait_status;
};
void fg_stats_print(FILE *f, const struct fg_stats *s, const struct fg_stats_report *r);
void fg_stats_print_json(FILE *f, const struct fg_stats *s, const struct fg_stats_report *r);

/* ---- supervise.c ---- */
/*
 * Run the target as a child, be transparent for signals and job control, and
 * return its wait status, or -errno.  `keep` are descriptors that the
 * supervisor needs itself; it closes the others, which are the program's.
 */
int fg_supervise(const struct fg_target *t, char **argv, struct fg_embed *mon, const int *keep, int nr_keep,
		 const sigset_t *mask);
/* End as the child did: same exit status or same signal. */
_Noreturn void fg_exit_like(int wait_status);
/* execve() in place; on failure says why and returns 126 or 127. */
int fg_exec(const struct fg_target *t, char **argv);

#endif
