/* SPDX-License-Identifier: MIT */
/*
 * Which monitor serves the program: a daemon that answers, or a child of `flexguard run`
 * (embedded.c).  That one is executed afresh, since neither what the program preloads nor what is
 * in its environment is any of the monitor's business: an allocator's pipe, say, whose numbers the
 * monitor needs.  It ends when this end of a socket is closed, in whatever way the command ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/protocol.h"
#include "abi/socket.h"
#include "cli/common/descriptors.h"
#include "cli/common/message.h"
#include "cli/common/query.h"
#include "cli/launch/embed.h"
#include "cli/launch/embedded.h"
#include "cli/launch/told.h"
#include "cli/service/service.h"
#include "monitor/monitor.h"

/* For the child to detach and end, then it is killed; looks every STOP_LOOK_NS.  Not varied. */
#define STOP_NS	     2000000000u
#define STOP_LOOK_NS 200000u

const char *fg_socket_path(void)
{
	const char *path = secure_getenv(FG_SOCKET_ENV);

	return path && *path ? path : FG_SOCKET_PATH;
}

static socklen_t address(struct sockaddr_un *un, const char *path, const char *suffix)
{
	char name[sizeof(un->sun_path)];
	size_t n = (size_t)snprintf(name, sizeof(name), "%s%s", path, suffix);

	return n < sizeof(name) ? fg_socket_address(un, name) : 0;
}

/* By the `flexguard run` around this one, if there is one. */
static const char *secret_told(void)
{
	const char *secret = secure_getenv(FG_SECRET_ENV);

	return secret && strlen(secret) == FG_SECRET ? secret : NULL;
}

/* For a place in the queue at an abstract name, as it tells whose that is.  Not varied. */
#define QUEUE_NS 1000000000u

/* One that the program will trust (monitor_client.c). */
static bool listens(const char *path)
{
	struct timeval patience = {.tv_sec = QUEUE_NS / 1000000000u};
	bool abstract = *path == '@', answers;
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | (abstract ? 0 : SOCK_NONBLOCK), fd;
	struct sockaddr_un un;
	struct ucred who;
	socklen_t size = address(&un, path, ""), length = sizeof(who);

	fd = size ? socket(AF_UNIX, type, 0) : -1;
	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&un, size))
		answers = !abstract || (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) &&
					fg_socket_trusts(who.uid, geteuid()));
	else
		/* Somebody listens, with a full queue: at a name that we were told, our monitor. */
		answers = errno == EAGAIN && (!abstract || secret_told());
	close(fd);
	return answers;
}

/* Whether a monitor sleeps there, which is sent this knock; NULL: none. */
static bool sleeps(const char *path, const char *knock)
{
	struct sockaddr_un un;
	socklen_t size = *path == '@' ? address(&un, path, FG_KNOCK) : 0;
	int fd = size ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
	bool there;

	if (fd < 0)
		return false;
	there = !connect(fd, (struct sockaddr *)&un, size);
	/* EAGAIN: it has not come to the last ones yet. */
	if (there && knock)
		there = send(fd, knock, FG_SECRET, MSG_NOSIGNAL) >= 0 || errno == EAGAIN;
	close(fd);
	return there;
}

/* For one that loads its program beside much else; looks every WAKE_LOOK_NS.  Not varied. */
#define WAKE_NS	     10000000000u
#define WAKE_LOOK_NS 1000000u

bool fg_daemon_answers(const char *path, bool now)
{
	const struct timespec moment = {.tv_nsec = WAKE_LOOK_NS};
	const char *secret = secret_told();

	if (listens(path))
		return true;
	/*
	 * The monitor of another `flexguard run`, around this one, which still sleeps, and has told
	 * us: whose a socket for datagrams is, nothing tells.
	 */
	if (!secret)
		return false;
	for (uint64_t ns = 0; sleeps(path, now ? secret : NULL); ns += WAKE_LOOK_NS) {
		if (!now || ns >= WAKE_NS)
			return !now;
		nanosleep(&moment, NULL);
	}
	return listens(path);
}

