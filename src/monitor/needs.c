/* SPDX-License-Identifier: MIT */
#include "monitor/needs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
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

/*
 * Its strings are one after the other, each behind the 0 of the last.  Some megabytes, a piece at a
 * time: a process with little memory is not to take its kernel for another one.
 */
bool fg_btf_names(const char *name)
{
	char piece[16384], pattern[80] = "";
	size_t size = strlen(name) + 2, have = 0;
	int fd = open(FG_BTF, O_RDONLY | O_CLOEXEC);
	bool found = false;
	ssize_t n;

	if (fd < 0 || size > sizeof(pattern)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	strcpy(pattern + 1, name);
	while (!found && (n = read(fd, piece + have, sizeof(piece) - have)) > 0) {
		have += (size_t)n;
		found = memmem(piece, have, pattern, size);
		/* The end may be the beginning of it. */
		if (have >= size) {
			memmove(piece, piece + have - (size - 1), size - 1);
			have = size - 1;
		}
	}
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

unsigned long long fg_thread_status(const char *field, int base, unsigned long long otherwise)
{
	unsigned long long value = otherwise;
	size_t n = strlen(field);
	char line[128];
	FILE *f = fopen("/proc/thread-self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, n) && line[n] == ':') {
			value = strtoull(line + n + 1, NULL, base);
			break;
		}
	if (f)
		fclose(f);
	return value;
}

struct fg_caps fg_effective_caps(void)
{
	unsigned long long caps = fg_thread_status("CapEff", 16, ~0ull);

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

int fg_need_release(const char *release, char *why, size_t size)
{
	if (fg_release_is(release, FG_OLDEST_MAJOR, FG_OLDEST_MINOR))
		return 0;
	snprintf(why, size, "eBPF is used on Linux %d.%d and later, and this is %s",
		 FG_OLDEST_MAJOR, FG_OLDEST_MINOR, release);
	return -ENOTSUP;
}

int fg_need(enum fg_need need, char *why, size_t size)
{
	struct fg_caps caps;
	struct utsname u;

	switch (need) {
	case FG_NEED_RELEASE: uname(&u); return fg_need_release(u.release, why, size);
	case FG_NEED_BTF:
		if (fg_has_btf())
			return 0;
		snprintf(why, size,
			 "the kernel has no type information (" FG_BTF
			 "): it needs CONFIG_DEBUG_INFO_BTF=y%s",
			 access("/sys/kernel", F_OK) ? ", or /sys is not mounted" : "");
		return -ENOTSUP;
	case FG_NEED_CAPS:
		caps = fg_effective_caps();
		if (fg_caps_suffice(caps))
			return 0;
		snprintf(why, size, "no permission to load eBPF programs: run as root or grant %s",
			 fg_caps_missing(caps));
		return -EPERM;
	case FG_NEED_NO_LOCKDOWN:
		if (!fg_is_locked_down())
			return 0;
		snprintf(why, size,
			 "kernel lockdown (confidentiality mode) forbids eBPF programs that read "
			 "kernel memory");
		return -EPERM;
	default: return 0;
	}
}

int fg_needs(char *why, size_t size)
{
	int err = 0;

	for (int need = 0; need < FG_NEEDS && !err; need++)
		err = fg_need((enum fg_need)need, why, size);
	return err;
}

static const struct {
	const char *btf, *text;
} features[] = {
    [FG_HAS_WAITS] = {"btf_trace_contention_begin", "lock:contention_begin, Linux 5.19 and later"},
    [FG_HAS_HOLDS] = {"btf_trace_contended_release", "lock:contended_release, Linux 7.2 and later"},
    [FG_HAS_SLABS] = {"bpf_get_kmem_cache", "bpf_get_kmem_cache, Linux 6.13 and later"},
    [FG_HAS_SLAB_ITERATOR] = {"bpf_iter__kmem_cache", "iter/kmem_cache, Linux 6.13 and later"},
    [FG_HAS_LOCKDEP] = {"btf_trace_lock_acquire", "CONFIG_LOCKDEP"},
    [FG_HAS_SYNCORD] = {"syncord_ops", "a kernel with the SynCord series"},
    [FG_HAS_SCHED_EXT] = {"sched_ext_ops", "Linux 6.13 and later, CONFIG_SCHED_CLASS_EXT"},
};

bool fg_kernel_has(enum fg_feature f)
{
	return fg_btf_names(features[f].btf);
}

const char *fg_feature_text(enum fg_feature f)
{
	return features[f].text;
}
