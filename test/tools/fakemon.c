/* SPDX-License-Identifier: MIT */
/*
 * A monitor without a kernel part: it speaks the protocol of
 * src/abi/protocol.h to the program that it starts and to its children, and
 * from then on says whatever its mode tells it to.  No answer of a monitor may
 * break a program; this one gives the answers that no real one gives, and forces
 * changes between spinning and blocking at any moment.
 *
 *   fakemon [--mode M] [--seed N] [--preload LIB] [--slots N] [--] program args...
 *
 *   flip     a live monitor whose counts and thread states change at random
 *   lie      garbage in every field that a monitor writes, the heartbeat included
 *   scribble garbage everywhere in both pages
 *   stale    flips as long as a heartbeat is fresh, then leaves all as it stands
 *   dead     closes every connection unanswered
 *   garbage  truncated, nonsensical and wrong answers, in turn
 *   silent   connections are accepted, or not even that, and never answered
 *   none     no socket at all
 *
 * The exit status is the program's; 128 + n if signal n ended it.
 */
#include "abi/protocol.h"
#include "abi/socket.h"
#include "monitor/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CLIENTS 4096
#define MAX_SLOTS   65536

enum mode { FLIP, LIE, SCRIBBLE, STALE, DEAD, GARBAGE, SILENT, NONE };
static const char *const mode_names[] = {"flip", "lie",	    "scribble", "stale",
					 "dead", "garbage", "silent",	"none"};

struct client {
	struct fg_slot *slots;
	unsigned n;
};

static enum mode mode = FLIP;
static uint64_t seed = 1;
static unsigned max_slots = 1024;
static int nr_cpus;
static int listener;
static struct fg_counters *counters;
static int counters_fd; /* read-only */

static pthread_mutex_t clients_lock = PTHREAD_MUTEX_INITIALIZER;
static struct client clients[MAX_CLIENTS]; /* guarded by clients_lock */
static unsigned n_clients;
static unsigned long total_clients;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "fakemon: %s: %s\n", what, strerror(errno));
	_exit(2);
}

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1dull >> 16;
}

#define SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

/* ---- what the pages say --------------------------------------------------- */

static void flip_counts(uint64_t *r)
{
	uint32_t p = rnd(r) & 1 ? 0 : (uint32_t)(1 + rnd(r) % 3);
	unsigned cpu = (unsigned)(rnd(r) % nr_cpus);

	switch (rnd(r) % 4) {
	case 0:
		SET(counters->dom[FG_DOMAIN_ALL].preempted, p);
		SET(counters->domains_only, rnd(r) & 1);
		break;
	case 1:
		SET(counters->dom[1].preempted, p);
		SET(counters->cpu[cpu].total_preempted, counters->cpu[cpu].total_preempted + p);
		break;
	case 2: SET(counters->dom[1].blocked, p); break;
	default:
		SET(counters->cpu[cpu].preempted, p);
		SET(counters->queued[cpu][1], p);
		SET(counters->usable[1][cpu % FG_CPU_GROUPS], rnd(r) & 1 ? p : 0);
	}
}

static void flip_slot(struct fg_slot *s, uint64_t *r)
{
	static const uint32_t states[] = {FG_STATE_ON,	     FG_STATE_ON,    FG_STATE_ON,
					  FG_STATE_RUNNABLE, FG_STATE_SLEEP, FG_STATE_SLEEP,
					  FG_STATE_UNKNOWN,  FG_STATE_DEAD};

	SET(s->state, states[rnd(r) % 8]);
	SET(s->cpu, (uint32_t)(rnd(r) % nr_cpus));
	SET(s->preempted, s->preempted + (rnd(r) & 1));
	SET(s->blocked, s->blocked + (rnd(r) & 1));
	SET(s->involuntary, s->involuntary + (rnd(r) & 1));
}

static void scribble(void *page, size_t bytes, uint64_t *r, unsigned words)
{
	while (words--) {
		uint64_t v = rnd(r);

		if (v & 1) /* small numbers mean more than large ones */
			v = v >> 1 & 7;
		SET(((uint32_t *)page)[rnd(r) % (bytes / 4)], (uint32_t)v);
	}
}

static void lie_slot(struct fg_slot *s, uint64_t *r)
{
	SET(s->state, (uint32_t)rnd(r) >> (rnd(r) % 32));
	SET(s->cpu, (uint32_t)rnd(r) >> (rnd(r) % 32));
	SET(s->bound, (uint32_t)rnd(r));
	SET(s->preempted, rnd(r));
	SET(s->blocked, rnd(r));
	SET(s->involuntary, rnd(r));
}

