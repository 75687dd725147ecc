/* SPDX-License-Identifier: MIT */
/*
 * A thread that another library's handler starts in the child of a fork, before all other handlers,
 * is one of the child, and so is its wait.
 */
#include "../tools/check.h"

extern pthread_mutex_t handler_mutex;
extern pthread_cond_t handler_cond;
extern int handler_work;
extern pthread_t handler_thread;

int main(int argc, char **argv)
{
	pid_t child;

	check_begin(argv[0], 20);
	child = check_fork();
	if (child == 0) {
		lock(&handler_mutex);
		handler_work = 1;
		pthread_cond_signal(&handler_cond);
		unlock(&handler_mutex);
		join(handler_thread);
		_exit(0);
	}
	check_child(child);
	return 0;
}
