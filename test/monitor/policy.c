// SPDX-License-Identifier: MIT
/*
 * The loader of policies on a kernel without SynCord: a congestion control stands for the policy,
 * and connections for acquisitions.  Attached, its counters are exact; they go on over a
 * replacement or begin anew, and its loader has them when it has ended; who kills the loader
 * detaches; what the verifier refuses, or is there already, leaves nothing; and of one that was
 * detached the pin is found.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "harness.h"
#include "monitor/internal.h"
#include "monitor/needs.h"
#include "monitor/syncord_counters.h"

#define CONNECTIONS 9
#define STEP	    5

static const struct fg_policy_calls *const calls = &fg_policy_module_calls;
static struct fg_policy_part good = {.name = "tested"}, bad = {.name = "bad"};
static char why[600];

/* ---- acquisitions ------------------------------------------------------------------ */

/* false: there is no such congestion control. */
static bool connect_once(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(a);
	bool there;

	CHECK(listener >= 0 && client >= 0);
	CHECK(!bind(listener, (void *)&a, sizeof(a)) && !listen(listener, 1) &&
	      !getsockname(listener, (void *)&a, &size));
	there = !setsockopt(client, IPPROTO_TCP, TCP_CONGESTION, "fg_tested", 9);
	if (there)
		CHECK(!connect(client, (void *)&a, sizeof(a)));
	close(client);
	close(listener);
	return there;
}

static void connect_often(void)
{
	for (int i = 0; i < CONNECTIONS; i++)
		CHECK(connect_once());
}

/* ---- policies ------------------------------------------------------------------------ */

static struct fg_policy *load(uint32_t keep_of)
{
	const char *const options[] = {"step=5", "slow=0-511"};
	struct fg_policy_part file = {good.file, good.file}; /* as a path, which is no name of it */
	struct fg_policy_config cfg = {.part = keep_of ? &file : &good,
				       .parts = 1,
				       .options = options,
				       .nr_options = 2,
				       .keep_of = keep_of};
	struct fg_policy *p;
	int err = calls->load(&p, &cfg, why, sizeof(why));

	if (err == -ENOTSUP || err == -EPERM)
		skip("%s", why);
	if (err)
		fail("load: %d: %s", err, why);
	return p;
}

static uint64_t value_in(struct fg_policy_counters c, const char *name)
{
	uint64_t value = 0, sum = 0;
	bool found = false;

	for (size_t i = 0; i < c.count; i++) {
		CHECK(!strcmp(c.counter[i].policy, "tested") && c.counter[i].target == 0);
		CHECK(strcmp(c.counter[i].name, "hidden_"));
		if (strcmp(c.counter[i].name, name))
			continue;
		found = true;
		value = c.counter[i].value;
		for (size_t cpu = 0; cpu < c.counter[i].cpus; cpu++)
			sum += c.counter[i].cpu[cpu];
		if (!strcmp(name, "inits"))
			CHECK(sum == value);
	}
	CHECK(found);
	calls->free_counters(&c);
	return value;
}

static uint64_t counted(uint32_t id, const char *name)
{
	struct fg_policy_counters c;

	if (calls->counters(id, &c, why, sizeof(why)))
		fail("counters: %s", why);
	return value_in(c, name);
}

/* As its loader has them. */
static uint64_t counted_at_the_end(const struct fg_policy *p, const char *name)
{
	struct fg_policy_counters c;

	if (calls->counted(p, &c, why, sizeof(why)))
		fail("counted: %s", why);
	return value_in(c, name);
}

static bool hung_up(const struct fg_policy *p)
{
	struct pollfd f = {.fd = calls->link(p)};

	return poll(&f, 1, 0) == 1 && f.revents & POLLHUP;
}

/* ---- what is asked -------------------------------------------------------------------- */

