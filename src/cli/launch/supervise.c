/* SPDX-License-Identifier: MIT */
/*
 * The parent of a program that `flexguard run` must outlive, for statistics or for the monitor.
 * Program and supervisor share the process group: what is sent to that, by the terminal or a shell,
 * reaches both, and the supervisor leaves it alone; what is sent to the supervisor alone is meant
 * for the program, and is forwarded.
 *
 * All signals stay blocked here and are taken with sigtimedwait(), so there are
 * no handlers and no races; a blocked signal is queued even where it is
 * ignored, so that the program's disposition alone decides.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/launch/embed.h"
#include "cli/launch/inherit.h"
#include "cli/launch/supervise.h"
#include "cli/launch/target.h"
#include "cli/launch/witness.h"

int fg_exec(const struct fg_target *t, char **argv)
{
	int err;

	fg_inherit_sigchld();
	execv(t->path, argv);
	err = errno; /* the message asks whether there is a terminal, which sets it */
	fg_error("cannot execute '%s': %s", t->path, strerror(err));
	return err == ENOENT ? FG_EXIT_NOTFOUND : FG_EXIT_NOEXEC;
}

/* So that a pipe which the program closes is closed. */
static void close_all_but(const int *keep, int nr_keep, int and)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int from = 3;

	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
		if (null > 2)
			close(null);
	}
	for (;;) {
		int next = and >= from ? and : -1;

		for (int i = 0; i < nr_keep; i++)
			if (keep[i] >= from && (next < 0 || keep[i] < next))
				next = keep[i];
		if (next < 0)
			break;
		if (next > from)
			close_range((unsigned)from, (unsigned)next - 1, 0);
		from = next + 1;
	}
	close_range((unsigned)from, ~0u, 0);
}

static bool is_pipe(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

struct supervised {
	pid_t child;
	struct fg_witness witness;
	bool leader; /* we lead our process group, as the program would in our place */
	bool pipe;   /* the program writes to another one of the job, which may want to read keys */
	pid_t terminal; /* the group that we have given the terminal to */
};

/* The foreground group of our terminal; 0: we have none. */
static pid_t foreground(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	pid_t group = fd < 0 ? 0 : tcgetpgrp(fd);

	if (fd >= 0)
		close(fd);
	return group > 0 ? group : 0;
}

/* SIGTTOU is blocked. */
static bool hand_terminal(pid_t from, pid_t to)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool done = fd >= 0 && tcgetpgrp(fd) == from && !tcsetpgrp(fd, to);

	if (fd >= 0)
		close(fd);
	return done;
}

/*
 * The group that the program made for itself, as timeout(1) does, with a session perhaps, or 0.  In
 * our place it would have been the leader of ours already, and nothing would have changed: there
 * setsid(2) fails.
 */
static pid_t group_of_its_own(const struct supervised *s)
{
	pid_t group = s->leader ? getpgid(s->child) : -1;

	return group > 0 && group != getpgrp() ? group : 0;
}

/* Give the terminal to the group that the program made for itself, if it is ours to give. */
static bool follow(struct supervised *s)
{
	pid_t group = group_of_its_own(s);

	if (!group || getsid(s->child) != getsid(0) || s->pipe || !hand_terminal(getpgrp(), group))
		return false;
	s->terminal = group;
	kill(-group, SIGCONT); /* it may have tried to read already */
	return true;
}

/* Is there a shell that waits for us, and would take the terminal back? */
static bool is_foreground_job(const struct supervised *s)
{
	pid_t group = foreground();

	return s->leader && getsid(0) != getpid() && group &&
	       (group == getpgrp() || group == getpgid(s->child));
}

static void forward(struct supervised *s, const siginfo_t *si)
{
	bool group = fg_witness_saw(&s->witness, si);
	pid_t own = group_of_its_own(s), to = s->child;
	int sig = si->si_signo;

	if (sig == SIGPIPE && si->si_pid == getpid())
		return; /* for a message of ours */
	if (group && !own)
		return; /* the program has it already */
	/* "I am ready", for example: to its parent, which it takes us for. */
	if (si->si_code <= 0 && si->si_pid == s->child)
		to = getppid();
	else if (group)
		to = -own;
	if (!to) /* our parent is outside of our pid namespace: kill(2) would take 0 for the group */
		return;
	if (sig == SIGCONT)
		follow(s); /* the shell has brought us to the foreground */
	if (si->si_code == SI_QUEUE && to > 0)
		sigqueue(to, sig, si->si_value);
	else
		kill(to, sig);
}

/* Since it was seen to stop. */
static bool goes_on(const struct supervised *s)
{
	siginfo_t si = {0};

	return waitid(P_PID, (id_t)s->child, &si, WEXITED | WCONTINUED | WNOHANG | WNOWAIT) ||
	       si.si_pid;
}

static bool take(int sig, siginfo_t *si)
{
	const struct timespec now = {0};
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, sig);
	return sigtimedwait(&one, si, &now) == sig;
}

/*
 * The program was stopped: let our parent, a shell perhaps, see the same.  Who sends SIGSTOP to the
 * program alone will continue it alone, and nobody us: so for that one only where a shell would
 * show its prompt.
 */