/* ---- start -------------------------------------------------------------------- */

/*
 * What the monitor may know: where libraries are, and whether to say what the kernel's verifier
 * says.
 */
static char **little_environment(void)
{
	static const char *const names[] = {"LD_LIBRARY_PATH", "FLEXGUARD_VERBOSE"};
	static char *kept[3];
	size_t n = 0;

	for (char **e = environ; *e; e++)
		for (size_t i = 0; i < sizeof(names) / sizeof(*names) && n < 2; i++)
			if (!strncmp(*e, names[i], strlen(names[i])) &&
			    (*e)[strlen(names[i])] == '=')
				kept[n++] = *e;
	kept[n] = NULL;
	return kept;
}

static _Noreturn void not_executed(int control, const struct fg_embedded_ready *r)
{
	(void)!write(control, r, sizeof(*r));
	_exit(1);
}

/* The child: holds nothing of the user's, no terminal, pipe, lock file or mount. */
static _Noreturn void become_monitor(const char *name, char **environment, bool verbose,
				     int control, int knock, int listener)
{
	char *argv[] = {FG_EMBEDDED_NAME, (char *)name, NULL};
	struct fg_embedded_ready r = {0};
	sigset_t none;

	/* The program keeps the limit that it was given. */
	r.err = fg_service_descriptors(r.why, sizeof(r.why));
	if (r.err)
		not_executed(control, &r);
	setsid();
	for (int s = 1; s < NSIG; s++)
		signal(s, s == SIGPIPE ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* First out of the way of where they go. */
	control = fcntl(control, F_DUPFD, 10);
	knock = fcntl(knock, F_DUPFD, 10);
	listener = fcntl(listener, F_DUPFD, 10);
	dup2(control, FG_EMBEDDED_CONTROL);
	dup2(knock, FG_EMBEDDED_KNOCK);
	dup2(listener, FG_EMBEDDED_SOCKET);
	close_range(FG_EMBEDDED_SOCKET + 1, ~0u, 0);
	fg_fd_null(0);
	fg_fd_null(1);
	/* or it was closed: what is there now is ours, if anything */
	if (!verbose || fcntl(2, F_GETFD))
		fg_fd_null(2);
	execve("/proc/self/exe", argv, environment);
	r.err = -errno;
	snprintf(r.why, sizeof(r.why), "cannot execute the monitor (/proc/self/exe): %s",
		 strerror(-r.err));
	not_executed(FG_EMBEDDED_CONTROL, &r);
}

/*
 * What the monitor says.  Before that comes an error where it has ended and had not taken in its
 * secret.
 */
static bool hear(const struct fg_embed *e, struct fg_embedded_ready *r, int flags)
{
	ssize_t n;

	do
		n = recv(e->control, r, sizeof(*r), flags);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n == (ssize_t)sizeof(*r);
}

/* Wakes the monitor and waits for what it says. */
static int wake(struct fg_embed *e, const struct sockaddr_un *un, socklen_t size, char *why,
		size_t why_size)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct fg_embedded_ready r = {.err = -EIO, .why = "the monitor ended while it started"};
	bool sent = fd >= 0 && sendto(fd, e->secret, FG_SECRET, 0, (const struct sockaddr *)un,
				      size) == FG_SECRET;

	if (fd >= 0)
		close(fd);
	/*
	 * Looked at only: that it serves is asked again (serves).  One that does not hear the knock
	 * any more has said why.
	 */
	hear(e, &r, MSG_PEEK | (sent ? 0 : MSG_DONTWAIT));
	r.why[sizeof(r.why) - 1] = '\0';
	if (r.err) {
		snprintf(why, why_size, "%s", r.why[0] ? r.why : strerror(-r.err));
		/* At once: nobody has been told of it. */
		kill(e->pid, SIGKILL);
		waitpid(e->pid, NULL, 0);
		close(e->control);
		e->control = -1;
		e->pid = 0;
	}
	return r.err;
}

