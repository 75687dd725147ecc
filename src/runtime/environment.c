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
static const char policy_names[] = FG_POLICY_TABLE(X), slice_names[] = FG_SLICE_TABLE(X);
#undef X

static bool is_told_to_be_silent(void)
{
	const char *verbose = secure_getenv(FG_VERBOSE_ENV);

	return verbose && !strcmp(verbose, "0");
}

static struct iovec piece(const char *text)
{
	return (struct iovec){(void *)text, strlen(text)};
}

static void say_unknown(const char *what, const char *setting, const char *value,
			const char *wanted, const char *known)
{
	char name[64];
	size_t length = strnlen(value, sizeof(name));
	struct iovec line[] = {
	    piece("flexguard: unknown "),
	    piece(what),
	    piece(" '"),
	    {name, length},
	    piece("' in "),
	    piece(setting),
	    piece(", going on with the default; "),
	    piece(wanted),
	    piece(known),
	    piece("\n"),
	};

	if (is_told_to_be_silent())
		return;
	for (size_t i = 0; i < length; i++) /* a terminal obeys */
		name[i] = (unsigned char)value[i] < 0x20 || value[i] == 0x7f ? '?' : value[i];
	(void)!writev(STDERR_FILENO, line, sizeof(line) / sizeof(line[0]));
}

/*
 * `flexguard run` refuses an unknown name before it starts anything.  A user who preloads the
 * library by hand hears of it here, before the program runs, and gets the default.
 */
void fg_env_say_unknown(const char *what, const char *setting, const char *value, const char *known)
{
	say_unknown(what, setting, value, "one of:", known);
}

/* Which of these names stands in the variable; -1: it is not set, or has another value. */
static int choice(const char *what, const char *variable, const char *const names[], unsigned count,
		  const char *known)
{
	const char *value = secure_getenv(variable);

	if (!value || !*value)
		return -1;
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(value, names[i]))
			return (int)i;
	fg_env_say_unknown(what, variable, value, known);
	return -1;
}

/* Of digits and nothing else: strtoull() takes signs, stops at a letter, and sets errno. */
static bool is_number(const char *text, uint64_t *number)
{
	uint64_t n = 0;

	do {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n))
			return false;
	} while (*++text);
	*number = n;
	return true;
}

void fg_env_read(void)
{
#define X(id, name, help) name,
	static const char *const policies[] = { FG_POLICY_TABLE(X) };
	static const char *const slices[] = { FG_SLICE_TABLE(X) };
#undef X
	const char *spin_ns = secure_getenv(FG_SPIN_NS_ENV);
	int policy;

	fg_silent = is_told_to_be_silent();

	if (spin_ns && *spin_ns && !is_number(spin_ns, &fg_spin_ns))
		say_unknown("value", FG_SPIN_NS_ENV, spin_ns, "a number of ns is wanted", "");
	policy = choice("policy", FG_POLICY_ENV, policies, FG_POLICY_COUNT, policy_names);
	if (policy >= 0)
		fg_policy_set((enum fg_policy)policy);
	if (choice("value", FG_SLICE_ENV, slices, FG_SLICE_COUNT, slice_names) == FG_SLICE_OFF)
		fg_store_relaxed(&fg_slices, FG_SLICES_NONE);
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