/* Low slot numbers are the ones in use. */
static struct fg_slot *any_slot(struct client *c, uint64_t *r)
{
	unsigned top = rnd(r) & 1 ? 16 : rnd(r) & 1 ? 128 : c->n;

	return &c->slots[rnd(r) % (top < c->n ? top : c->n)];
}

static void change_something(uint64_t *r)
{
	unsigned times = (unsigned)(rnd(r) % 16);
	struct client c = {NULL, 0};

	pthread_mutex_lock(&clients_lock);
	if (n_clients) /* the oldest one is the program itself */
		c = clients[rnd(r) & 1 ? 0 : rnd(r) % n_clients];
	while (times--) {
		if (mode == SCRIBBLE) {
			scribble(counters, sizeof *counters, r, 64);
			if (c.slots) {
				struct fg_slot *one = any_slot(&c, r);

				scribble(c.slots, c.n * sizeof *c.slots, r, 64);
				SET(one->pending,
				    /* what a thread might take for a state of its own */
				    rnd(r) % 4);
				SET(one->cs, (uint32_t)(rnd(r) % 4));
				SET(one->role, (uint32_t)(rnd(r) % 8));
			}
		} else if (mode == LIE) {
			scribble(counters, sizeof *counters, r, 16);
			if (rnd(r) & 1)
				SET(counters->heartbeat_ns,
				    fg_now_ns() + (rnd(r) & 1 ? 0 : rnd(r)));
			if (c.slots)
				lie_slot(any_slot(&c, r), r);
		} else {
			flip_counts(r);
			for (int i = 0; i < 4 && c.slots; i++)
				flip_slot(any_slot(&c, r), r);
		}
	}
	pthread_mutex_unlock(&clients_lock);
}

static void *flipper(void *arg)
{
	uint64_t r = seed * 0x9e3779b97f4a7c15ull + 1,
		 end = fg_now_ns() + FG_HEARTBEAT_STALE_NS / 2;

	(void)arg;
	prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
	for (;;) {
		struct timespec ts = {0,
				      (long)(rnd(&r) % 16 ? rnd(&r) % 100000 : rnd(&r) % 3000000)};

		if (mode == FLIP || (mode == LIE && !(rnd(&r) % 64)) ||
		    (mode == STALE && fg_now_ns() < end))
			SET(counters->heartbeat_ns, fg_now_ns());
		if (mode != STALE || fg_now_ns() < end || !n_clients)
			change_something(&r);
		nanosleep(&ts, NULL);
	}
	return NULL;
}

/* ---- the socket ------------------------------------------------------------ */

static void send_with(int fd, const void *data, size_t len, const int *fds, int n)
{
	char control[CMSG_SPACE(4 * sizeof(int))];
	struct iovec iov = {(void *)data, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	memset(control, 0, sizeof control);
	if (n) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static int memory(const char *name, size_t bytes, void **map)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd");
	*map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED)
		die("mmap");
	return fd;
}

static void welcome(int fd, const struct fg_hello *h, uint64_t *r)
{
	struct fg_welcome w = {
	    .magic = FG_PROTO_MAGIC, .abi = FG_ABI_VERSION, .domain = 1, .nr_cpus = nr_cpus};
	struct client c;
	void *map;
	int fds[2] = {-1, counters_fd};

	if (h->from >= max_slots) {
		w.error = -EDQUOT;
		send_with(fd, &w, sizeof w, NULL, 0);
		return;
	}
	/* A piece of a process's slots is one client more. */
	c.n = h->want_slots < 2			  ? 2 :
	      h->want_slots > max_slots - h->from ? max_slots - h->from :
						    h->want_slots;
	fds[0] = memory("slots", c.n * sizeof(struct fg_slot), &map);
	c.slots = map;
	w.slots = h->from + c.n;
	pthread_mutex_lock(&clients_lock);
	total_clients += !h->from;
	if (n_clients == MAX_CLIENTS / 16) { /* forget one of the children */
		unsigned i = 1 + (unsigned)(rnd(r) % (n_clients - 1));

		munmap(clients[i].slots, clients[i].n * sizeof(struct fg_slot));
		clients[i] = clients[--n_clients];
	}
	clients[n_clients++] = c;
	pthread_mutex_unlock(&clients_lock);
	send_with(fd, &w, sizeof w, fds, 2);
	close(fds[0]);
}

