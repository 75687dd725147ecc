/* SPDX-License-Identifier: MIT */
/*
 * The parent of a program that `flexguard run` must outlive, for statistics or
 * for the monitor.  Program and supervisor share the process group: what the
 * terminal sends reaches both, and the supervisor leaves it alone; what a
 * process sends to the supervisor is meant for the program, and is forwarded.
 *
 * All signals stay blocked here and are taken with sigwaitinfo(), so there are
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
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/launch/embed.h"
#include "cli/launch/supervise.h"
#include "cli/launch/target.h"

int fg_exec(const struct fg_target *t, char **argv)
{
	int err;

	execv(t->path, argv);
	err = errno; /* the message asks whether there is a terminal, which sets it */
	fg_error("cannot execute '%s': %s", t->path, strerror(err));
	return err == ENOENT ? FG_EXIT_NOTFOUND : FG_EXIT_NOEXEC;
}

/* So that a pipe which the program closes is closed. */
static void close_all_but(const int *keep, int nr_keep)
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
		int next = -1;

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

static bool have_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * The program was stopped: let our parent, a shell perhaps, see the same.
 * Without a terminal there is no job control, and the sender of a SIGSTOP to the
 * program alone will continue it alone.
 */
static void stop_as_well(int sig)
{
	sigset_t one;

	if (sig == SIGSTOP && !have_terminal())
		return;
	signal(sig, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &one, NULL); /* stops here, until SIGCONT, which is forwarded */
	sigprocmask(SIG_BLOCK, &one, NULL);
}

/* `early`: it came before there was a child that the terminal could have reached. */
static void forward(pid_t child, const siginfo_t *si, bool early)
{
	int sig = si->si_signo;
	/* An alarm that was set before exec is ours now and was meant for the program. */
	bool timer = sig == SIGALRM || sig == SIGVTALRM || sig == SIGPROF;

	if (si->si_code > 0 && !timer && !early)
		return; /* from the kernel: the terminal's signals reach the whole group */
	if (si->si_code <= 0 && si->si_pid == child)
		return; /* kill(0, sig) by the program: it has its own */
	if (si->si_code == SI_QUEUE)
		sigqueue(child, sig, si->si_value);
	else
		kill(child, sig);
}

static int wait_for(pid_t child, struct fg_embed *mon, sigset_t early)
{
	sigset_t all;
	siginfo_t si;
	pid_t pid;
	int status;

	sigfillset(&all);
	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
			if (pid == child && !WIFSTOPPED(status))
				return status;
			if (pid == child)
				stop_as_well(WSTOPSIG(status));
			if (pid == mon->pid && !WIFSTOPPED(status))
				fg_embed_ended(mon);
		}
		if (sigwaitinfo(&all, &si) < 0 || si.si_signo == SIGCHLD)
			continue;
		forward(child, &si, sigismember(&early, si.si_signo) == 1);
		sigdelset(&early, si.si_signo);
	}
}

int fg_supervise(const struct fg_target *t, char **argv, struct fg_embed *mon, const int *keep,
		 int nr_keep, const sigset_t *mask)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL}, inherited;
	sigset_t early;
	pid_t child;

	sigaction(SIGCHLD, &dfl, &inherited); /* where it was ignored, nobody could be waited for */
	sigpending(&early);
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		sigaction(SIGCHLD, &inherited, NULL);
		sigprocmask(SIG_SETMASK, mask, NULL);
		_exit(fg_exec(t, argv));
	}
	close_all_but(keep, nr_keep);
	return wait_for(child, mon, early);
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
