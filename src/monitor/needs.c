/* SPDX-License-Identifier: MIT */
#include "monitor/needs.h"

#include <stdio.h>
#include <string.h>
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
	return (struct fg_caps){.bpf = caps & CAP_BIT_BPF, .perfmon = caps & CAP_BIT_PERFMON,
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
