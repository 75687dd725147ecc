/* SPDX-License-Identifier: MIT */
/*
 * `flexguard metrics`: the monitor's counts as Prometheus text
 * (https://prometheus.io/docs/instrumenting/exposition_formats/), once or over HTTP.
 * A process of its own: what parses HTTP needs no privilege, and the monitor has some.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/socket.h"
#include "cli/commands/commands.h"
#include "cli/commands/metrics.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/common/query.h"
#include "cli/common/units.h"
#include "cli/launch/embed.h"
#include "monitor/brief.h"

#ifdef FG_HAVE_MICROHTTPD
#include <dlfcn.h>
#include <microhttpd.h>
#endif

struct metric {
	const char *name, *type, *help, *labels; /* labels: NULL or "{...}" */
	double value;
};

static void print_metric(FILE *f, const struct metric *m, const struct metric *before)
{
	if (!before || strcmp(before->name, m->name))
		fprintf(f, "# HELP flexguard_%s %s\n# TYPE flexguard_%s %s\n", m->name, m->help,
			m->name, m->type);
	fprintf(f, "flexguard_%s%s %.15g\n", m->name, m->labels ? m->labels : "", m->value);
}

static void print_metrics(FILE *f, const struct metric *m, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		print_metric(f, &m[i], i ? &m[i - 1] : NULL);
}

static void print_monitor(FILE *f, const struct fg_answer *a)
{
	static const char critical[] = "Threads that hold a lock, or are next, and are off CPU.";
	static const char lost[] = "Times such a thread left its CPU.";
	static const char hellos[] = "Registrations of processes.";
	const struct fg_report *r = &a->sum;
	char version[64];
	const struct metric m[] = {
	    {"monitor_info", "gauge", "The monitor's version.", version, 1},
	    {"uptime_seconds", "gauge", "Since the monitor was started.", NULL,
	     (double)r->up_ns / 1e9},
	    {"processes", "gauge", "Registered processes.", NULL, (double)r->processes},
	    {"max_processes", "gauge", "Processes that may register.", NULL,
	     (double)r->max_processes},
	    {"registrations_total", "counter", hellos, "{result=\"accepted\"}",
	     (double)r->registered},
	    {"registrations_total", "counter", hellos, "{result=\"refused\"}", (double)r->refused},
	    {"connections_dropped_total", "counter", "Connections that said nothing.", NULL,
	     (double)r->dropped},
	    {"critical_threads", "gauge", critical, "{state=\"preempted\"}", (double)r->preempted},
	    {"critical_threads", "gauge", critical, "{state=\"asleep\"}", (double)r->blocked},
	    {"critical_switches_total", "counter", lost, "{state=\"preempted\"}",
	     (double)r->total_preempted},
	    {"critical_switches_total", "counter", lost, "{state=\"asleep\"}",
	     (double)r->total_blocked},
	    {"missed_events_total", "counter", "Switches that the audit found missing.", NULL,
	     (double)r->missed},
	    {"sampled_switch_seconds_total", "counter",
	     "Time in the hook, in the switches that were timed.", NULL, (double)r->cost_ns / 1e9},
	    {"sampled_switches_total", "counter", "Context switches that were timed.", NULL,
	     (double)r->cost_samples},
	};

	snprintf(version, sizeof(version), "{version=\"%s\"}", r->version);
	print_metrics(f, m, sizeof(m) / sizeof(m[0]));
}

static void print_locks(FILE *f, const struct fg_report *r)
{
	for (size_t i = 0; i < FG_LOCK_METRICS; i++) {
		const struct fg_lock_metric *m = &fg_lock_metric[i];
		const struct metric sum = {m->name, "counter", m->help, NULL,
					   (double)r->stats[m->stat] / m->unit};

		print_metric(f, &sum, NULL);
	}
}

/* What was asked for on the command line. */
struct asked {
	const char *path; /* of the monitor's socket */
	int by;		  /* FG_GROUP_*; 0: no groups */
};

