/* SPDX-License-Identifier: MIT */
#include "runtime/environment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "abi/options.h"
#include "runtime/count.h"
#include "runtime/policy.h"

struct fg_stats *fg_stats;
bool fg_silent;

#define X(id, name, help) " " name
static const char policy_names[] = FG_POLICY_TABLE(X);
#undef X

/*
 * `flexguard run` refuses an unknown name before it starts anything.  A user who preloads the
 * library by hand hears of it here, before the program runs, and gets the default.
 */
static void say_unknown(const char *policy)
{
	char name[64];
	struct iovec line[] = {
	    {(void *)"flexguard: unknown policy '", 27},
	    {name, strnlen(policy, sizeof(name))},
	    {(void *)"' in " FG_POLICY_ENV ", going on with the default; one of:", 57},
	    {(void *)policy_names, sizeof(policy_names) - 1},
	    {(void *)"\n", 1},
	};

	if (fg_silent)
		return;
	for (size_t i = 0; i < line[1].iov_len; i++) /* a terminal obeys */
		name[i] = (unsigned char)policy[i] < 0x20 || policy[i] == 0x7f ? '?' : policy[i];
	(void)!writev(STDERR_FILENO, line, sizeof(line) / sizeof(line[0]));
}

void fg_env_read(void)
{
	static const char *const policies[] = {
#define X(id, name, help) name,
		FG_POLICY_TABLE(X)
#undef X
	};
	const char *policy = secure_getenv(FG_POLICY_ENV), *spin_ns = secure_getenv(FG_SPIN_NS_ENV);
	const char *verbose = secure_getenv(FG_VERBOSE_ENV);
	unsigned i;

	fg_silent = verbose && !strcmp(verbose, "0");

	if (spin_ns)
		fg_spin_ns = strtoull(spin_ns, NULL, 10);
	for (i = 0; policy && *policy && i < FG_POLICY_COUNT; i++)
		if (!strcmp(policy, policies[i])) {
			fg_policy_set((enum fg_policy)i);
			policy = NULL;
		}
	if (policy && *policy)
		say_unknown(policy);
}

void fg_stats_open(void)
{
	const char *path = secure_getenv(FG_STATS_ENV);
	struct stat st;
	void *p;
	int fd;

	if (!path || !*path)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return;
	p = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		    (size_t)st.st_size >= sizeof(struct fg_stats) ?
		mmap(NULL, sizeof(struct fg_stats), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) :
		MAP_FAILED;
	close(fd);
	if (p == MAP_FAILED)
		return;
	fg_stats = p;
	if (fg_stats->magic != FG_STATS_MAGIC || fg_stats->abi != FG_STATS_ABI ||
	    fg_stats->count != FG_STAT_COUNT || fg_stats->shards != FG_STATS_SHARDS) {
		munmap(p, sizeof(struct fg_stats));
		fg_stats = NULL;
		return;
	}
	fg_count(&fg_self_tls, FG_STAT_PROCESSES, 1);
}
