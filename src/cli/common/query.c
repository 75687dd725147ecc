/* SPDX-License-Identifier: MIT */
/*
 * The questions of protocol.h; the answer is checked, whatever listens there.  Descriptors that
 * come along do not keep the command (brief.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "abi/socket.h"
#include "abi/stats.h"
#include "cli/common/arguments.h"
#include "cli/common/interrupt.h"
#include "cli/common/json.h"
#include "cli/common/query.h"
#include "cli/common/text.h"
#include "monitor/brief.h"
#include "monitor/clock.h"

#define REPORT_WITHIN_NS 2000000000u /* not varied */
/* As long as the program that comes then waits for its welcome (runtime/monitor_client.c). */
#define VERSION_WITHIN_NS 250000000u

/*
 * A stop (Ctrl-Z) ends calls that have a time limit, whatever is said of its signal, as does a
 * terminal whose size changes: no reason to give up.
 */
static bool again(ssize_t result)
{
	return result < 0 && errno == EINTR && !fg_interrupted;
}

static int connect_to(const char *path, uint32_t within_ns)
{
	struct timeval patience = {.tv_sec = within_ns / 1000000000u,
				   .tv_usec = within_ns % 1000000000u / 1000};
	struct sockaddr_un un;
	socklen_t size = fg_socket_address(&un, path);
	int fd, err, r, yes = 1;

	if (!size)
		return -EADDRNOTAVAIL;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	fg_brief_refuse(fd);
	do
		r = connect(fd, (struct sockaddr *)&un, size);
	while (again(r));
	if (r) {
		err = errno == EAGAIN ? -ETIMEDOUT : -errno; /* its queue is full */
		close(fd);
		return err;
	}
	return fd;
}

/* An old monitor takes the question for a bad hello. */
static int check(const struct fg_report *r, ssize_t size)
{
	if (size >= (ssize_t)sizeof(struct fg_welcome) && r->magic == FG_PROTO_MAGIC)
		return -EPROTONOSUPPORT;
	if (size < (ssize_t)offsetof(struct fg_report, process) || r->magic != FG_QUERY_MAGIC)
		return -EPROTO;
	if (r->abi != FG_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (r->error)
		return r->error < 0 && r->error > -4096 ? r->error : -EPROTO;
	if (r->count > FG_REPORT_PROCESSES ||
	    size < (ssize_t)offsetof(struct fg_report, process[r->count]))
		return -EPROTO;
	return 0;
}

/*
 * Also who has sent it: who listens may be systemd, which SO_PEERCRED would name, but not who
 * answers.
 */
static ssize_t hear(int fd, struct fg_report *r, pid_t *pid)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {.iov_base = r, .iov_len = sizeof(*r)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct ucred sender;
	ssize_t n;

	*pid = 0;
	do
		n = recv(fd, r, 1, MSG_PEEK); /* that waits, and takes no descriptors */
	while (again(n));
	if (n <= 0)
		return n;
	fg_brief_begin(fd);
	n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	fg_brief_end();
	for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			*pid = sender.pid;
		}
	return n;
}

static int ask(const char *path, uint32_t from, uint32_t within_ns, struct fg_report *r, pid_t *pid)
{
	struct fg_query q = {.magic = FG_QUERY_MAGIC, .abi = FG_ABI_VERSION, .from = from};
	int fd = connect_to(path, within_ns), err = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	do
		n = send(fd, &q, sizeof(q), MSG_NOSIGNAL);
	while (again(n));
	if (n < 0)
		err = -errno;
	n = err ? 0 : hear(fd, r, pid);
	if (n < 0)
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	fg_brief_close(fd);
	if (!err)
		err = n == 0 ? -ECONNRESET : check(r, n);
	return err;
}