int fg_embed_start(struct fg_embed *e, bool now, char *why, size_t why_size)
{
	const char *level = secure_getenv("FLEXGUARD_VERBOSE");
	char **environment = little_environment();
	int control[2] = {-1, -1}, knock = -1, listener = -1, err;
	struct sockaddr_un un;
	uint64_t random[3];
	socklen_t size;

	memset(e, 0, sizeof(*e));
	e->control = -1;
	e->in_session = getsid(0) > 0;
	err = fg_monitor_preflight(why, why_size);
	if (err)
		return err;
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		goto failed;
	snprintf(e->secret, sizeof(e->secret), "%016llx%016llx", (unsigned long long)random[1],
		 (unsigned long long)random[2]);
	snprintf(e->socket, sizeof(e->socket), "@flexguard-%d-%016llx", (int)getpid(),
		 (unsigned long long)random[0]);
	size = address(&un, e->socket, FG_KNOCK);
	/*
	 * Bound before the program runs, so that no knock is lost, and that nobody else answers:
	 * until it listens, none does.
	 */
	knock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (knock < 0 || listener < 0 || bind(knock, (struct sockaddr *)&un, size) ||
	    bind(listener, (struct sockaddr *)&un, size - strlen(FG_KNOCK)) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control))
		goto failed;
	e->control = control[0] = fg_fd_high(control[0]);
	if (e->control < 0)
		goto failed;
	/* Not by its environment: it would be taken for one that was told (told.h). */
	if (send(e->control, e->secret, FG_SECRET, MSG_NOSIGNAL) != FG_SECRET)
		goto failed;
	e->pid = fork();
	if (e->pid == 0)
		become_monitor(e->socket, environment, level && atoi(level) >= 2, control[1], knock,
			       listener);
	if (e->pid < 0)
		goto failed;
	close(control[1]);
	close(knock);
	close(listener);
	return now ? wake(e, &un, size, why, why_size) : 0;

failed:
	err = -errno;
	snprintf(why, why_size, "cannot prepare the monitor: %s%s", strerror(-err),
		 err == -EMFILE ? ": raise `ulimit -n`" : "");
	for (int i = 0; i < 2; i++)
		if (control[i] >= 0)
			close(control[i]);
	if (knock >= 0)
		close(knock);
	if (listener >= 0)
		close(listener);
	e->control = -1;
	e->pid = 0;
	return err;
}

/* Whether it has been woken, has loaded the program and listens. */
static bool serves(const struct fg_embed *e)
{
	struct fg_embedded_ready r;

	return hear(e, &r, MSG_DONTWAIT | MSG_PEEK) && !r.err;
}

void fg_embed_ended(struct fg_embed *e)
{
	struct fg_embedded_ready r = {0};
	bool said = hear(e, &r, MSG_DONTWAIT);

	e->pid = 0;
	r.why[sizeof(r.why) - 1] = '\0';
	if (said && r.err)
		fg_note("no preemption monitor, going on with the fallback: %s",
			r.why[0] ? r.why : strerror(-r.err));
	else
		fg_note("the preemption monitor ended; the program goes on with the fallback");
}

/* ---- the end, and processes that outlive it ------------------------------------ */

static bool has_ended(pid_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool ended = p.fd < 0 || poll(&p, 1, 0) == 1;

	if (p.fd >= 0)
		close(p.fd);
	return ended;
}

/*
 * Has it clients?  One may have overwritten its environment, as daemons do that show their state in
 * ps(1).  A monitor that does not come to its answer, as it has no CPU, may have.
 */
