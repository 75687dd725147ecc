// SPDX-License-Identifier: MIT
/* See harness.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <sys/stat.h>
#include "abi/socket.h"
#include "harness.h"

static __thread struct fg_tls_bind tls_bind;
void (*monitor_prepare)(void);

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(77);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	_exit(1);
}

bool write_file(const char *folder, const char *file, const char *text)
{
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

void test_begin(void)
{
	alarm(3 * DEADLINE_S);
	if (!__rseq_size)
		skip("glibc has registered no rseq area (old kernel, or glibc.pthread.rseq=0)");
}

void look_from_another_cpu(void)
{
	cpu_set_t all, others;

	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		return;
	others = all;
	CPU_CLR(sched_getcpu(), &others);
	sched_setaffinity(0, sizeof(others), &others);
	sched_setaffinity(0, sizeof(all), &all);
}

pid_t spawn(void (*child)(void *), void *arg)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	child(arg);
	_exit(0);
}

void reap(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77); /* it has said why */
	if (status)
		fail("child %d ended with status 0x%x", pid, status);
}

/* ---- monitor ---- */

struct start {
	const struct fg_monitor_config *cfg;
	int listen_fd, stop_fd, ready_fd;
};

struct fg_monitor *monitor_open_or_skip(const struct fg_monitor_config *cfg)
{
	struct fg_monitor *m;
	char why[256] = "";
	int err = fg_monitor_open(&m, cfg, why, sizeof(why));

	if (err == -EPERM || err == -ENOSYS || err == -ENOTSUP)
		skip("no monitor: %s", why);
	if (err)
		fail("fg_monitor_open: %s (%s)", strerror(-err), why);
	return m;
}

static void run_monitor(void *arg)
{
	struct start *s = arg;
	struct fg_monitor *m;
	int err;

	if (monitor_prepare)
		monitor_prepare();
	m = monitor_open_or_skip(s->cfg);
	if (write(s->ready_fd, "", 1) != 1)
		_exit(1);
	err = fg_monitor_serve(m, s->listen_fd, FG_NO_LOCK, s->stop_fd);
	if (err)
		fail("fg_monitor_serve: %s", strerror(-err));
	fg_monitor_close(m);
}

void monitor_start(struct monitor *m, const struct fg_monitor_config *cfg)
{
	int stop[2], ready[2];
	struct start s = {.cfg = cfg};
	char byte;

	snprintf(m->name, sizeof(m->name), "@flexguard-test-%d-%llu", getpid(),
		 (unsigned long long)fg_now_ns());
	CHECK(!pipe2(stop, O_CLOEXEC) && !pipe2(ready, O_CLOEXEC));
	s.listen_fd = fg_monitor_listen(m->name, 0666);
	CHECK(s.listen_fd >= 0);
	s.stop_fd = stop[0];
	s.ready_fd = ready[1];
	m->pid = fork();
	CHECK(m->pid >= 0);
	if (!m->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(stop[1]);
		close(ready[0]);
		run_monitor(&s);
		_exit(0);
	}
	close(s.listen_fd);
	close(stop[0]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		reap(m->pid), fail("the monitor left without a word");
	close(ready[0]);
	m->stop_fd = stop[1];
}

void monitor_stop(struct monitor *m)
{
	close(m->stop_fd);
	reap(m->pid);
}

void monitor_kill(struct monitor *m)
{
	kill(m->pid, SIGKILL);
	CHECK(waitpid(m->pid, NULL, 0) == m->pid);
	close(m->stop_fd);
}

/* ---- client ---- */

int64_t tls_offset(void)
{
	return (char *)&tls_bind - ((char *)__builtin_thread_pointer() + __rseq_offset);
}

int client_connect(const char *name)
{
	struct sockaddr_un addr;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	if (connect(fd, (struct sockaddr *)&addr, fg_socket_address(&addr, name))) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

int client_exchange(int sock, const void *hello, size_t size, struct fg_welcome *welcome,
		    int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))] = {0};
	struct iovec iov = {welcome, sizeof(*welcome)};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t n;

	fds[0] = fds[1] = -1;
	if (send(sock, hello, size, MSG_NOSIGNAL) < 0)
		return -errno;
	n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	if (!n)
		return -EPIPE;
	CHECK(n == sizeof(*welcome) && welcome->magic == FG_PROTO_MAGIC);
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS && cmsg->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(fds, CMSG_DATA(cmsg), 2 * sizeof(int));
	return 0;
}