static void check_refused(void)
{
	struct fg_policy_part both[] = {good, {"again", good.file}};
	struct fg_policy_config cfg = {.part = &bad, .parts = 1};
	struct fg_policy *p;
	int err;

	err = calls->load(&p, &cfg, why, sizeof(why));
	if (err != -EACCES || p)
		fail("%d: %s", err, why);
	CHECK(strstr(why, "bad, tested_init: the verifier refuses it: ") && !strchr(why, '\n'));
	/* The reason, not the statistics behind it. */
	if (!strstr(why, "allowed memory range") && !strstr(why, "invalid access to map value"))
		fail("%s", why);
	cfg = (struct fg_policy_config){.part = both, .parts = 2};
	CHECK(calls->load(&p, &cfg, why, sizeof(why)) == -EINVAL && !p);
	CHECK(strstr(why, "tested and again cannot be attached together: both have init"));
}

static uint32_t check_attached(struct fg_policy *p)
{
	struct fg_policy *other;
	struct utsname u;
	uint32_t id;
	int err;

	CHECK(calls->hooks(p) == 0xf);
	CHECK(!connect_once()); /* loaded only */
	uname(&u);
	err = calls->attach(p, NULL, 0, why, sizeof(why));
	if (err && !fg_release_is(u.release, 6, 4))
		skip("no links of struct_ops (Linux 6.4 and later): %s", why);
	if (err)
		fail("attach: %s", why);
	id = calls->id(p);
	connect_often();
	CHECK(counted(id, "inits") == STEP * CONNECTIONS);
	CHECK(counted(id, "histogram") == CONNECTIONS);
	CHECK(counted(id, "max_step") == STEP && counted(id, "min_step") == STEP);
	/* The same name twice: refused, and the first one goes on. */
	other = load(0);
	CHECK(calls->attach(other, NULL, 0, why, sizeof(why)) == -EEXIST);
	calls->close(other);
	CHECK(connect_once() && counted(id, "inits") == STEP * (CONNECTIONS + 1));
	return id;
}

static void check_replaced(uint32_t id)
{
	struct fg_policy *p = load(id);

	CHECK(!calls->replace(p, id, NULL, 0, why, sizeof(why)));
	calls->close(p);
	connect_often();
	CHECK(counted(id, "inits") == STEP * (2 * CONNECTIONS + 1));
	p = load(0);
	CHECK(!calls->replace(p, id, NULL, 0, why, sizeof(why)));
	calls->close(p);
	CHECK(counted(id, "inits") == 0);
	connect_often();
	CHECK(counted(id, "inits") == STEP * CONNECTIONS);
	p = load(0);
	CHECK(calls->replace(p, 0xfffffff0, NULL, 0, why, sizeof(why)) < 0);
	calls->close(p);
}

/* Counters are of the locks by their numbers, and of the policy that is replaced. */
static void check_kept(uint32_t id)
{
	struct fg_policy_target other = {.address = 0xffffffff82a3f104, .type = 1};
	struct fg_policy_config cfg = {
	    .part = &good, .parts = 1, .keep_of = id, .target = &other, .targets = 1};
	struct fg_policy *p, *q;
	uint64_t before = counted(id, "inits");
	int err;

	err = calls->load(&p, &cfg, why, sizeof(why));
	if (err != -EINVAL || p || !strstr(why, "is at other locks"))
		fail("kept at another lock: %d: %s", err, err ? why : "");
	p = load(id);
	q = load(id);
	CHECK(!calls->replace(q, id, NULL, 0, why, sizeof(why)));
	err = calls->replace(p, id, NULL, 0, why, sizeof(why));
	if (err != -EBUSY || !strstr(why, "meanwhile"))
		fail("kept of one that is replaced: %d: %s", err, err ? why : "");
	calls->close(p);
	calls->close(q);
	CHECK(connect_once() && counted(id, "inits") == before + STEP);
}

