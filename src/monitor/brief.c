// SPDX-License-Identifier: MIT
/*
 * See brief.h.  The kernel waits there until a signal is pending; and one stays pending until all
 * descriptors of the packet are gone, since that is done on the way back to user space, before
 * signals are.  So a packet costs one period of a timer, however many descriptors it has.  To start
 * and stop it took 7 us (2-CPU VM), so it is left out where it can be.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "monitor/brief.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define PERIOD_NS 100000 /* not varied */
#define INTERRUPT SIGURG

static __thread enum { UNKNOWN, MADE, NONE } state;
static __thread timer_t timer;
static __thread bool runs;

static void nothing(int sig)
{
	(void)sig;
}

/* Without one, for want of memory, it is as it was before there was this file. */
static bool make_timer(void)
{
	struct sigaction sa = {.sa_handler = nothing};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = INTERRUPT};
	sigset_t mask;

	if (state != UNKNOWN)
		return state == MADE;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	sigemptyset(&mask);
	sigaddset(&mask, INTERRUPT);
	state = !sigaction(INTERRUPT, &sa, NULL) && !pthread_sigmask(SIG_UNBLOCK, &mask, NULL) &&
			!timer_create(CLOCK_MONOTONIC, &event, &timer) ?
		    MADE :
		    NONE;
	return state == MADE;
}

static bool has_refused(int fd)
{
	socklen_t size = sizeof(int);
	int on = 1;

	return fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, &size) && !on;
}

/* Again and again: the first may come before the call has begun. */
void fg_brief_begin(int accepted)
{
	struct itimerspec every = {.it_value.tv_nsec = PERIOD_NS, .it_interval.tv_nsec = PERIOD_NS};

	runs = !has_refused(accepted) && make_timer() && !timer_settime(timer, 0, &every, NULL);
}

void fg_brief_end(void)
{
	struct itimerspec never = {0};

	if (runs)
		timer_settime(timer, 0, &never, NULL);
	runs = false;
}

void fg_brief_close(int accepted)
{
	fg_brief_begin(accepted);
	close(accepted);
	fg_brief_end();
}

void fg_brief_close_listener(int fd)
{
	fg_brief_begin(-1);
	close(fd);
	fg_brief_end();
}

void fg_brief_refuse(int fd)
{
	int off = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}