static int collect(const char *path, struct fg_answer *a)
{
	static struct fg_report r;
	uint32_t from = 0;
	int err;

	do {
		struct fg_report_process *more;

		err = ask(path, from, REPORT_WITHIN_NS, &r, &a->pid);
		if (err)
			return err;
		/* No number twice: what pretends to be a monitor does not go on for ever. */
		if (r.next &&
		    (r.next <= from || r.next - from < r.count || r.next >= FG_MOST_PROCESSES))
			return -EPROTO;
		more = realloc(a->process, (a->count + r.count + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		a->process = more;
		memcpy(&a->process[a->count], r.process, r.count * sizeof(*more));
		a->count += r.count;
		from = r.next;
	} while (from);
	r.version[sizeof(r.version) - 1] = '\0';
	/* It goes to terminals and, between quotes, to Prometheus. */
	for (char *c = r.version; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '?';
	memcpy(&a->sum, &r, offsetof(struct fg_report, process));
	return 0;
}

static bool is_another_version(int err)
{
	return err == -EPROTONOSUPPORT || err == -EPROTO;
}

static void say_another_version(const char *path, char *why, size_t size)
{
	snprintf(why, size, "the monitor on %s is of another version: restart it with this one",
		 path);
}

bool fg_monitor_is_another_version(const char *path, char *why, size_t size)
{
	static struct fg_report r;
	struct sigaction action;
	sigset_t mask;
	pid_t pid;
	bool is;

	/* What brief.h changes of SIGURG is not for the program that comes then. */
	sigaction(SIGURG, NULL, &action);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	/* From behind the last number: the answer has no processes. */
	is = is_another_version(ask(path, FG_MOST_PROCESSES, VERSION_WITHIN_NS, &r, &pid));
	sigaction(SIGURG, &action, NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (is)
		say_another_version(path, why, size);
	return is;
}

/* Is a process of the pid namespace that /proc is of?  A line of as many numbers as it has. */
static bool is_of_proc(const char *process)
{
	char path[64], line[256];
	bool inner = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/status", process);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:\t", 7))
			inner = strchr(line + 7, '\t') != NULL;
	if (f)
		fclose(f);
	return !inner;
}

/*
 * Are the numbers of the monitor, which is this process here, those of /proc?  Not if /proc is that
 * of a namespace around ours either, where each is some other process's.
 */
static bool is_of_this_namespace(pid_t pid)
{
	char process[16];

	snprintf(process, sizeof(process), "%d", (int)pid);
	return pid && is_of_proc("self") && is_of_proc(process);
}

int fg_query(const char *path, struct fg_answer *a, char *why, size_t size)
{
	int err;

	a->process = NULL;
	a->count = 0;
	a->pid = 0;
	err = collect(path, a);
	a->same_numbers = !err && is_of_this_namespace(a->pid);
	if (!err)
		return 0;
	fg_answer_free(a);
	if (err == -ENOENT || err == -ECONNREFUSED)
		snprintf(why, size, "no monitor listens on %s: start one (flexguard monitor)",
			 path);
	else if (is_another_version(err))
		say_another_version(path, why, size);
	else if (err == -EADDRNOTAVAIL)
		snprintf(why, size,
			 "'%s' is no socket's name: a path is wanted, or @NAME, of at "
			 "most 107 bytes",
			 path);
	else
		snprintf(why, size, "the monitor on %s does not answer: %s", path, strerror(-err));
	return err;
}

void fg_answer_free(struct fg_answer *a)
{
	free(a->process);
	a->process = NULL;
	a->count = 0;
}

bool fg_socket_option(const struct fg_arguments *a, const char **path)
{
	if (!*a->value || !strcmp(a->value, "@")) {
		fg_arguments_bad("--socket has no value: a path is wanted, or @NAME");
		return false;
	}
	if (strlen(a->value) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		fg_arguments_bad("--socket is too long: sockets have %zu bytes at most",
				 sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
		return false;
	}
	*path = a->value;
	return true;
}

/* Of a process's CLOCK_MONOTONIC, in ns; 0 in the machine's first time namespace. */
static int64_t clock_offset(const char *process)
{
	long long s = 0, ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/timens_offsets", process);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "monotonic %lld %lld", &s, &ns) != 2)
		s = ns = 0;
	fclose(f);
	return s * 1000000000 + ns;
}

int64_t fg_clock_ahead_ns(pid_t pid)
{
	char process[16];

	snprintf(process, sizeof(process), "%d", (int)pid);
	return (pid ? clock_offset(process) : 0) - clock_offset("self");
}

void fg_program_name(int pid, char *name, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, name, size - 1);
		close(fd);
	}
	if (n <= 0) {
		snprintf(name, size, "?");
		return;
	}
	name[n - (name[n - 1] == '\n')] = '\0';
	fg_make_printable(name);
}

void fg_client_name(const struct fg_answer *a, const struct fg_report_process *p, char *name,
		    size_t size)
{
	if (a->same_numbers)
		fg_program_name(p->pid, name, size);
	else
		snprintf(name, size, "?");
}

void fg_user_name(uint32_t uid, char *name, size_t size)
{
	const struct passwd *p = getpwuid(uid);

	if (p)
		snprintf(name, size, "%s", p->pw_name);
	else
		snprintf(name, size, "%u", uid);
}

/* The names of stats.h, of those that slots have too. */
#define NAME(id, name, text) static const char name_##id[] __attribute__((unused)) = name;
FG_STATS_TABLE(NAME)
#undef NAME
#define NAME(id) [FG_SLOT_##id] = name_##id,
const char *const fg_slot_stat_name[FG_SLOT_STATS] = {FG_SLOT_STATS_TABLE(NAME)};
#undef NAME

void fg_json_slot_stats(struct fg_json *j, const __u64 stats[FG_SLOT_STATS])
{
	fg_json_open(j, "stats", '{');
	for (int i = 0; i < FG_SLOT_STATS; i++)
		fg_json_count(j, fg_slot_stat_name[i], stats[i]);
	fg_json_close(j, '}');
}