static bool has_clients(const struct fg_embed *e)
{
	struct fg_answer a;
	bool alive = false;
	char why[200];
	int err = fg_query(e->socket, &a, why, sizeof(why));

	if (err)
		return err == -ETIMEDOUT;
	/* The monitor may not have heard yet that one has ended. */
	for (size_t i = 0; i < a.count && !alive; i++)
		alive = !has_ended(a.process[i].pid);
	fg_answer_free(&a);
	return alive;
}

static bool is_wanted(const struct fg_embed *e)
{
	return fg_is_told(e->secret, e->in_session) || (serves(e) && has_clients(e));
}

/* Between two looks whether the monitor is still wanted, doubled from look to look.  Not varied. */
#define LOOK_FIRST_NS 1000000000ull
#define LOOK_MAX_NS   30000000000ull

/* The descriptors of who keeps it, besides those of /dev/null. */
#define KEEP_CONTROL 3
#define KEEP_TOLD    4

/*
 * A process that does nothing but look whether the monitor is wanted, and keep it alive as long as
 * it is: that may not look at others itself (service.c).  It tells the command that it stays.
 */
static _Noreturn void look_and_keep(struct fg_embed *e, int told)
{
	struct pollfd control = {.fd = KEEP_CONTROL};
	uint64_t wait_ns = LOOK_FIRST_NS;
	sigset_t none;

	prctl(PR_SET_NAME, "flexguard-keep");
	setsid();
	(void)!chdir("/");
	for (int s = 1; s < NSIG; s++)
		signal(s, s == SIGPIPE ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	told = fcntl(told, F_DUPFD, KEEP_TOLD + 1);
	e->control = dup2(e->control, KEEP_CONTROL);
	if (dup2(told, KEEP_TOLD) < 0)
		_exit(0);
	close_range(KEEP_TOLD + 1, ~0u, 0);
	for (int fd = 0; fd < 3; fd++)
		fg_fd_null(fd);
	if (!is_wanted(e))
		_exit(0);
	(void)!write(KEEP_TOLD, "", 1);
	close(KEEP_TOLD);
	/* Until nobody is left, or the monitor itself has ended. */
	while (!poll(&control, 1, (int)(wait_ns / 1000000u)) && is_wanted(e))
		wait_ns = wait_ns < LOOK_MAX_NS / 2 ? wait_ns * 2 : LOOK_MAX_NS;
	_exit(0);
}

/* For the first look.  Then who looks goes on without the command.  Not varied. */
#define FIRST_LOOK_MS 5000

/*
 * Is the monitor kept by a child, as it is wanted, or may be?  The command does not look itself: a
 * process can keep its memory locked, and its environment is not read before that is over.
 */
static bool is_kept(struct fg_embed *e)
{
	struct pollfd told = {.events = POLLIN};
	int ends[2];
	bool kept;
	pid_t pid;
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid)
		look_and_keep(e, ends[1]);
	close(ends[1]);
	told.fd = ends[0];
	kept = pid > 0 && (poll(&told, 1, FIRST_LOOK_MS) != 1 || read(ends[0], &byte, 1) == 1);
	close(ends[0]);
	if (pid > 0 && !kept) /* it has ended */
		waitpid(pid, NULL, 0);
	return kept;
}

void fg_embed_stop(struct fg_embed *e)
{
	struct timespec tick = {.tv_nsec = STOP_LOOK_NS};
	bool wanted = e->pid > 0 && is_kept(e);

	if (!wanted && e->pid > 0 && !serves(e))
		kill(e->pid, SIGKILL); /* asleep, or not to be waited for */
	if (e->control >= 0)
		close(e->control);
	e->control = -1;
	for (int n = 0; !wanted && e->pid > 0 && waitpid(e->pid, NULL, WNOHANG) == 0; n++) {
		if (n == (int)(STOP_NS / STOP_LOOK_NS))
			kill(e->pid, SIGKILL);
		nanosleep(&tick, NULL);
	}
	e->pid = 0;
}
