// SPDX-License-Identifier: MIT
/*
 * The monitor's socket has the mode that it was told, under any umask, which stays as it was, and
 * the owner whom it is given to.  Who puts a link in its place as soon as it is bound, a symbolic
 * or a hard one, leads nobody to another file's mode or owner.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "harness.h"

static char folder[] = "/tmp/flexguard-test-XXXXXX", path[64], victim[64];
static bool is_replaced;
static int (*put_there)(const char *, const char *) = symlink;

/* In place of libc's: somebody is quick. */
int bind(int fd, const struct sockaddr *address, socklen_t size)
{
	long r = syscall(SYS_bind, fd, address, size);

	if (!r && is_replaced)
		CHECK(!unlink(path) && !put_there(victim, path));
	return (int)r;
}

static void clean_up(void)
{
	unlink(path);
	unlink(victim);
	rmdir(folder);
}

static unsigned mode_of(const char *file)
{
	struct stat st;

	CHECK(!lstat(file, &st));
	return st.st_mode & 07777;
}

static void listen_there(unsigned mode)
{
	int fd = fg_monitor_listen(path, mode);

	CHECK(fd >= 0);
	close(fd);
}

static uid_t owner_of(const char *file)
{
	struct stat st;

	CHECK(!lstat(file, &st));
	return st.st_uid;
}

/* What is in the socket's place as soon as it is bound. */
static void check_not_given(uid_t user)
{
	is_replaced = true;
	listen_there(0600);
	is_replaced = false;
	CHECK(fg_monitor_give_away(path, user, getegid()) == -EPERM);
	CHECK(owner_of(victim) == geteuid());
	CHECK(!unlink(path));
}

/* Without root's rights it is given to the user who has it. */
static void check_owner(void)
{
	uid_t user = geteuid() ? geteuid() : 65534;

	put_there = link;
	check_not_given(user);
	CHECK(!unlink(victim));
	listen_there(0600);
	CHECK(!rename(path, victim)); /* a socket of ours, which is another one */
	check_not_given(user);
	listen_there(0600);
	CHECK(fg_monitor_give_away(path, user, getegid()) == 0);
	CHECK(owner_of(path) == user);
	CHECK(!unlink(path));
	CHECK(fg_monitor_give_away(path, user, getegid()) == -ENOENT);
}

int main(void)
{
	static const unsigned masks[] = {0, 022, 077, 0777}, modes[] = {0666, 0660, 0600, 0};
	FILE *f;

	test_begin();
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(victim, sizeof(victim), "%s/victim", folder);
	atexit(clean_up);
	for (int m = 0; m < 4; m++) {
		umask(masks[m]);
		for (int i = 0; i < 4; i++) {
			listen_there(modes[i]);
			CHECK(mode_of(path) == modes[i]);
			unlink(
			    path); /* who is not root may not ask one of mode 0 whether it is stale */
		}
		CHECK(umask(022) == masks[m]);
	}
	f = fopen(victim, "w");
	CHECK(f && !fclose(f) && !chmod(victim, 0600));
	is_replaced = true;
	listen_there(0666);
	CHECK(mode_of(victim) == 0600);
	CHECK(!unlink(path));
	check_owner();
	return 0;
}