static void stop_as_well(struct supervised *s, int sig)
{
	siginfo_t si;
	sigset_t one;

	if ((sig == SIGTTIN || sig == SIGTTOU) && follow(s))
		return;
	if (sig == SIGSTOP && !is_foreground_job(s))
		return;
	/* This may come late, when the program has gone on, and nobody would continue us. */
	if (take(SIGCONT, &si))
		forward(s, &si);
	if (goes_on(s))
		return;
	signal(sig, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, sig);
	raise(sig); /* takes a SIGCONT away, as one that comes now takes this */
	if (goes_on(s)) {
		take(sig, &si);
		return;
	}
	sigprocmask(SIG_UNBLOCK, &one, NULL); /* stops here, until SIGCONT, which is forwarded */
	sigprocmask(SIG_BLOCK, &one, NULL);
}

/*
 * A program that makes a group for itself does so at its beginning, and nothing tells us: looks
 * after 1 ms, 2 ms more, and so on, for a second.  Not varied.
 */
#define LOOK_FIRST_NS 1000000
#define LOOK_LAST_NS  1000000000

/* What the program sent to its parent, which it takes us for, and then it ended. */
static void forward_last(struct supervised *s, const sigset_t *all)
{
	const struct timespec now = {0};
	siginfo_t si;
	int sig;

	while ((sig = sigtimedwait(all, &si, &now)) > 0)
		if (sig != SIGCHLD && si.si_code <= 0 && si.si_pid == s->child)
			forward(s, &si);
}

static int wait_for(struct supervised *s, struct fg_embed *mon)
{
	struct timespec look = {.tv_nsec = s->leader ? LOOK_FIRST_NS : LOOK_LAST_NS};
	sigset_t all;
	siginfo_t si;
	pid_t pid;
	int status, sig;

	sigfillset(&all);
	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
			if (pid == s->child && !WIFSTOPPED(status)) {
				forward_last(s, &all);
				return status;
			}
			if (pid == s->child)
				stop_as_well(s, WSTOPSIG(status));
			if (pid == mon->pid && !WIFSTOPPED(status))
				fg_embed_ended(mon);
			if (pid == s->witness.pid && !WIFSTOPPED(status)) {
				s->witness.pid = 0;
				fg_witness_stop(&s->witness);
				fg_witness_start(&s->witness);
			}
		}
		sig = sigtimedwait(&all, &si, look.tv_nsec < LOOK_LAST_NS ? &look : NULL);
		if (sig > 0 && sig != SIGCHLD)
			forward(s, &si);
		else if (sig < 0 && errno == EAGAIN)
			look.tv_nsec = follow(s) ? LOOK_LAST_NS : look.tv_nsec * 2;
	}
}

/*
 * What the program sends to its group, the witness has to have, too: so the program waits for a
 * byte of this pipe, or for its end, which comes where the command is killed.
 */
static void wait_for_witness(const int *gate)
{
	char byte;

	if (gate[1] >= 0)
		close(gate[1]);
	while (gate[0] >= 0 && read(gate[0], &byte, 1) < 0 && errno == EINTR)
		;
}

/* A byte: without close_range(2), before Linux 5.9, the witness has the pipe open as well. */
static void let_go(const int *gate)
{
	if (gate[1] >= 0)
		(void)!write(gate[1], "", 1);
	for (int i = 0; i < 2; i++)
		if (gate[i] >= 0)
			close(gate[i]);
}

int fg_supervise(const struct fg_target *t, char **argv, struct fg_embed *mon,
		 const struct fg_statsfile *stats, const int *keep, int nr_keep,
		 const sigset_t *mask)
{
	struct supervised s = {.witness.stats = stats,
			       .leader = getpgrp() == getpid(),
			       .pipe = is_pipe(STDOUT_FILENO)};
	struct fg_inherit self = fg_inherit();
	int status, gate[2] = {-1, -1};

	if (pipe2(gate, O_CLOEXEC))
		gate[0] = gate[1] = -1; /* no descriptors: it does not wait, then */
	s.child = fork();
	if (s.child < 0) {
		status = -errno;
		let_go(gate);
		return status;
	}
	if (s.child == 0) {
		wait_for_witness(gate);
		fg_inherit_all(&self);
		sigprocmask(SIG_SETMASK, mask, NULL);
		_exit(fg_exec(t, argv));
	}
	/* Afterwards: what came before there was a child is not taken for something it has. */
	fg_witness_start_late(&s.witness, s.child);
	let_go(gate);
	close_all_but(keep, nr_keep, s.witness.socket);
	status = wait_for(&s, mon);
	fg_witness_stop(&s.witness);
	if (s.terminal) /* for others of our group; a shell takes it by itself */
		hand_terminal(s.terminal, getpgrp());
	return status;
}

void fg_exit_like(int status)
{
	if (WIFSIGNALED(status)) {
		struct rlimit none = {0, 0};
		int sig = WTERMSIG(status);
		sigset_t one;

		/* The core dump is the program's. */
		setrlimit(RLIMIT_CORE, &none);
		prctl(PR_SET_DUMPABLE, 0);
		signal(sig, SIG_DFL);
		sigemptyset(&one);
		sigaddset(&one, sig);
		raise(sig);
		sigprocmask(SIG_UNBLOCK, &one, NULL);
		_exit(128 + sig);
	}
	_exit(WEXITSTATUS(status));
}
