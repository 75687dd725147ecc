/* SPDX-License-Identifier: MIT */
/*
 * Targets of policies that lie in objects: "task:1234.files.file_lock", "sb:/mnt.s_umount".
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/kernel_policy.h"

/* What a kind of object is to the kernel: a way from struct task_struct, or struct file. */
static const struct {
	const char *prefix, *way;
	bool file;
} kinds[] = {
    {"task:", "", false},
    {"mm:", "mm.", false},
    {"inode:", "f_inode.", true},
    {"sb:", "f_inode.i_sb.", true},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static size_t kind_of(const char *text)
{
	size_t i = 0;

	while (i < KINDS && strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)))
		i++;
	return i;
}

bool fg_kernel_in_object(const struct fg_kernel_target *t)
{
	return kind_of(t->name) < KINDS;
}

/*
 * "1234.files.file_lock", "/mnt.s_umount": the file or the number, and the member.  A path may have
 * dots: it is the longest that is there.  A descriptor, or -1 for a process.
 */
static int open_object(const char *text, bool file, pid_t *pid, const char **member, char *why,
		       size_t size)
{
	char path[FG_KERNEL_NAME], *end;
	unsigned long n;

	if (!file) {
		errno = 0;
		n = strtoul(text, &end, 10);
		/* To the kernel's iterator 0 is all processes: the last of them would be it. */
		if (*text < '0' || *text > '9' || *end != '.' || errno || !n || n > INT_MAX) {
			snprintf(why, size, "'%.100s' is no process and member, such as 1234.%s",
				 text, "files.file_lock");
			return -EINVAL;
		}
		*pid = (pid_t)n;
		*member = end + 1;
		return -1;
	}
	snprintf(path, sizeof(path), "%s", text);
	while ((end = strrchr(path, '.'))) {
		int fd;

		*end = '\0';
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd >= 0) {
			*member = text + (end - path) + 1;
			return fd;
		}
	}
	snprintf(why, size, "'%.100s' is no file and member, such as /tmp.s_vfs_rename_mutex",
		 text);
	return -ENOENT;
}

int fg_kernel_resolve_object(const char *text, struct fg_kernel_target *t, char *why, size_t size)
{
	const struct fg_policy_calls *calls = fg_policy_calls(why, size);
	size_t kind = kind_of(text);
	char path[FG_KERNEL_NAME + 16], reason[200];
	const char *member = "";
	pid_t pid = 0;
	int fd, err;

	if (!calls)
		return -ENOSYS;
	if (kind == KINDS || strlen(text) >= sizeof(t->name)) {
		snprintf(why, size, "'%.40s...' is too long", text);
		return -EINVAL;
	}
	fd = open_object(text + strlen(kinds[kind].prefix), kinds[kind].file, &pid, &member, why,
			 size);
	if (fd < -1)
		return fd;
	snprintf(path, sizeof(path), "%s%s", kinds[kind].way, member);
	err = calls->object(pid, fd, path, &t->address, t->type, sizeof(t->type), reason,
			    sizeof(reason));
	if (fd >= 0)
		close(fd);
	if (err)
		snprintf(why, size, "'%.200s': %s", text, reason);
	return err;
}