#define HUGE_PAGE (2u << 20)
#define KINDS	  19u

/*
 * A descriptor that the kernel writes to, as any user may ask for one: what maps it may write to
 * the first page alone.
 */
static int perf_event(void)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof a,
				    .config = PERF_COUNT_SW_DUMMY,
				    .exclude_kernel = 1,
				    .exclude_hv = 1};

	return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Memory with one more seal, or of huge pages; -1 where there is none. */
static int sealed(unsigned flags, int seal, size_t bytes)
{
	int fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd >= 0 && (ftruncate(fd, bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | seal)))
		die("seals");
	return fd;
}

static int rings(void)
{
	struct io_uring_params p = {0};

	return (int)syscall(SYS_io_uring_setup, 128, &p);
}

static void talk_garbage(int fd, uint64_t *r, unsigned kind)
{
	struct fg_welcome w = {.magic = FG_PROTO_MAGIC,
			       .abi = FG_ABI_VERSION,
			       .slots = 64,
			       .domain = 1,
			       .nr_cpus = nr_cpus};
	struct fg_counters alive = {.generation = seed, .heartbeat_ns = fg_now_ns()};
	unsigned char noise[512];
	const void *what = &w;
	size_t size = sizeof w;
	int fds[4], pipes[2], small, n = 2;
	void *map;

	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (unsigned char)rnd(r);
	if (pipe2(pipes, O_CLOEXEC))
		die("pipe");
	small = memory("small", 4096, &map);
	munmap(map, 4096);
	fds[0] = fds[1] = small;
	fds[2] = fds[3] = pipes[0];
	switch (kind) {
	case 0: /* noise, any length, no descriptor */
		what = noise;
		size = 1 + rnd(r) % sizeof noise;
		n = 0;
		break;
	case 1: /* truncated */ size = 1 + rnd(r) % (sizeof w - 1); break;
	case 2: /* too long */
		what = memcpy(noise, &w, sizeof w);
		size = sizeof noise;
		break;
	case 3: w.magic ^= 1; break;
	case 4: w.abi++; break;
	case 5: /* an error, and still descriptors */
		w.error = -EPERM;
		n = rnd(r) & 1 ? 2 : 0;
		break;
	case 6: /* no descriptors */ n = 0; break;
	case 7: n = 1; break;
	case 8: /* too many */ n = 4; break;
	case 9: /* nothing that can be mapped */ fds[0] = fds[1] = pipes[0]; break;
	case 10: /* less memory than it says, so that a reader would fault */
		w.slots = 1u << 20;
		break;
	case 11: w.slots = rnd(r) & 1 ? 0 : rnd(r) & 1 ? 1 : 0xffffffff; break;
	case 12: /* an index out of range */
		w.domain = rnd(r) & 1 ? FG_MAX_DOMAINS : 0xfffffff0;
		w.nr_cpus = 0xffffffff;
		fds[1] = counters_fd;
		w.slots = 4096 / sizeof(struct fg_slot);
		break;
	case 13: /* files that are shorter once the client has them */
		fds[0] = memfd_create("shrinks", MFD_CLOEXEC);
		fds[1] = fds[0];
		if (pwrite(fds[0], &alive, sizeof alive, 0) != sizeof alive ||
		    ftruncate(fds[0], sizeof *counters))
			die("shrinks");
		break;
	case 14: /* memory that is not a map's */
	case 15: /* may not be written */
	case 16: /* may not be where we are told to */
	case 17: /* has larger pages, over what is behind the slots */
		fds[0] = kind == 14 ? perf_event() :
			 kind == 15 ? sealed(0, F_SEAL_FUTURE_WRITE, 9 * 4096) :
			 kind == 16 ? rings() :
				      sealed(MFD_HUGETLB, 0, HUGE_PAGE);
		if (fds[0] < 0) /* it may not */
			fds[0] = pipes[0];
		fds[1] = counters_fd;
		w.slots = (rnd(r) & 1 ? 9 : 1) * 4096 / sizeof(struct fg_slot);
		break;
	default: /* the same file twice, counters too short */ w.slots = 32;
	}
	send_with(fd, what, size, fds, n);
	if (fds[0] != small && fds[0] != pipes[0]) {
		while (recv(fd, noise, sizeof noise, 0) > 0) /* until it has hung up */
			;
		if (kind == 13 && ftruncate(fds[0], 0))
			die("ftruncate");
		close(fds[0]);
	}
	close(small);
	close(pipes[0]);
	close(pipes[1]);
}

