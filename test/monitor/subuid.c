// SPDX-License-Identifier: MIT
/*
 * A user does not become many by subordinate ids: whatever id a process has in the user's own
 * namespaces, it has the user's domain and quota; so does a setuid program that the user starts.
 * Containers that root makes are users of their own.  When all domains are taken, the next user is
 * refused, and shares no counter.
 */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include "harness.h"

#define USER 1001
#define SUB  300000 /* the first of its subordinate ids */

static struct monitor m;
static struct shared {
	int32_t ready, mapped, error;
	uint32_t domain;
} *shared;

struct who {
	/* user who makes a namespace, and the id there; inside 0: no namespace */
	uid_t maker, inside;
	uid_t root; /* of the namespace, outside */
	bool last;  /* root's line is the last of the map */
	uid_t real; /* then this as the real user id */
};

static void join(void *arg)
{
	struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	const struct who *w = arg;
	struct fg_welcome welcome = {0};
	int sock, fds[2];

	CHECK(!setgroups(0, NULL));
	if (w->inside) {
		CHECK(!w->maker || (!setresgid(w->maker, w->maker, w->maker) &&
				    !setresuid(w->maker, w->maker, w->maker)));
		CHECK(!prctl(PR_SET_DUMPABLE, 1)); /* or its uid_map is not ours to write */
		if (unshare(CLONE_NEWUSER))
			skip("no user namespaces may be made here: %s", strerror(errno));
		__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
		WAIT_FOR(__atomic_load_n(&shared->mapped, __ATOMIC_ACQUIRE));
		CHECK(!setresuid(w->inside, w->inside, w->inside));
	} else {
		CHECK(!setresuid(w->real ? w->real : w->maker, w->maker, w->maker));
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sock = client_connect(m.name);
	CHECK(sock >= 0);
	CHECK(!client_exchange(sock, &hello, sizeof(hello), &welcome, fds));
	shared->domain = welcome.domain;
	__atomic_store_n(&shared->error, welcome.error, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static pid_t start(struct who w)
{
	char folder[64], map[64];
	pid_t pid;

	*shared = (struct shared){.error = 1};
	pid = spawn(join, &w);
	if (w.inside) {
		while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE)) {
			int status;

			if (waitpid(pid, &status, WNOHANG) == pid)
				_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
			usleep(100);
		}
		snprintf(folder, sizeof(folder), "/proc/%d", pid);
		if (w.last)
			snprintf(map, sizeof(map), "1 %u 60000\n0 %u 1\n", SUB, w.root);
		else
			snprintf(map, sizeof(map), "0 %u 1\n1 %u 60000\n", w.root, SUB);
		CHECK(write_file(folder, "uid_map", map));
		__atomic_store_n(&shared->mapped, 1, __ATOMIC_RELEASE);
	}
	WAIT_FOR(__atomic_load_n(&shared->error, __ATOMIC_ACQUIRE) != 1);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void one_user(void)
{
	struct fg_monitor_config cfg = {.max_per_uid = 4};
	uint32_t domain;
	pid_t pid[7];

	monitor_start(&m, &cfg);
	pid[0] = start((struct who){.maker = USER});
	domain = shared->domain;
	CHECK(!shared->error && domain != FG_DOMAIN_ALL);
	for (int i = 1; i < 3; i++) {
		pid[i] = start((struct who){.maker = USER, .inside = (uid_t)i, .root = USER});
		CHECK(!shared->error && shared->domain == domain);
	}
	/* a file that is setuid to a subordinate id */
	pid[3] = start((struct who){.maker = SUB + 7, .real = USER});
	CHECK(!shared->error && shared->domain == domain);
	end(start((struct who){.maker = USER, .inside = 77, .root = USER}));
	CHECK(shared->error == -EDQUOT);
	/* Root's container: its root's, whoever is in it. */
	pid[4] = start((struct who){.inside = 5, .root = 400000});
	CHECK(!shared->error && shared->domain != domain);
	domain = shared->domain;
	pid[5] = start((struct who){.inside = 6, .root = 400000});
	CHECK(!shared->error && shared->domain == domain);
	/* whichever line of the map comes first */
	pid[6] = start((struct who){.inside = 7, .root = 400000, .last = true});
	CHECK(!shared->error && shared->domain == domain);
	for (int i = 0; i < 7; i++)
		end(pid[i]);
	monitor_stop(&m);
}

static void many_users(void)
{
	bool seen[FG_MAX_DOMAINS] = {false};
	pid_t pid[FG_MAX_DOMAINS], again;

	monitor_start(&m, NULL);
	for (uint32_t i = 0; i < FG_MAX_DOMAINS - 1; i++) {
		pid[i] = start((struct who){.maker = 2000 + i});
		CHECK(!shared->error && shared->domain != FG_DOMAIN_ALL && !seen[shared->domain]);
		seen[shared->domain] = true;
	}
	end(start((struct who){.maker = 3000}));
	CHECK(shared->error == -EUSERS);
	again = start((struct who){.maker = 2005}); /* a user that has one is served */
	CHECK(!shared->error);
	end(pid[0]);
	do {
		pid[0] = start((struct who){.maker = 3000});
		if (shared->error)
			end(pid[0]);
	} while (shared->error);
	end(again);
	for (int i = 0; i < FG_MAX_DOMAINS - 1; i++)
		end(pid[i]);
	monitor_stop(&m);
}

int main(void)
{
	test_begin();
	if (geteuid())
		skip("only root can be several users");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	one_user();
	many_users();
	return 0;
}
