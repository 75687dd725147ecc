/* SPDX-License-Identifier: MIT */
/*
 * Whose the last refusal of a lock policy is, if it is new and says the errno: by the pid, where
 * this process has the one that the kernel writes; in another namespace of pids by the name.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/kernel_policy.h"
#include "monitor/namespace.h"

static char root[] = "/tmp/fg-refusal-XXXXXX";

const char *fg_kernel_root(void)
{
	return root;
}

static void fail(const char *what, const char *line)
{
	printf("failed: %s: %s\n", what, line);
	exit(1);
}

/* The kernel's line; `pid` 0: ours. */
static char *say(int err, int pid, const char *comm)
{
	char path[100], *line;
	FILE *f;

	snprintf(path, sizeof(path), "%s" FG_SYNCORD "/last_error", root);
	f = fopen(path, "w");
	if (!f || asprintf(&line, "errno=%d reason=conflict pid=%d comm=%s text=it has one", err,
			   pid ? pid : getpid(), comm) < 0)
		fail("cannot write", path);
	fprintf(f, "%s\n", line);
	fclose(f);
	return line;
}

static void check(bool ours, const char *before, int err, int pid, const char *comm, int returned)
{
	char why[100] = "", *line = say(err, pid, comm);

	if (fg_syncord_refusal(before, returned, why, sizeof(why)) != ours)
		fail(ours ? "not taken for ours" : "taken for ours", line);
	if (ours && strcmp(why, "conflict: it has one"))
		fail(why, line);
	free(line);
}

static void by_pid(void)
{
	char *before;

	check(true, "", EBUSY, 0, "a?b", -EBUSY);
	check(false, "", EBUSY, getpid() + 1, "a?b", -EBUSY);
	check(false, "", EBUSY, 1, "a?b", -EBUSY);
	/* Of one that had this number before: of ENOMEM the kernel may say nothing. */
	check(false, "", EBUSY, 0, "a?b", -ENOMEM);
	check(true, "", EOPNOTSUPP, 0, "a?b", -EINVAL);
	before = say(EBUSY, 0, "a?b");
	check(false, before, EBUSY, 0, "a?b", -EBUSY);
	check(true, before, EINVAL, 0, "a?b", -EINVAL);
	check(false, NULL, EBUSY, 0, "a?b", -EBUSY);
	free(before);
}

static void by_what_it_says(void)
{
	char *before = say(EBUSY, 70000, "a?b"), *same;

	same = fg_syncord_last_error();
	if (!same || strcmp(same, before))
		fail("not read", before);
	check(false, before, EBUSY, 70000, "a?b", -EBUSY); /* there before */
	check(true, before, EBUSY, 70001, "a?b", -EBUSY);
	check(true, before, EOPNOTSUPP, 70001, "a?b", -EINVAL);
	check(false, before, EBUSY, 70001, "a?b", -EPERM);
	check(false, before, EBUSY, 70001, "a", -EBUSY);
	check(false, before, EBUSY, 0, "b", -EBUSY); /* somebody else's, who has our number here */
	check(false, NULL, EBUSY, 70001, "a?b", -EBUSY);
	free(same);
	free(before);
}

/* In a namespace of its own, which ends with the first process there. */
static int elsewhere(void)
{
	int status = 0;
	pid_t pid;

	if (unshare(CLONE_NEWPID)) {
		printf("no namespace of pids may be made here\n");
		return 77;
	}
	pid = fork();
	if (!pid) {
		by_what_it_says();
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		fail("no child", root);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
	const char *const folder[] = {"/sys", "/sys/kernel", FG_SYNCORD};
	int first = fg_in_first_pid_namespace(), status = 0;
	char command[100];
	pid_t pid;

	if (!mkdtemp(root))
		fail("no folder", root);
	for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++) {
		snprintf(command, sizeof(command), "%s%s", root, folder[i]);
		mkdir(command, 0700);
	}
	prctl(PR_SET_NAME, "a b");
	if (first)
		by_pid();
	pid = fork();
	if (!pid)
		exit(first ? elsewhere() : (by_what_it_says(), 0));
	if (waitpid(pid, &status, 0) != pid)
		fail("no child", root);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command) || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}
