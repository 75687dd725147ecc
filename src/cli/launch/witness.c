/* SPDX-License-Identifier: MIT */
/*
 * A signal says who sent it, and not whether to a process or to its group.  So a process of the
 * group stands by that takes no signal: what is pending there was sent to the group.  The kernel
 * goes through a group from its youngest member on, so it is pending there before we have it.
 *
 * What is pending stands in /proc.  Without that it is asked, which may be slow, or in vain: it may
 * have been stopped.
 *
 * As it is there, it clears up behind a command that is killed alone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/common/descriptors.h"
#include "cli/launch/witness.h"

#define ANSWER_MS 1000 /* then nobody can say; not varied */

/* True: there may be further questions. */
static bool answer(int socket)
{
	sigset_t pending;
	char question;

	sigpending(&pending);
	return recv(socket, &question, 1, MSG_DONTWAIT) == 1 &&
	       send(socket, &pending, sizeof(pending), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* What is pending for it by its own word: bit 0 is signal 1.  False: it does not say. */
static bool ask(const struct fg_witness *w, unsigned long long *pending)
{
	struct pollfd p = {.fd = w->socket, .events = POLLIN};
	sigset_t set;

	while (recv(p.fd, &set, sizeof(set), MSG_DONTWAIT) > 0)
		; /* to a question that was given up */
	if (send(p.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1 || poll(&p, 1, ANSWER_MS) != 1 ||
	    recv(p.fd, &set, sizeof(set), MSG_DONTWAIT) != sizeof(set))
		return false;
	*pending = 0;
	for (int s = 1; s <= SIGRTMAX; s++)
		*pending |= (unsigned long long)(sigismember(&set, s) == 1) << (s - 1);
	return true;
}

static _Noreturn void stand_by(const struct fg_witness *w, pid_t parent, int socket)
{
	struct pollfd fds[] = {{.events = POLLIN}, {.fd = dup2(socket, 0), .events = POLLIN}};

	/*
	 * Who looks for the command by its name finds one: otherwise both were sent a signal, and
	 * it looked like one to the group.
	 */
	memset(program_invocation_name, 0, strlen(program_invocation_name));
	prctl(PR_SET_NAME, "fg-witness"); /* last, so that who sees it finds both */
	close_range(fds[1].fd < 0 ? 0 : 1, ~0u, 0);
	fds[0].fd = (int)syscall(SYS_pidfd_open, parent, 0);
	if (fds[0].fd < 0) /* before Linux 5.3: the next command of the user removes what is left */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Otherwise it had ended before, and its number may be another's. */
	if (getppid() == parent)
		while (poll(fds, 2, -1) < 0 || !fds[0].revents)
			if (fds[1].revents && !answer(fds[1].fd))
				fds[1].fd = -1;
	fg_statsfile_remove(w->stats);
	_exit(0);
}

void fg_witness_start(struct fg_witness *w)
{
	pid_t parent = getpid(), pid;
	int ends[2] = {-1, -1};

	if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		ends[0] = fg_fd_high(ends[0]);
	pid = fork();
	if (pid == 0)
		stand_by(w, parent, ends[1]);
	if (ends[1] >= 0)
		close(ends[1]);
	w->socket = ends[0];
	w->pid = pid > 0 ? pid : 0;
}

void fg_witness_stop(struct fg_witness *w)
{
	if (w->pid) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	if (w->socket >= 0)
		close(w->socket);
	w->socket = -1;
	w->pid = 0;
}

/*
 * The number of the process in /proc, which may be that of another pid namespace, as beneath
 * unshare(1): there ours is somebody else's.  0: nobody can say.
 */
static int number_in_proc(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), number = 0;
	char path[64], line[64];
	FILE *f;

	if (fd < 0) /* before Linux 5.3 */
		return pid;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Pid: %d", &number) != 1)
		;
	if (f)
		fclose(f);
	close(fd);
	return number > 0 ? number : 0;
}

/* What is pending for the process, by /proc; as ask(). */
static bool read_pending(pid_t pid, unsigned long long *pending)
{
	char path[64], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", number_in_proc(pid));
	f = fopen(path, "re");
	while (f && !found && getline(&line, &size, f) > 0)
		found = sscanf(line, "ShdPnd: %llx", pending) == 1;
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* What is pending for `of`, too, was sent to the group.  False: nobody can say. */
static bool add(sigset_t *group, const struct fg_witness *of, bool *any)
{
	unsigned long long pending;

	if (!of->pid || (!read_pending(of->pid, &pending) && !ask(of, &pending)))
		return false;
	for (int s = 1; s <= SIGRTMAX; s++)
		if (pending >> (s - 1) & 1)
			sigaddset(group, s);
	*any = pending;
	return true;
}

void fg_witness_start_late(struct fg_witness *w, pid_t child)
{
	const struct fg_witness first = {.pid = child, .socket = -1};
	sigset_t pending, ours;
	bool any;

	sigemptyset(&pending);
	fg_witness_start(w);
	/*
	 * What was sent to the group before there was a witness, both of us have: who sends goes
	 * through all of a group before another process can be in it.
	 */
	if (!add(&pending, &first, &any) || sigpending(&ours))
		return;
	for (int s = 1; s <= SIGRTMAX; s++)
		if (sigismember(&pending, s) == 1 && sigismember(&ours, s) == 1)
			sigaddset(&w->group, s);
}

bool fg_witness_saw(struct fg_witness *w, const siginfo_t *si)
{
	struct fg_witness old = *w;
	bool any, saw;
	sigset_t more;

	if (!add(&w->group, w, &any))
		return si->si_code > 0; /* from the kernel: of the terminal, most likely */
	/*
	 * Another one takes over, for which nothing is pending; first, so that none is missed.  The
	 * old one is looked at again: what has come since, the new one may not have.
	 */
	if (any) {
		fg_witness_start(w);
		add(&w->group, &old, &any);
		fg_witness_stop(&old);
	}
	saw = sigismember(&w->group, si->si_signo) == 1;
	/*
	 * Those for real time queue up.  Another one of the others came after this: rather twice
	 * than never.
	 */
	sigpending(&more);
	if (si->si_signo < SIGRTMIN || !sigismember(&more, si->si_signo))
		sigdelset(&w->group, si->si_signo);
	if (si->si_signo == SIGCONT) { /* it took these away from us, perhaps not from it */
		sigdelset(&w->group, SIGTSTP);
		sigdelset(&w->group, SIGTTIN);
		sigdelset(&w->group, SIGTTOU);
	}
	return saw;
}