/* A mount of its own, which nobody else sees: the machine may have none. */
static void check_pinned(struct fg_policy *p, uint32_t id)
{
	char folder[] = "/tmp/fg-policy-XXXXXX", path[60], other[60];
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	int map;

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/link", folder);
	snprintf(other, sizeof(other), "%s/map", folder);
	if (unshare(CLONE_NEWNS) || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) ||
	    mount("bpf", folder, "bpf", 0, NULL)) {
		printf("no BPF file system may be mounted here: pins are left out\n");
		rmdir(folder);
		return;
	}
	CHECK(!calls->pinned(path)); /* there is none */
	CHECK(!calls->pin(p, path, why, sizeof(why)) && calls->pinned(path) == id);
	/* A map whose type has the number of such links. */
	map = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "other", 4, 4, 1, NULL);
	CHECK(map >= 0 && !bpf_obj_get_info_by_fd(map, &info, &size));
	CHECK((int)info.type == (int)BPF_LINK_TYPE_STRUCT_OPS && !bpf_obj_pin(map, other));
	CHECK(!calls->pinned(other));
	/* As after an ejection: nothing is attached, and the pin is the link's. */
	CHECK(!calls->detach(id, why, sizeof(why)) && calls->pinned(path) == id);
	CHECK(!unlink(path) && !calls->pinned(path));
	close(map);
	CHECK(!umount2(folder, MNT_DETACH) && !rmdir(folder));
}

static void check_detached(struct fg_policy *p, uint32_t id)
{
	struct fg_policy_counters c;

	CHECK(!hung_up(p));
	CHECK(!calls->detach(id, why, sizeof(why)));
	WAIT_FOR(!connect_once());
	CHECK(calls->counters(id, &c, why, sizeof(why)) < 0 && !c.count);
	calls->close(p);
	CHECK(calls->detach(id, why, sizeof(why)) == -ENOENT);
}

/* By somebody else, as by the kernel: counted is what was there last, whoever has loaded it. */
static void check_ended(bool replaced)
{
	struct fg_policy *p = load(0), *other;
	uint32_t id;

	CHECK(!calls->attach(p, NULL, 0, why, sizeof(why)));
	id = calls->id(p);
	connect_often();
	CHECK(!calls->look(p) && counted_at_the_end(p, "inits") == STEP * CONNECTIONS);
	if (replaced) {
		other = load(0);
		CHECK(!calls->replace(other, id, NULL, 0, why, sizeof(why)));
		calls->close(other);
		CHECK(connect_once() && calls->look(p) && !calls->look(p));
	}
	CHECK(!calls->detach(id, why, sizeof(why)) && hung_up(p) && !calls->look(p));
	CHECK(counted_at_the_end(p, "inits") == (replaced ? STEP : STEP * CONNECTIONS));
	calls->close(p);
	WAIT_FOR(!connect_once()); /* its name is free again */
}

/* Whichever way the loader ends. */
static void check_killed(void)
{
	int ready[2], status;
	char byte;
	pid_t pid;

	CHECK(!pipe(ready));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct fg_policy *p = load(0);

		CHECK(!calls->attach(p, NULL, 0, why, sizeof(why)));
		CHECK(write(ready[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(connect_once());
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	WAIT_FOR(!connect_once()); /* the kernel closes its files in its own time */
}

int main(int argc, char **argv)
{
	struct fg_policy *p;
	uint32_t id;

	test_begin();
	if (argc < 3)
		skip("needs two objects of policies");
	good.file = argv[1];
	bad.file = argv[2];
	p = load(0); /* or there is no privilege, or no such type */
	check_refused();
	id = check_attached(p);
	check_replaced(id);
	check_kept(id);
	check_detached(p, id);
	check_ended(false);
	check_ended(true);
	check_killed();
	p = load(0);
	CHECK(!calls->attach(p, NULL, 0, why, sizeof(why)));
	check_pinned(p, calls->id(p));
	calls->close(p);
	return 0;
}
