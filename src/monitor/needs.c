/* SPDX-License-Identifier: MIT */
#include "monitor/needs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* linux/capability.h */
#define CAP_BIT_SYS_ADMIN (1ull << 21)
#define CAP_BIT_PERFMON	  (1ull << 38)
#define CAP_BIT_BPF	  (1ull << 39)

bool fg_release_is(const char *release, int major, int minor)
{
	int have[2];

	if (sscanf(release, "%d.%d", &have[0], &have[1]) != 2)
		return false;
	return have[0] > major || (have[0] == major && have[1] >= minor);
}

bool fg_has_btf(void)
{
	return !access(FG_BTF, F_OK);
}

/* Its strings are one after the other, each behind the 0 of the last. */
bool fg_btf_names(const char *name)
{
	size_t have = 0, size = strlen(name) + 2;
	char pattern[80] = "", *all;
	int fd = open(FG_BTF, O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool found = false;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0 || size > sizeof(pattern)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	strcpy(pattern + 1, name);
	all = malloc((size_t)st.st_size);
	while (all && have < (size_t)st.st_size && n > 0) {
		n = read(fd, all + have, (size_t)st.st_size - have);
		have += n > 0 ? (size_t)n : 0;
	}
	found = all && memmem(all, have, pattern, size);
	free(all);
	close(fd);
	return found;
}

bool fg_is_locked_down(void)
{
	char line[128] = "";
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");

	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	return strstr(line, "[confidentiality]");
}

struct fg_caps fg_effective_caps(void)
{
	unsigned long long caps = ~0ull;
	char line[128];
	FILE *f = fopen("/proc/thread-self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return (struct fg_caps){.bpf = caps & CAP_BIT_BPF,
				.perfmon = caps & CAP_BIT_PERFMON,
				.admin = caps & CAP_BIT_SYS_ADMIN};
}

bool fg_caps_suffice(struct fg_caps caps)
{
	return caps.admin || (caps.bpf && caps.perfmon);
}

const char *fg_caps_missing(struct fg_caps caps)
{
	return caps.bpf ? "CAP_PERFMON" : caps.perfmon ? "CAP_BPF" : "CAP_BPF and CAP_PERFMON";
}