static void *server(void *arg)
{
	uint64_t r = seed * 0x2545f4914f6cdd1dull + 3;
	unsigned kind = (unsigned)seed;

	(void)arg;
	for (;;) {
		struct timeval limit = {1, 0};
		struct fg_hello h;
		ssize_t got;
		int fd;

		if (mode == SILENT && (seed & 1))
			pause(); /* the backlog takes the connection; nobody ever looks at it */
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		if (mode == SILENT)
			continue; /* stays open */
		if (mode == DEAD) {
			close(fd);
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		got = recv(fd, &h, sizeof h, 0);
		if (got <= 0) { /* its process ended in between */
			close(fd);
			continue;
		}
		if (got != sizeof h || h.magic != FG_PROTO_MAGIC || h.abi != FG_ABI_VERSION) {
			fprintf(stderr, "fakemon: not a hello\n");
			_exit(
			    2); /* set up wrongly: 1 would be a fault that was caught (must-fail) */
		}
		if (mode == GARBAGE)
			talk_garbage(fd, &r, kind++ % KINDS);
		else
			welcome(fd, &h, &r);
		close(fd);
	}
	return NULL;
}

static void listen_at(char *name, size_t size)
{
	struct sockaddr_un a;

	snprintf(name, size, "@flexguard-fake-%d", (int)getpid());
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&a, fg_socket_address(&a, name)) ||
	    listen(listener, 64))
		die("socket");
}

static void make_counters(void)
{
	char path[64];
	void *map;
	int fd = memory("counters", sizeof *counters, &map);

	counters = map;
	counters->generation = seed;
	counters->heartbeat_ns = fg_now_ns();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	counters_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (counters_fd < 0)
		die("counters");
	close(fd);
}

/* ---- main ------------------------------------------------------------------ */

static pid_t child;

static void pass_on(int sig)
{
	kill(child, sig);
}

static const char *preload;
static int verbose;

/* 0, or an exit status. */
static int parse(int argc, char **argv)
{
	static const struct option options[] = {{"mode", 1, NULL, 'm'},	   {"seed", 1, NULL, 's'},
						{"preload", 1, NULL, 'p'}, {"slots", 1, NULL, 'n'},
						{"verbose", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		switch (c) {
		case 'm':
			for (mode = FLIP; mode < NONE && strcmp(optarg, mode_names[mode]);)
				mode++;
			if (strcmp(optarg, mode_names[mode]))
				return fprintf(stderr, "fakemon: no such mode: %s\n", optarg), 2;
			break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'p': preload = optarg; break;
		case 'n': max_slots = (unsigned)atoi(optarg); break;
		case 'v': verbose = 1; break;
		default: return 2;
		}
	if (optind == argc || max_slots < 2 || max_slots > MAX_SLOTS)
		return fprintf(
			   stderr,
			   "usage: fakemon [--mode M] [--seed N] [--preload LIB] [--] program...\n"),
		       2;
	return 0;
}

int main(int argc, char **argv)
{
	char name[64] = "@flexguard-fake-none";
	int status = parse(argc, argv);
	pthread_t t;

	if (status)
		return status;
	nr_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	signal(SIGPIPE, SIG_IGN);
	make_counters();
	if (mode != NONE) {
		listen_at(name, sizeof name);
		if (pthread_create(&t, NULL, server, NULL) ||
		    pthread_create(&t, NULL, flipper, NULL))
			die("thread");
	}
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_DFL);
		setenv(FG_SOCKET_ENV, name, 1);
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		execvp(argv[optind], argv + optind);
		fprintf(stderr, "fakemon: %s: %s\n", argv[optind], strerror(errno));
		_exit(2);
	}
	signal(SIGTERM, pass_on);
	signal(SIGINT, pass_on);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (verbose)
		fprintf(stderr, "fakemon: mode %s, seed %llu, %lu clients welcomed\n",
			mode_names[mode], (unsigned long long)seed, total_clients);
	status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	/* A test whose library never asked has not tested anything. */
	if (!status && preload && !total_clients && (mode <= STALE)) {
		fprintf(stderr, "fakemon: the program never said hello\n");
		status = 2;
	}
	fflush(NULL);
	_exit(status);
}
