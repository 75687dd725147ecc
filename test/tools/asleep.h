/* SPDX-License-Identifier: MIT */
/* Does a thread sleep, as far as the kernel is concerned? */
#ifndef ASLEEP_H
#define ASLEEP_H

#include <stdbool.h>

#include "check.h"

/* The state behind the name in /proc/self/task/TID/stat.  False also if it has ended by now. */
static inline bool is_asleep(int tid)
{
	char path[64], line[256] = "", *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	at = strrchr(line, ')');
	return at && at[2] == 'S';
}

#endif
