/* SPDX-License-Identifier: MIT */
/*
 * From inside: what is known of the words of other libraries, and what a process pays for looking
 * at them.  A word that the kernel has not accepted is not known; one in the same entry does not
 * drive it out while it is in use.  Looks in vain come to an end; a real-time thread makes none,
 * nor a process with a quota below two CPUs.  Quotas of both versions of cgroups.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../tools/check.h"
#include "abi/stats.h"
#include "lock/futex_look.h"
#include "runtime/count.h"
#include "runtime/decide.h"
#include "runtime/look.h"
#include "sys/clock.h"
#include "sys/quota.h"

static struct fg_stats counts;

static uint64_t counted(enum fg_stat what)
{
	uint64_t sum = 0;

	for (int i = 0; i < FG_STATS_SHARDS; i++)
		sum += __atomic_load_n(&counts.shard[i].v[what], __ATOMIC_RELAXED);
	return sum;
}

/* Of many neighbours of a word, the one that has its place in the table. */
static uint32_t *find_twin(uint32_t *words, size_t n)
{
	_fg_futex_accepted(&words[0]);
	CHECK(_fg_futex_is_known(&words[0]));
	sleep_us(20000); /* not in use any more */
	for (size_t i = 1; i < n; i++) {
		CHECK(!_fg_futex_is_known(&words[i]));
		_fg_futex_accepted(&words[i]);
		if (!_fg_futex_is_known(&words[0]))
			return &words[i];
	}
	return NULL;
}

static void knows(void)
{
	static uint32_t words[65536];
	uint32_t *twin = find_twin(words, 65536);

	CHECK(twin != NULL);
	CHECK(_fg_futex_is_known(twin));
	for (int i = 0; i < 1000; i++) {
		uint64_t began = fg_now_ns();

		_fg_futex_look(twin, 1); /* in use */
		_fg_futex_accepted(&words[0]);
		if (fg_now_ns() - began > 5000000)
			continue; /* kept off the CPU for longer than it counts as used */
		CHECK(_fg_futex_is_known(twin));
	}
	sleep_us(20000);
	_fg_futex_accepted(&words[0]);
	CHECK(_fg_futex_is_known(&words[0]));
}

/* Each costs 2 us at least, and the word has 30 us at first, then a 32nd of the time. */
static void comes_to_an_end(void)
{
	static uint32_t word;
	uint64_t began, vain, before = counted(FG_STAT_LOOKS_IN_VAIN);

	_fg_futex_accepted(&word);
	CHECK(_fg_futex_look(&word, 1)); /* it is 0 */
	began = fg_now_ns();
	for (int i = 0; i < 20000; i++)
		CHECK(!_fg_futex_look(&word, 0));
	vain = counted(FG_STAT_LOOKS_IN_VAIN) - before;
	CHECK(vain <= (30000 + (fg_now_ns() - began) / 32) / 2000 + 1);
	if (fg_cpus() > 1 && counted(FG_STAT_LOOKS))
		CHECK(counted(FG_STAT_LOOKS_NO_BUDGET) > 0);
}

static void *real_time(void *arg)
{
	static uint32_t word;
	struct sched_param p = {.sched_priority = 1};
	uint64_t before;

	(void)arg;
	if (sched_setscheduler(0, SCHED_FIFO, &p))
		return NULL; /* not permitted */
	_fg_futex_accepted(&word);
	before = counted(FG_STAT_LOOKS);
	for (int i = 0; i < 50; i++) {
		_fg_futex_look(&word, 0);
		sleep_us(100);
	}
	CHECK_EQ(counted(FG_STAT_LOOKS), before);
	return NULL;
}

/* ---- quotas ------------------------------------------------------------------------- */

static char folder[] = "/tmp/futex_looks-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(in_folder(name), "w");

	CHECK(f != NULL);
	CHECK(fputs(text, f) >= 0);
	CHECK_EQ(fclose(f), 0);
}

static uint32_t quota(const char *list)
{
	char path[256];

	write_file("list", list);
	snprintf(path, sizeof path, "%s/list", folder);
	return fg_quota_read(path, folder);
}

static void quotas(void)
{
	static const char *const folders[] = {"a", "a/b", "cpu", "cpu/c"};
	static const char *const files[] = {"list",
					    "cpu.max",
					    "a/cpu.max",
					    "a/b/cpu.max",
					    "cpu/c/cpu.cfs_quota_us",
					    "cpu/c/cpu.cfs_period_us"};

	CHECK(mkdtemp(folder) != NULL);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(mkdir(in_folder(folders[i]), 0700), 0);
	CHECK_EQ(fg_quota_read("/nowhere", folder), FG_QUOTA_NONE);
	CHECK_EQ(quota("0::/a/b\n"), FG_QUOTA_NONE);
	write_file("a/b/cpu.max", "max 100000\n");
	CHECK_EQ(quota("0::/a/b\n"), FG_QUOTA_NONE);
	write_file("a/cpu.max", "350000 100000\n");
	CHECK_EQ(quota("0::/a/b\n"), 3);
	write_file("a/b/cpu.max", "150000 100000\n");
	CHECK_EQ(quota("0::/a/b\n"), 1);
	write_file("a/b/cpu.max", "1000 100000\n");
	CHECK_EQ(quota("0::/a/b"), 1);
	write_file("cpu.max", "200000 100000\n");
	CHECK_EQ(quota("0::/not/here\n"), 2);
	CHECK_EQ(quota("0::/\n"), 2);
	write_file("cpu/c/cpu.cfs_quota_us", "-1\n");
	write_file("cpu/c/cpu.cfs_period_us", "50000\n");
	CHECK_EQ(quota("7:memory:/x\n4:cpuset:/c\n3:cpu,cpuacct:/c\nnonsense\n"), FG_QUOTA_NONE);
	write_file("cpu/c/cpu.cfs_quota_us", "250000\n");
	CHECK_EQ(quota("7:memory:/x\n4:cpuset:/c\n3:cpuacct,cpu:/c\n"), 5);
	for (int i = 0; i < 6; i++)
		unlink(in_folder(files[i]));
	for (int i = 3; i >= 0; i--)
		rmdir(in_folder(folders[i]));
	rmdir(folder);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 30);
	fg_stats = &counts;
	fg_look_setup();
	knows();
	comes_to_an_end();
	in_thread(real_time, NULL);
	quotas();
	return 0;
}
