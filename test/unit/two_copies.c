/* SPDX-License-Identifier: MIT */
/*
 * A program that is linked with the runtime, and has another one preloaded: what it takes for
 * libc's functions are libc's, and not those that stand before them, so that threads have their
 * ids behind a filter, too.  To find them makes no call that the filter does not know.
 */
#include "../tools/check.h"
#include "../tools/no_call.h"
#include "sys/filter.h"

static void *ask(void *arg)
{
	CHECK_EQ(fg_tid_of_libc(), (uint32_t)gettid());
	return arg;
}

int main(int argc, char **argv)
{
	pid_t pid;

	(void)argc;
	check_begin(argv[0], 20);
	pid = check_fork();
	if (!pid) {
		no_call(SYS_mprotect);
		ask(NULL);
		_exit(0);
	}
	check_child(pid);
	ask(NULL);
	join(start(ask, NULL));
	return 0;
}
