/* SPDX-License-Identifier: MIT */
/* The file in which a program and its children count (abi/stats.h), and the report of it. */
#ifndef FG_CLI_STATSFILE_H
#define FG_CLI_STATSFILE_H

#include <stdio.h>

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
	uint64_t took_ns;
	int wait_status;
};
void fg_stats_print(FILE *f, const struct fg_stats *s, const struct fg_stats_report *r);
void fg_stats_print_json(FILE *f, const struct fg_stats *s, const struct fg_stats_report *r);

#endif
