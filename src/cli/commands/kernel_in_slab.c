/* SPDX-License-Identifier: MIT */
/*
 * Targets of policies that are many locks: "slab:dentry.d_lockref.lock", the lock at one place of
 * all objects of a slab cache.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/kernel_policy.h"

#define PREFIX "slab:"
#define CACHES "/sys/kernel/slab" /* where caches were merged, their names are links there */

/* Caches whose objects are not of the type that they are called. */
static const struct {
	const char *cache, *type;
} objects[] = {
    {"ext4_inode_cache", "ext4_inode_info"},
    {"files_cache", "files_struct"},
    {"filp", "file"},
    {"fs_cache", "fs_struct"},
    {"inode_cache", "inode"},
    {"mnt_cache", "mount"},
    {"proc_inode_cache", "proc_inode"},
    {"shmem_inode_cache", "shmem_inode_info"},
    {"sighand_cache", "sighand_struct"},
    {"signal_cache", "signal_struct"},
    {"sock_inode_cache", "socket_alloc"},
};

bool fg_kernel_in_slab(const struct fg_kernel_target *t)
{
	return !strncmp(t->name, PREFIX, strlen(PREFIX));
}

void fg_kernel_slab_name(const struct fg_kernel_target *t, char *cache, size_t size)
{
	const char *text = t->name + strlen(PREFIX);

	snprintf(cache, size, "%.*s", (int)strcspn(text, ".@+"), text);
}

static const char *type_of(const char *cache)
{
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (!strcmp(cache, objects[i].cache))
			return objects[i].type;
	return cache;
}

/* What `name` of the kernel's list is a link to, such as ":0000192"; false: it is none. */
static bool merged_into(const char *name, char *to, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s" CACHES "/%s", fg_kernel_root(), name);
	n = readlink(path, to, size - 1);
	to[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* "files_cache, skbuff_ext": those that share one with `cache`; "": none, or it is not told. */
static void others_of(const char *cache, char *text, size_t size)
{
	char path[PATH_MAX], ours[NAME_MAX + 1], its[NAME_MAX + 1];
	size_t len = 0;
	struct dirent *e;
	DIR *dir;

	*text = '\0';
	if (strchr(cache, '/') || !merged_into(cache, ours, sizeof(ours)))
		return;
	snprintf(path, sizeof(path), "%s" CACHES, fg_kernel_root());
	dir = opendir(path);
	while (dir && (e = readdir(dir)) && len < size)
		if (strcmp(e->d_name, cache) && merged_into(e->d_name, its, sizeof(its)) &&
		    !strcmp(ours, its))
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
						e->d_name);
	if (dir)
		closedir(dir);
}

/* One that is not by itself: a class of locks would have those of others. */
static int not_alone(const char *cache, char *why, size_t size)
{
	char others[160];

	others_of(cache, others, sizeof(others));
	snprintf(why, size,
		 "'%s' is merged with %s: slab_nomerge on the kernel's command line keeps them "
		 "apart",
		 cache, *others ? others : "other slab caches");
	return -EINVAL;
}

static int find_cache(const struct fg_policy_calls *calls, const char *cache,
		      struct fg_policy_cache *found, char *why, size_t size)
{
	char reason[200], others[16];
	int err = calls->cache(cache, found, reason, sizeof(reason));

	if (err == -ENOENT) {
		others_of(cache, others, sizeof(others));
		if (*others)
			return not_alone(cache, why, size);
	}
	if (err) {
		snprintf(why, size, "'%s': %s", cache, reason);
		return err;
	}
	return found->kinds > 1 ? not_alone(cache, why, size) : 0;
}

/* "+0x5c", as the kernel shows it in its status. */
static int read_offset(const char *text, uint32_t *offset, char *why, size_t size)
{
	unsigned long n;
	char *end;

	n = strtoul(text, &end, 16);
	if (strncmp(text, "0x", 2) || !text[2] || *end || n > FG_IN_SLAB_OFFSET) {
		snprintf(why, size, "'+%s': an offset is written slab:CACHE+0x5c", text);
		return -EINVAL;
	}
	*offset = (uint32_t)n;
	return 0;
}

/* CACHE.MEMBER, CACHE@TYPE.MEMBER, CACHE+0x5c */
int fg_kernel_resolve_slab(const char *text, struct fg_kernel_target *t, char *why, size_t size)
{
	const struct fg_policy_calls *calls = fg_policy_calls(why, size);
	const char *rest = text + strlen(PREFIX), *member = "";
	char cache[FG_KERNEL_NAME], type[FG_KERNEL_NAME];
	struct fg_policy_cache found;
	uint32_t offset = 0;
	int err;

	if (!calls)
		return -ENOSYS;
	if (strlen(text) >= sizeof(t->name)) {
		snprintf(why, size, "'%.40s...' is too long", text);
		return -EINVAL;
	}
	fg_kernel_slab_name(t, cache, sizeof(cache));
	rest += strlen(cache);
	if (!*cache || !*rest || !rest[1]) {
		snprintf(why, size,
			 "'%.200s' is no slab cache and member, such as slab:dentry.d_lockref.lock",
			 text);
		return -EINVAL;
	}
	snprintf(type, sizeof(type), "%s", type_of(cache));
	if (*rest == '@') {
		snprintf(type, sizeof(type), "%.*s", (int)strcspn(rest + 1, "."), rest + 1);
		rest += 1 + strcspn(rest + 1, ".");
	}
	if (*rest == '.')
		member = rest + 1;
	err = find_cache(calls, cache, &found, why, size);
	if (!err)
		err = *rest == '+' ? read_offset(rest + 1, &offset, why, size) :
				     fg_kernel_member(type, member, &offset, t->type,
						      sizeof(t->type), why, size);
	if (err)
		return err;
	if (offset >= found.bytes || offset > FG_IN_SLAB_OFFSET) {
		snprintf(why, size,
			 "'%.200s': objects of '%s' have %u bytes, and this is 0x%x: name their "
			 "type, slab:%s@TYPE.member",
			 text, cache, found.bytes, offset, cache);
		return -EINVAL;
	}
	t->address = found.address;
	t->flags = (uint16_t)(FG_IN_SLAB | offset);
	return 0;
}

bool fg_kernel_slab_stays(const struct fg_kernel_target *t)
{
	const struct fg_policy_calls *calls;
	char cache[FG_KERNEL_NAME], why[200];
	struct fg_policy_cache now;

	calls = fg_policy_calls(why, sizeof(why));
	fg_kernel_slab_name(t, cache, sizeof(cache));
	return calls && !calls->cache(cache, &now, why, sizeof(why)) && now.address == t->address &&
	       now.kinds <= 1;
}
