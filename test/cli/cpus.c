/* SPDX-License-Identifier: MIT */
/*
 * What policies are told of the machine's CPUs where nobody says it: those of less capacity, and
 * which share a cache.  One that is off, of which sysfs says neither, is nobody's neighbour.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands/kernel_policy.h"
#include "cli/common/library.h"
#include "cli/common/message.h"
#include "cli/common/nearest.h"

static char root[] = "/tmp/fg-cpus-XXXXXX";

const char *fg_kernel_root(void)
{
	return root;
}

/* What else is in the file that is tested. */
void fg_error(const char *format, ...)
{
	(void)format;
}

const char *fg_instead(const char *word, const char *list, char *text, size_t size)
{
	(void)word, (void)list;
	return size ? text : NULL;
}

char *fg_library(const char *name, char *why, size_t size)
{
	(void)name, (void)why, (void)size;
	return NULL;
}

static void fail(const char *what, const char *text)
{
	printf("failed: %s: %s\n", what, text);
	exit(1);
}

/* A file of /sys/devices/system/cpu, and its folders; NULL: none. */
static void say(const char *file, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/%s", root, file);
	for (char *c = path + strlen(root) + 1; (c = strchr(c, '/')); c++) {
		*c = '\0';
		mkdir(path, 0700);
		*c = '/';
	}
	f = text ? fopen(path, "w") : NULL;
	if (text && !f)
		fail("cannot write", path);
	if (f) {
		fprintf(f, "%s\n", text);
		fclose(f);
	} else {
		remove(path);
	}
}

/* `shared`: of the last level; NULL: the CPU is off. */
static void say_cpu(int cpu, const char *shared, const char *capacity)
{
	const char *const own[] = {"1", "0"}, *const last[] = {"3", shared};
	char file[60];

	for (int index = 0; index < 2; index++) {
		const char *const *is = index ? last : own;

		snprintf(file, sizeof(file), "cpu%d/cache/index%d/level", cpu, index);
		say(file, shared ? is[0] : NULL);
		snprintf(file, sizeof(file), "cpu%d/cache/index%d/shared_cpu_list", cpu, index);
		say(file, shared ? is[1] : NULL);
	}
	snprintf(file, sizeof(file), "cpu%d/cpu_capacity", cpu);
	say(file, shared ? capacity : NULL);
}

static void want(const char *slow, const char *llc)
{
	const char *option[4] = {0};
	char text[8192];
	size_t n = fg_kernel_defaults(text, sizeof(text), option);

	if (n < 1 || strcmp(option[0], slow))
		fail(slow, n ? option[0] : "none");
	if (n != (llc ? 2 : 1) || (llc && strcmp(option[1], llc)))
		fail(llc ? llc : "none", n > 1 ? option[1] : "none");
}

int main(void)
{
	static const char *const shared[] = {"0-3", "0-3", "0-3", "0-3",
					     "4-7", "4-7", "4-7", "4-7"};
	char command[100];

	if (!mkdtemp(root))
		fail("no folder", root);
	say("possible", "0-7");
	want("slow=", NULL);
	for (int i = 0; i < 8; i++)
		say_cpu(i, shared[i], i < 6 ? "1024" : "400");
	want("slow=6,7", "llc=0,0,0,0,4,4,4,4");
	say_cpu(7, NULL, NULL);
	say_cpu(5, NULL, NULL);
	want("slow=6", "llc=0,0,0,0,4,5,4,7");
	say_cpu(0, NULL, NULL);
	for (int i = 1; i < 4; i++)
		say_cpu(i, "1-3", "1024");
	want("slow=6", "llc=0,1,1,1,4,5,4,7");
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command) ? 1 : 0;
}
