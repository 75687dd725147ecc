/* SPDX-License-Identifier: MIT */
/* The program to run. */
#ifndef FG_CLI_TARGET_H
#define FG_CLI_TARGET_H

#include <stdbool.h>
#include <stddef.h>

enum fg_refusal {
	FG_TARGET_OK,
	FG_TARGET_NOTFOUND,
	FG_TARGET_NOEXEC,
	FG_TARGET_SCRIPT,  /* text without an interpreter */
	FG_TARGET_DAMAGED, /* ELF, and no program that the kernel could start */
	FG_TARGET_STATIC,
	FG_TARGET_SETID,
	FG_TARGET_ARCHITECTURE,
	FG_TARGET_LIBC,
};

struct fg_target {
	char *path;   /* what to give to execve() */
	char *binary; /* the ELF file that will run: the end of the #! chain */
	/* AddressSanitizer's runtime, which wants to be loaded before us; "": none */
	char asan[64];
	bool tsan;     /* linked with ThreadSanitizer's */
	char why[512]; /* when refused: one sentence, what is wrong and what to do */
	enum fg_refusal refusal;
};

/* Search PATH as execvp(3) does, and see whether a library can be preloaded. */
void fg_target_find(struct fg_target *t, const char *name);
/*
 * Whether it judges races by glibc's lock functions, so that with ours it sees none of the locking
 * and reports races that are none: a sentence in `why`.  The arguments tell, if it is valgrind.
 */
bool fg_target_judges_glibc(const struct fg_target *t, char **argv, char *why, size_t why_size);
int fg_target_exit_status(const struct fg_target *t);

#endif