static void print_all(FILE *f, const struct asked *asked)
{
	struct fg_answer a;
	char why[300];
	bool up = !fg_query(asked->path, &a, why, sizeof(why));
	const struct metric is_up = {"up", "gauge", "Whether the monitor answers.", NULL, up};

	print_metric(f, &is_up, NULL);
	if (!up)
		return;
	print_monitor(f, &a);
	print_locks(f, &a.sum);
	if (asked->by)
		fg_groups_print(f, &a, asked->by);
	fg_answer_free(&a);
}

/* ---- serving ---------------------------------------------------------------- */

#ifdef FG_HAVE_MICROHTTPD

/* Loaded for --listen only: nothing else needs the library, and it brings its own TLS along. */
#define MHD_LIBRARY "libmicrohttpd.so.12"
/* clang-format off */
#define MHD_FUNCTIONS(X) \
	X(create_response_from_buffer) X(add_response_header) X(queue_response) \
	X(destroy_response) X(start_daemon) X(stop_daemon)
/* clang-format on */
#define X(name) __typeof__(MHD_##name) *name;
static struct {
	MHD_FUNCTIONS(X)
} mhd;
#undef X

static bool load_microhttpd(void)
{
	void *handle = dlopen(MHD_LIBRARY, RTLD_NOW | RTLD_LOCAL);

#define X(name) ok = ok && (mhd.name = (__typeof__(mhd.name))dlsym(handle, "MHD_" #name)) != NULL;
	bool ok = handle != NULL;

	MHD_FUNCTIONS(X)
#undef X
	if (!ok)
		fg_error("--listen needs libmicrohttpd (package libmicrohttpd12): %s", dlerror());
	return ok;
}

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *type,
			     char *text, size_t size, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = mhd.create_response_from_buffer(size, text, mode);
	enum MHD_Result result;

	if (!r)
		return MHD_NO;
	mhd.add_response_header(r, "Content-Type", type);
	result = mhd.queue_response(c, status, r);
	mhd.destroy_response(r);
	return result;
}

static enum MHD_Result serve(void *asked, struct MHD_Connection *c, const char *url,
			     const char *method, const char *version, const char *data,
			     size_t *size, void **state)
{
	static const char content_type[] = "text/plain; version=0.0.4; charset=utf-8";
	static char not_found[] = "metrics are at /metrics\n", not_get[] = "only GET\n";
	char *text = NULL;
	size_t length = 0;
	FILE *f;

	(void)version, (void)data, (void)size, (void)state;
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return reply(c, 405, "text/plain", not_get, strlen(not_get),
			     MHD_RESPMEM_PERSISTENT);
	if (strcmp(url, "/metrics"))
		return reply(c, 404, "text/plain", not_found, strlen(not_found),
			     MHD_RESPMEM_PERSISTENT);
	f = open_memstream(&text, &length);
	if (!f)
		return MHD_NO;
	print_all(f, asked);
	if (fclose(f)) {
		free(text);
		return MHD_NO;
	}
	return reply(c, 200, content_type, text, length, MHD_RESPMEM_MUST_FREE);
}

/*
 * A scraper needs one, for as long as it takes to say a line and to read the answer; the others are
 * for those who do not come to the end of theirs.  16 KB each.  Not varied.
 */
#define CONNECTIONS 256u
#define SILENT_S    3u