void client_join(struct client *c, const char *name, uint32_t want_slots)
{
	struct fg_hello hello = {
	    .magic = FG_PROTO_MAGIC,
	    .abi = FG_ABI_VERSION,
	    .want_slots = want_slots,
	    .tls_offset = tls_offset(),
	};
	uint64_t until = fg_now_ns() + DEADLINE_S * 1000000000ull;
	int fds[2], err;

	/*
	 * Once more where the monitor hangs up, as the library does: on a machine whose CPUs are
	 * taken away, a second passes between connect() and hello, or before others of this user
	 * have read their answers.
	 */
	do {
		int sock = client_connect(name);

		CHECK(sock >= 0);
		err = client_exchange(sock, &hello, sizeof(hello), &c->welcome, fds);
		close(sock);
	} while (err == -EPIPE && fg_now_ns() < until);
	if (err || c->welcome.error)
		fail("hello: %s, welcome: %s", strerror(-err), strerror(-c->welcome.error));
	CHECK(fds[0] >= 0 && fds[1] >= 0);
	c->slots_fd = fds[0];
	c->counters_fd = fds[1];
	c->slots = mmap(NULL, c->welcome.slots * sizeof(struct fg_slot), PROT_READ | PROT_WRITE,
			MAP_SHARED, c->slots_fd, 0);
	c->counters = mmap(NULL, sizeof(struct fg_counters), PROT_READ, MAP_SHARED, c->counters_fd,
			   0);
	CHECK(c->slots != MAP_FAILED && c->counters != MAP_FAILED);
}

struct fg_report monitor_report(const char *name)
{
	const struct fg_query q = {.magic = FG_QUERY_MAGIC, .abi = FG_ABI_VERSION};
	struct fg_report r;
	int sock = client_connect(name);
	ssize_t n;

	CHECK(sock >= 0 && send(sock, &q, sizeof(q), MSG_NOSIGNAL) == sizeof(q));
	n = recv(sock, &r, sizeof(r), 0);
	CHECK(n >= (ssize_t)offsetof(struct fg_report, process) && !r.error);
	close(sock);
	return r;
}

void client_leave(struct client *c)
{
	munmap(c->slots, c->welcome.slots * sizeof(struct fg_slot));
	munmap((void *)c->counters, sizeof(struct fg_counters));
	close(c->slots_fd);
	close(c->counters_fd);
}

void bind_thread(struct client *c, uint32_t slot)
{
	c->slots[slot].owner_id = slot;
	tls_bind.slot = slot;
	tls_bind.check = slot ^ FG_TLS_MAGIC;
}

void unbind_thread(void)
{
	tls_bind.slot = 0;
}

uint64_t ever_preempted(const struct fg_counters *c)
{
	uint64_t all = 0;

	for (int i = 0; i < FG_MAX_CPUS; i++)
		all += __atomic_load_n(&c->cpu[i].total_preempted, __ATOMIC_RELAXED);
	return all;
}

uint64_t ever_blocked(const struct fg_counters *c)
{
	uint64_t all = 0;

	for (int i = 0; i < FG_MAX_CPUS; i++)
		all += __atomic_load_n(&c->cpu[i].total_blocked, __ATOMIC_RELAXED);
	return all;
}

