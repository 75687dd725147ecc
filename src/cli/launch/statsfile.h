/* SPDX-License-Identifier: MIT */
/* The file in which a program and its children count (abi/stats.h), and the report of it. */
#ifndef FG_CLI_STATSFILE_H
#define FG_CLI_STATSFILE_H

#include <stdint.h>
#include <stdio.h>

struct fg_stats;
struct fg_statsfile {
	struct fg_stats *map;
	/* To be kept open while the program runs: the directory, or a file without a name. */
	int fd;
	char dir[256]; /* "": there is none */
	char path[320];
};

int fg_statsfile_create(struct fg_statsfile *s); /* 0 or -errno */
void fg_statsfile_remove(const struct fg_statsfile *s);
struct fg_stats_report {
	const char *program;
	uint64_t took_ns;
	int wait_status;
};
void fg_stats_print(FILE *f, const struct fg_stats *s, const struct fg_stats_report *r);
void fg_stats_print_json(FILE *f, const struct fg_stats *s, const struct fg_stats_report *r);

#endif