static int listen_unix(const char *path)
{
	struct sockaddr_un un;
	socklen_t size = fg_socket_address(&un, path);
	struct stat st;
	int fd = -1;

	errno = strlen(path) < sizeof(un.sun_path) ? EINVAL : ENAMETOOLONG;
	if (!size)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* One that nobody listens on any more is in the way. */
	if (un.sun_path[0] && !lstat(path, &st) && S_ISSOCK(st.st_mode) &&
	    connect(fd, (struct sockaddr *)&un, size) && errno == ECONNREFUSED)
		unlink(path);
	fg_brief_refuse(fd);
	if (bind(fd, (struct sockaddr *)&un, size) || listen(fd, CONNECTIONS)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* PORT: of 127.0.0.1, since what is counted is not for everybody; ADDRESS:PORT, [ADDRESS]:PORT. */
static struct addrinfo *find_address(const char *text)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	char host[64] = "127.0.0.1";
	struct addrinfo *to;
	struct in_addr whole;
	uint64_t number;

	if (colon) {
		bool brackets = *text == '[' && colon > text + 2 && colon[-1] == ']';
		int length = (int)(colon - text) - 2 * brackets;

		/* Without brackets the last part of an address would be the port. */
		if (!length || length >= (int)sizeof(host) ||
		    (!brackets && memchr(text, ':', (size_t)length)))
			return NULL;
		snprintf(host, sizeof(host), "%.*s", length, text + brackets);
	}
	/* As inet_aton(3) getaddrinfo() takes 1.2.3 for 1.2.0.3, and 0 for all of the machine's. */
	if (!strchr(host, ':') && inet_pton(AF_INET, host, &whole) != 1)
		return NULL;
	if (!fg_integer(port, 1, 65535, &number) || getaddrinfo(host, port, &hints, &to))
		return NULL;
	return to;
}

static int listen_port(const char *text)
{
	struct addrinfo *to = find_address(text);
	int fd, one = 1, err;

	if (!to) {
		errno = EINVAL;
		return -1;
	}
	fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	err = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		      bind(fd, to->ai_addr, to->ai_addrlen) || listen(fd, CONNECTIONS) ?
		  errno :
		  0;
	freeaddrinfo(to);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

static int serve_at(const char *address, const struct asked *asked)
{
	bool is_unix = !strncmp(address, "unix:", 5);
	struct stat made = {0}, st;
	int fd, got;
	struct MHD_Daemon *d;
	sigset_t stop;

	if (!load_microhttpd())
		return FG_EXIT_OWN;
	fd = is_unix ? listen_unix(address + 5) : listen_port(address);
	if (fd < 0) {
		fg_error("cannot listen on '%s': %s%s", address,
			 errno == EINVAL ? "unix:PATH, PORT, ADDRESS:PORT or "
					   "[ADDRESS]:PORT is wanted" :
					   strerror(errno),
			 errno == EADDRINUSE ? ": give --listen another" : "");
		return FG_EXIT_OWN;
	}
	if (is_unix && address[5] != '@')
		(void)!lstat(address + 5, &made);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	/*
	 * ITC: without it the library ends its thread by way of the listening socket, which the
	 * thread does not look at while it has all the connections that it may have.
	 */
	d = mhd.start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ITC, 0, NULL,
			     NULL, serve, (void *)asked, MHD_OPTION_LISTEN_SOCKET, fd,
			     MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
			     MHD_OPTION_CONNECTION_TIMEOUT, SILENT_S,
			     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_END);
	if (!d) {
		fg_error("cannot start the HTTP server: out of memory or descriptors");
		close(fd);
		return FG_EXIT_OWN;
	}
	sigwait(&stop, &got);
	if (made.st_ino && !lstat(address + 5, &st) && st.st_dev == made.st_dev &&
	    st.st_ino == made.st_ino) /* not a later one's */
		unlink(address + 5);
	mhd.stop_daemon(d); /* closes the socket */
	return 0;
}

#else

static int serve_at(const char *address, const struct asked *asked)
{
	(void)address, (void)asked;
	fg_error("--listen is not there, built without libmicrohttpd: without it the text goes "
		 "to stdout");
	return FG_EXIT_OWN;
}

#endif

int fg_cmd_metrics(int argc, char **argv)
{
	struct asked asked = {.path = fg_socket_path()};
	const char *address = NULL;
	struct fg_arguments a = fg_arguments(argc, argv);
	int option;

	while ((option = fg_arguments_next(&a)) >= 0)
		if (option == FG_METRICS_LISTEN)
			address = a.value;
		else if (option == FG_METRICS_BY) {
			asked.by = fg_groups_by(a.value);
			if (!asked.by) {
				fg_error("--by '%s': uid, program or uid,program is wanted",
					 a.value);
				return FG_EXIT_OWN;
			}
		} else if (!fg_socket_option(&a, &asked.path))
			return FG_EXIT_OWN;
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	if (!fg_arguments_no_more(&a))
		return FG_EXIT_OWN;
	if (address)
		return serve_at(address, &asked);
	print_all(stdout, &asked);
	return 0;
}
