/* SPDX-License-Identifier: MIT */
/*
 * A setuid program that is linked with the library takes nothing from the environment, which is
 * written by the user that starts it: no file for statistics, no socket, no policy, no lock of the
 * zoo.  The same program without the setuid bit, started by root, takes all of it.
 *
 * usage: api_secure_env LIBRARY...: each is tried; the program finds it by its RUNPATH, a folder of
 * ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <flexguard.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/stats.h"

#define USER 1001

static void tidy(void);

#define CHECK(cond)                                                                              \
	do {                                                                                     \
		if (!(cond)) {                                                                   \
			fprintf(stderr, "%s:%d: not true: %s (%s)\n", __FILE__, __LINE__, #cond, \
				strerror(errno));                                                \
			tidy();                                                                  \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)
#include "../tools/copy_self.h"

static char folder[] = "/tmp/flexguard-secure-XXXXXX";
static char program[64], stats[64], sock[64];

static void tidy(void)
{
	unlink(program);
	unlink(stats);
	unlink(sock);
	rmdir(folder);
	unlink(SECURE_LIB "/libflexguard.so.0");
}

/*
 * In the program.  3 if a mutex holds an address while it is locked: that of an MCS queue's node,
 * which is FLEXGUARD_LOCK.
 */
static int victim(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	uint64_t free, locked;
	fg_mutex_t own;

	fg_mutex_init(&own, 0);
	fg_mutex_lock(&own);
	fg_mutex_unlock(&own);
	memcpy(&free, &mutex, sizeof(free));
	pthread_mutex_lock(&mutex);
	memcpy(&locked, &mutex, sizeof(locked));
	pthread_mutex_unlock(&mutex);
	return free >> 32 != locked >> 32 ? 3 : 0;
}

static void make_stats(void)
{
	struct fg_stats *s = calloc(1, sizeof(*s));
	int fd = open(stats, O_RDWR | O_CREAT | O_TRUNC, 0600);

	s->magic = FG_STATS_MAGIC;
	s->abi = FG_STATS_ABI;
	s->count = FG_STAT_COUNT;
	s->shards = FG_STATS_SHARDS;
	CHECK(fd >= 0 && write(fd, s, sizeof(*s)) == sizeof(*s));
	close(fd);
	free(s);
}

static bool stats_written(void)
{
	struct fg_stats *s = calloc(1, sizeof(*s));
	int fd = open(stats, O_RDONLY);
	bool written = false;

	CHECK(fd >= 0 && read(fd, s, sizeof(*s)) == sizeof(*s));
	close(fd);
	for (int i = 0; i < FG_STATS_SHARDS; i++)
		for (int k = 0; k < FG_STAT_COUNT; k++)
			written |= s->shard[i].v[k] != 0;
	free(s);
	return written;
}

static int listen_at(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, sock);
	unlink(sock);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !chmod(sock, 0777) &&
	      !listen(fd, 10));
	return fd;
}

static int run(uid_t uid, const char *arg)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
			_exit(126);
		setenv("FLEXGUARD_STATS", stats, 1);
		setenv("FLEXGUARD_SOCKET", sock, 1);
		setenv("FLEXGUARD_LOCK", "mcs", 1);
		execl(program, program, arg, NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void try(const char *library, bool secure)
{
	struct pollfd p = {.events = POLLIN};
	bool zoo = strstr(library, "zoo") != NULL;
	int status;

	unlink(SECURE_LIB "/libflexguard.so.0");
	CHECK(!symlink(library, SECURE_LIB "/libflexguard.so.0"));
	make_stats();
	p.fd = listen_at();
	status = run(secure ? USER : 0, "victim");
	poll(&p, 1, 0);
	printf("%s%s: exit status %d, statistics %s, socket %s\n", library,
	       secure ? ", setuid" : "", status, stats_written() ? "written" : "untouched",
	       p.revents ? "asked" : "left alone");
	CHECK(status == (zoo && !secure ? 3 : 0));
	CHECK(stats_written() == !secure);
	if (!zoo)
		CHECK((p.revents != 0) == !secure);
	close(p.fd);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "victim"))
		return victim();
	if (argc == 2 && !strcmp(argv[1], "id"))
		return geteuid() != 0;
	alarm(60);
	if (geteuid()) {
		puts("only root can make a setuid program");
		return 77;
	}
	CHECK(mkdtemp(folder));
	CHECK(!chmod(folder, 0755) && (!mkdir(SECURE_LIB, 0755) || errno == EEXIST));
	snprintf(program, sizeof(program), "%s/program", folder);
	snprintf(stats, sizeof(stats), "%s/stats", folder);
	snprintf(sock, sizeof(sock), "%s/sock", folder);
	unlink(SECURE_LIB "/libflexguard.so.0");
	CHECK(!symlink(argv[1], SECURE_LIB "/libflexguard.so.0"));
	copy_self(program, 04755);
	if (run(USER, "id")) {
		puts("no setuid programs in /tmp, or user 1001 cannot reach the build folder");
		tidy();
		return 77;
	}
	for (int i = 1; i < argc; i++) {
		copy_self(program, 04755);
		try(argv[i], true);
		copy_self(program, 0755);
		try(argv[i], false);
	}
	tidy();
	return 0;
}
