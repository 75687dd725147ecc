// SPDX-License-Identifier: MIT
/*
 * All users together have no more memory than the monitor may take, however many they are, and one
 * that comes last still gets some.  What they keep counts for the next monitor, too.  How much that
 * may be, the monitor's cgroup says.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "harness.h"
#include "monitor/internal.h"

#define LIMIT (16u << 20)
#define USER  1001 /* and those after it */
#define USERS 5

static struct monitor m;
static struct shared {
	uint32_t ready, arrays, error;
	uint64_t slots;
} *shared;

/* As many arrays as are to be had, kept; a hello each, as of another copy of the library. */
static void take(void *uid)
{
	struct rlimit files = {4096, 4096};

	CHECK(!setrlimit(RLIMIT_NOFILE, &files));
	CHECK(!setresuid((uintptr_t)uid, (uintptr_t)uid, (uintptr_t)uid));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 1000 && !shared->error; i++) {
		struct fg_hello h = {FG_PROTO_MAGIC, FG_ABI_VERSION, FG_PIECE, 0, 8 * i};
		int sock = client_connect(m.name), fds[2];
		struct fg_welcome w;

		CHECK(sock >= 0 && !client_exchange(sock, &h, sizeof(h), &w, fds));
		close(sock);
		if (!w.error) {
			close(fds[1]);
			shared->slots += w.slots;
			shared->arrays++;
		} else if (w.error == -EAGAIN) {
			usleep(1000);
		} else {
			shared->error = -w.error;
		}
	}
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* In bytes; the process keeps them. */
static uint64_t taken_by(uid_t uid, pid_t *pid)
{
	*shared = (struct shared){0};
	*pid = spawn(take, (void *)(uintptr_t)uid);
	WAIT_FOR(__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) || waitpid(*pid, NULL, WNOHANG));
	if (!shared->ready || shared->error != EDQUOT)
		fail("user %d: %u arrays, then error %u", uid, shared->arrays, shared->error);
	return (uint64_t)shared->slots * FG_SLOT_BYTES + shared->arrays * FG_PROCESS_BYTES;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static uint64_t taken_once(uid_t uid)
{
	pid_t pid;
	uint64_t had = taken_by(uid, &pid);

	end(pid);
	return had;
}

static void of_all_users(void)
{
	struct fg_monitor_config cfg = {.max_memory = LIMIT};
	uint64_t sum = 0, had;
	pid_t pid[USERS];

	monitor_start(&m, &cfg);
	for (int i = 0; i < USERS; i++) {
		had = taken_by(USER + i, &pid[i]);
		sum += had;
		if (!had || sum > LIMIT || (i && had > LIMIT / 2 / FG_MAX_DOMAINS))
			fail("user %d has %llu bytes of %u", i, (unsigned long long)had, LIMIT);
	}
	CHECK(sum > LIMIT / 2);
	for (int i = 0; i < USERS; i++)
		end(pid[i]);
	WAIT_FOR(taken_once(USER) > LIMIT / 3);
	monitor_stop(&m);
}

static void of_an_earlier_monitor(void)
{
	struct fg_monitor_config cfg = {.max_memory = LIMIT, .domains_only = true};
	uint64_t had;
	pid_t pid;

	monitor_start(&m, &cfg);
	taken_by(USER, &pid);
	monitor_kill(&m);
	monitor_start(&m, &cfg);
	had = taken_once(USER);
	if (had > LIMIT / 2 / FG_MAX_DOMAINS)
		fail("after a restart one user has %llu bytes more", (unsigned long long)had);
	end(pid);
	WAIT_FOR(taken_once(USER) > LIMIT / 4);
	monitor_stop(&m);
}

static char root[] = "/tmp/fg-memory-XXXXXX";

static void put(const char *file, const char *text)
{
	put_below(root, file, text);
}

static void of_cgroup(void)
{
	char command[64];

	CHECK(mkdtemp(root));
	CHECK(fg_cgroup_memory(root) == UINT64_MAX);
	put("proc/self/cgroup", "0::/system.slice/flexguardd.service\n");
	CHECK(fg_cgroup_memory(root) == UINT64_MAX);
	put("sys/fs/cgroup/system.slice/flexguardd.service/memory.max", "max\n");
	CHECK(fg_cgroup_memory(root) == UINT64_MAX);
	put("sys/fs/cgroup/system.slice/flexguardd.service/memory.max", "1073741824\n");
	CHECK(fg_cgroup_memory(root) == 1u << 30);
	put("sys/fs/cgroup/system.slice/flexguardd.service/memory.high", "max\n");
	CHECK(fg_cgroup_memory(root) == 1u << 30);
	put("sys/fs/cgroup/system.slice/flexguardd.service/memory.high", "67108864\n");
	CHECK(fg_cgroup_memory(root) == 64u << 20);
	put("sys/fs/cgroup/system.slice/memory.max", "1048576\n");
	CHECK(fg_cgroup_memory(root) == 1u << 20);
	put("proc/self/cgroup", "5:cpu,memory:/a/b\n0::/\n");
	put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n");
	CHECK(fg_cgroup_memory(root) == 4096);
	put("sys/fs/cgroup/memory.max", "2048\n"); /* the container's own */
	CHECK(fg_cgroup_memory(root) == 2048);
	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(!system(command));
}

int main(void)
{
	test_begin();
	of_cgroup();
	if (geteuid())
		skip("only root can be several users");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	of_all_users();
	of_an_earlier_monitor();
	return 0;
}