bool all_sane(const struct fg_counters *c, uint32_t limit)
{
	const struct fg_counters *v = c;
	uint32_t i, k;

	for (i = 0; i < FG_MAX_DOMAINS; i++)
		if (__atomic_load_n(&v->dom[i].preempted, __ATOMIC_RELAXED) > limit ||
		    __atomic_load_n(&v->dom[i].blocked, __ATOMIC_RELAXED) > limit)
			return false;
	for (i = 0; i < FG_MAX_CPUS; i++)
		if (__atomic_load_n(&v->cpu[i].preempted, __ATOMIC_RELAXED) > limit)
			return false;
	for (i = 0; i < FG_MAX_DOMAINS; i++) {
		for (k = 0; k < FG_MAX_CPUS; k++)
			if (__atomic_load_n(&v->queued[k][i], __ATOMIC_RELAXED) > limit)
				return false;
		for (k = 0; k < FG_CPU_GROUPS; k++)
			if (__atomic_load_n(&v->usable[i][k], __ATOMIC_RELAXED) > limit)
				return false;
	}
	return true;
}

bool all_zero(const struct fg_counters *c)
{
	return all_sane(c, 0);
}

/* ---- actors ---- */

static void *act(void *arg)
{
	static char sink[1 << 20];
	struct actor *a = arg;
	struct sched_param param = {0};
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (a->client)
		bind_thread(a->client, a->slot);
	if (a->cpu >= 0)
		pin(0, a->cpu);
	if (sched_setscheduler(0, a->policy, &param))
		fail("sched_setscheduler: %s", strerror(errno));
	__atomic_store_n(&a->tid, gettid(), __ATOMIC_RELEASE);
	for (;;) {
		__atomic_fetch_add(&a->rounds, 1, __ATOMIC_RELAXED);
		switch ((enum deed)__atomic_load_n(&a->deed, __ATOMIC_ACQUIRE)) {
		case ACT_SLEEP:
			syscall(SYS_futex, &a->deed, FUTEX_WAIT_PRIVATE, ACT_SLEEP, NULL, NULL, 0);
			break;
		case ACT_BUSY: break;
		case ACT_YIELD: sched_yield(); break;
		case ACT_SYSCALL:
			if (read(zero, sink, sizeof(sink)) < 0)
				fail("read");
			break;
		case ACT_QUIT: close(zero); return NULL;
		}
	}
}

void actor_start(struct actor *a, struct client *c, uint32_t slot, int cpu, int policy)
{
	memset(a, 0, sizeof(*a));
	a->client = c;
	a->slot = slot;
	a->cpu = cpu;
	a->policy = policy;
	CHECK(!pthread_create(&a->thread, NULL, act, a));
	WAIT_FOR(__atomic_load_n(&a->tid, __ATOMIC_ACQUIRE));
}

void actor_tell(struct actor *a, enum deed deed)
{
	__atomic_store_n(&a->deed, deed, __ATOMIC_RELEASE);
	syscall(SYS_futex, &a->deed, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void actor_get_up(struct actor *a)
{
	uint64_t rounds;

	actor_tell(a, ACT_BUSY);
	rounds = __atomic_load_n(&a->rounds, __ATOMIC_RELAXED);
	WAIT_FOR(__atomic_load_n(&a->rounds, __ATOMIC_RELAXED) > rounds);
}

void actor_lie_down(struct actor *a)
{
	__atomic_store_n(&a->deed, ACT_SLEEP, __ATOMIC_RELEASE);
}

void actor_join(struct actor *a)
{
	actor_tell(a, ACT_QUIT);
	CHECK(!pthread_join(a->thread, NULL));
}

void actor_acquire(struct actor *a)
{
	struct fg_slot *slot = actor_slot(a);

	__atomic_store_n(&slot->pending, (uintptr_t)&a->word, __ATOMIC_RELAXED);
	__atomic_store_n(&a->word, slot->owner_id, __ATOMIC_RELEASE);
}

void actor_release(struct actor *a)
{
	__atomic_store_n(&a->word, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&actor_slot(a)->pending, 0, __ATOMIC_RELAXED);
}

int usable_cpus(int *cpus, int max)
{
	cpu_set_t set;
	int i, n = 0;

	CHECK(!sched_getaffinity(0, sizeof(set), &set));
	for (i = 0; i < CPU_SETSIZE && n < max; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = i;
	return n;
}

void pin(pid_t tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(tid, sizeof(set), &set))
		fail("sched_setaffinity: %s", strerror(errno));
}

void put_below(const char *root, const char *file, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}
