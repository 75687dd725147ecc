/* SPDX-License-Identifier: MIT */
/*
 * Which monitor serves the program: a daemon that answers, or a child of
 * `flexguard run` that loads the eBPF program and listens on an abstract
 * socket.  The child leaves the terminal's session, so that Ctrl-C and Ctrl-Z
 * are the program's affair, and ends when its supervisor's end of a pipe is
 * closed, in whatever way the supervisor ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/service.h"
#include "monitor/protocol.h"

/* What the child says once, when it is ready or has failed. */
struct ready {
	int err;
	char why[400];
};

#define STOP_MS 2000 /* for the child to detach and end, then it is killed */

const char *fg_socket_path(void)
{
	const char *path = getenv(FG_SOCKET_ENV);

	return path && *path ? path : FG_SOCKET_PATH;
}

bool fg_daemon_answers(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	bool answers;
	int fd;

	if (len == 0 || len >= sizeof(un.sun_path))
		return false;
	memcpy(un.sun_path, path, len);
	if (*path == '@')
		un.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	/* EAGAIN: somebody listens, with a full queue. */
	answers = !connect(fd, (struct sockaddr *)&un,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (*path != '@'))) ||
		  errno == EAGAIN;
	close(fd);
	return answers;
}

static void to_null(int fd, int flags)
{
	int null = open("/dev/null", flags | O_CLOEXEC);

	if (null >= 0 && null != fd) {
		dup2(null, fd);
		close(null);
	}
}

static _Noreturn void monitor_main(const char *name, int stop, int report)
{
	struct fg_service service = {.socket = name, .listener = -1};
	struct ready r = {0};
	sigset_t none;

	prctl(PR_SET_NAME, "flexguard-mon");
	setsid();
	for (int s = 1; s < NSIG; s++)
		signal(s, s == SIGPIPE ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/*
	 * Hold nothing of the user's: no terminal, pipe, lock file or mount.
	 * First out of the way of 3 and 4, then there.
	 */
	stop = fcntl(stop, F_DUPFD, 10);
	report = fcntl(report, F_DUPFD, 10);
	stop = dup3(stop, 3, O_CLOEXEC);
	report = dup3(report, 4, O_CLOEXEC);
	close_range(5, ~0u, 0);
	to_null(0, O_RDONLY);
	to_null(1, O_WRONLY);

	r.err = fg_service_open(&service, r.why, sizeof(r.why));
	to_null(2, O_WRONLY); /* not before: a kernel's reasons for a refusal go there, if asked for */
	if (write(report, &r, sizeof(r)) < 0)
		_exit(1);
	close(report);
	if (!r.err) {
		fg_service_run(&service, stop);
		fg_service_close(&service);
	}
	_exit(r.err != 0);
}

int fg_embed_start(struct fg_embed *e, char *why, size_t why_size)
{
	struct ready r = {0};
	int stop[2], report[2], err = 0;
	uint64_t random;
	ssize_t n;

	memset(e, 0, sizeof(*e));
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random) || pipe2(stop, O_CLOEXEC)) {
		snprintf(why, why_size, "cannot prepare the monitor: %s", strerror(errno));
		return -EIO;
	}
	if (pipe2(report, O_CLOEXEC)) {
		snprintf(why, why_size, "cannot prepare the monitor: %s", strerror(errno));
		close(stop[0]);
		close(stop[1]);
		return -EIO;
	}
	snprintf(e->socket, sizeof(e->socket), "@flexguard-%d-%016llx", (int)getpid(),
		 (unsigned long long)random);
	e->pid = fork();
	if (e->pid == 0) {
		close(stop[1]);
		close(report[0]);
		monitor_main(e->socket, stop[0], report[1]);
	}
	close(stop[0]);
	close(report[1]);
	e->hangup = fg_fd_high(stop[1]);
	if (e->pid < 0) {
		err = -errno;
		e->pid = 0;
		snprintf(why, why_size, "cannot fork the monitor: %s", strerror(-err));
	} else {
		while ((n = read(report[0], &r, sizeof(r))) < 0 && errno == EINTR)
			;
		if (n != (ssize_t)sizeof(r)) {
			err = -EIO;
			snprintf(why, why_size, "the monitor ended while it started");
		} else if (r.err) {
			err = r.err;
			r.why[sizeof(r.why) - 1] = '\0';
			snprintf(why, why_size, "%s", r.why[0] ? r.why : strerror(-err));
		}
	}
	close(report[0]);
	if (err)
		fg_embed_stop(e);
	return err;
}

void fg_embed_stop(struct fg_embed *e)
{
	struct timespec tick = {.tv_nsec = 1000000};

	if (e->hangup > 0)
		close(e->hangup);
	e->hangup = -1;
	if (e->pid <= 0)
		return;
	for (int ms = 0; waitpid(e->pid, NULL, WNOHANG) == 0; ms++) {
		if (ms == STOP_MS)
			kill(e->pid, SIGKILL);
		nanosleep(&tick, NULL);
	}
	e->pid = 0;
}
