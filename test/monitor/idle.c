// SPDX-License-Identifier: MIT
/*
 * A monitor that nobody is registered at is in no switch's way: some time after the last process
 * has gone its programs are on no tracepoint any more.  The next process finds them there, and they
 * count as before.  Where the kernel does not take them, who comes is told so, people hear of it
 * once, and reports tell until it does.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include "harness.h"

static volatile struct {
	bool refuses;
	uint32_t notes;
} *kernel;

struct bpf_program;
struct bpf_link *bpf_program__attach(const struct bpf_program *program);

/* In place of libbpf's, in the monitor. */
struct bpf_link *bpf_program__attach(const struct bpf_program *program)
{
	static __typeof__(bpf_program__attach) *real;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "bpf_program__attach");
	if (!kernel->refuses)
		return real(program);
	errno = ENOMEM;
	return NULL;
}

static void note(const char *sentence)
{
	kernel->notes += *sentence != 0;
}

/* Programs that it has on tracepoints; its descriptors tell. */
static int hooks(pid_t monitor)
{
	char folder[32], line[128];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(folder, sizeof(folder), "/proc/%d/fdinfo", monitor);
	d = opendir(folder);
	CHECK(d);
	while ((e = readdir(d))) {
		char path[sizeof(folder) + sizeof(e->d_name) + 1];
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			n += !strncmp(line, "tp_name:", strlen("tp_name:"));
		if (f)
			fclose(f);
	}
	closedir(d);
	return n;
}

static bool are_gone(pid_t monitor)
{
	usleep(50000);
	return !hooks(monitor);
}

static void work(void *name)
{
	struct actor a;
	struct client c;

	client_join(&c, name, 8);
	actor_start(&a, &c, 3, -1, SCHED_OTHER);
	actor_get_up(&a);
	actor_acquire(&a);
	actor_lie_down(&a);
	WAIT_FOR(c.counters->dom[c.welcome.domain].blocked == 1 &&
		 actor_slot(&a)->state == FG_STATE_SLEEP);
	actor_tell(&a, ACT_BUSY);
	WAIT_FOR(actor_slot(&a)->state == FG_STATE_ON);
	WAIT_FOR(all_zero(c.counters));
	/* and one that dies asleep with its lock */
	actor_lie_down(&a);
	WAIT_FOR(c.counters->dom[c.welcome.domain].blocked == 1);
}

/* Is answered, and goes. */
static void hello(void *name)
{
	const struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	struct fg_welcome welcome = {0};
	int sock = client_connect(name), fds[2];

	CHECK(sock >= 0 && !client_exchange(sock, &hello, sizeof(hello), &welcome, fds));
	CHECK(welcome.error == (kernel->refuses ? -ENOMEM : 0));
}

int main(void)
{
	const struct fg_monitor_config cfg = {.note = note};
	struct monitor m;
	int all;

	test_begin();
	kernel = mmap(NULL, sizeof(*kernel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(kernel != MAP_FAILED);
	monitor_start(&m, &cfg);
	all = hooks(m.pid);
	CHECK(all >= 5);
	for (int i = 0; i < 2; i++) {
		WAIT_FOR(are_gone(m.pid));
		reap(spawn(work, m.name));
		CHECK(hooks(m.pid) == all);
		WAIT_FOR(monitor_report(m.name).processes == 0);
	}
	WAIT_FOR(are_gone(m.pid));
	CHECK(!kernel->notes && !monitor_report(m.name).unattached);
	kernel->refuses = true;
	for (int i = 0; i < 3; i++) {
		reap(spawn(hello, m.name));
		CHECK(kernel->notes == 1 && monitor_report(m.name).unattached == -ENOMEM);
		CHECK(!hooks(m.pid));
	}
	kernel->refuses = false;
	reap(spawn(hello, m.name));
	CHECK(kernel->notes == 2 && !monitor_report(m.name).unattached);
	CHECK(hooks(m.pid) == all);
	monitor_stop(&m);
	return 0;
}
