/* SPDX-License-Identifier: MIT */
/*
 * From inside: what is known of the words of other libraries, and what a process pays for looking
 * at them.  A word that the kernel has not accepted is not known; one in the same entry does not
 * drive it out while it is in use.  Looks in vain come to an end, whatever time passes; sleeps let
 * them go on, for a 64th of the process's CPU time; a real-time thread makes none, nor a process
 * with a quota below two CPUs.  A process that was stopped in a look for an hour looks again soon.
 * Quotas of both versions of cgroups.
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

/* So many waits for another word take an entry, while there is none for its own. */
enum { OTHERS = 16 };

static void accepted(const uint32_t *word)
{
	for (int i = 0; i <= OTHERS; i++)
		_fg_futex_accepted(word);
}

/* Of many neighbours of a word, the one that has its place in the table. */
static uint32_t *find_twin(uint32_t *words, size_t n)
{
	_fg_futex_accepted(&words[0]);
	CHECK(_fg_futex_is_known(&words[0]));
	for (size_t i = 1; i < n; i++) {
		CHECK(!_fg_futex_is_known(&words[i]));
		accepted(&words[i]);
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
		_fg_futex_look(twin, 1); /* in use */
		for (int k = 0; k < OTHERS; k++)
			_fg_futex_accepted(&words[0]);
		CHECK(_fg_futex_is_known(twin));
	}
	accepted(&words[0]);
	CHECK(_fg_futex_is_known(&words[0]));
}

static uint64_t looks_in_vain(const uint32_t *word)
{
	uint64_t before = counted(FG_STAT_LOOKS_IN_VAIN);

	CHECK(!_fg_futex_look(word, *word));
	return counted(FG_STAT_LOOKS_IN_VAIN) - before;
}

static uint64_t cpu_ns(void)
{
	return (uint64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/*
 * A word has 30 us at first, and the process 60, and a look costs all its time, 15 us and more.
 * Then a sleep lets the word cost as much as it has cost itself, here 1 us and one of its waker;
 * but all words together a 64th of the process's CPU time.
 */
static void comes_to_an_end(void)
{
	enum { FIRST_NS = 60000, LOOK_NS = 15000 };
	static uint32_t word;
	uint64_t vain = 0;

	_fg_futex_accepted(&word);
	CHECK(_fg_futex_look(&word, 1) || fg_cpus_allotted() < 2); /* it is 0 */
	for (int i = 0; i < 20000; i++) {
		vain += looks_in_vain(&word);
		if (i % 200 == 0)
			sleep_us(1000);
	}
	CHECK(vain <= 30000 / LOOK_NS);
	if (!counted(FG_STAT_LOOKS)) {
		check_say("nobody looks here: looks in vain are not tested");
		return;
	}
	CHECK(counted(FG_STAT_LOOKS_NO_BUDGET) > 0);
	for (int i = 0; i < 20000; i++) {
		_fg_futex_slept(&word, cpu_ns() - 1000, true);
		vain += looks_in_vain(&word);
	}
	CHECK(vain <= (FIRST_NS + (uint64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 64) / LOOK_NS + 1);
	UNTIL((_fg_futex_slept(&word, cpu_ns() - 1000, true), looks_in_vain(&word)));
}

/*
 * One CPU does not look, as long as the others do, and no longer: a thread that is about to wait
 * for one that has just seen something looks at once, and one that came too early has room at its
 * next reading of the clock.
 */
static void leaves_one_cpu(void)
{
	uint32_t cpu = 0, n = fg_cpus_allotted();
	uint64_t now = fg_now_ns() + 3600000000000u; /* after all pauses that there may be */
	struct fg_look looks[16], again;
	struct fg_self me = *fg_self();

	if (n < 2 || n > 16)
		return;
	me.cpu = &cpu;
	for (cpu = 0; cpu < n; cpu++) {
		looks[cpu] = (struct fg_look){.most_ns = 10000};
		CHECK_EQ(fg_look_may_begin(&looks[cpu], &me, now), FG_LOOK);
		CHECK_EQ(looks[cpu].late, cpu == n - 1);
	}
	cpu = n - 1;
	again = looks[cpu];
	CHECK(fg_look_goes_on(&looks[cpu], &me, now));
	CHECK(!fg_look_goes_on(&looks[cpu], &me, now + 1000));
	CHECK(fg_look_goes_on(&again, &me, now));
	fg_look_ends(&looks[0]);
	CHECK(fg_look_goes_on(&again, &me, now + 1000));
	CHECK(!again.late);
	/* Now that one is counted, and the first is too many. */
	cpu = 0;
	CHECK_EQ(fg_look_may_begin(&looks[0], &me, now + 1000), FG_LOOK);
	CHECK(looks[0].late);
	fg_look_ends(&looks[0]);
	for (cpu = 1; cpu < n - 1; cpu++)
		fg_look_ends(&looks[cpu]);
	fg_look_ends(&again);
	cpu = 0;
	CHECK_EQ(fg_look_may_begin(&looks[0], &me, now + 1000), FG_LOOK);
	CHECK(!looks[0].late);
	fg_look_ends(&looks[0]);
}

/* Last: nobody here looks before the hours of which this speaks. */
static void stopped(void)
{
	enum { US = 1000, SECOND = 1000000000 };
	struct fg_look look = {.most_ns = 10 * US};
	uint64_t now = fg_now_ns() + 7200ull * SECOND;
	struct fg_self me = *fg_self();
	uint32_t cpu = 0;

	if (fg_cpus_allotted() < 2)
		return;
	me.cpu = &cpu;
	fg_look_setup(); /* a new budget */
	CHECK_EQ(fg_look_may_begin(&look, &me, now), FG_LOOK);
	CHECK(fg_look_goes_on(&look, &me, now));
	now += 3600ull * SECOND;
	CHECK(!fg_look_goes_on(&look, &me, now));
	fg_look_ends(&look);
	CHECK_EQ(fg_look_may_begin(&look, &me, now + 100 * US), FG_LOOK_NO_ROOM);
	CHECK_EQ(fg_look_may_begin(&look, &me, now + SECOND), FG_LOOK);
	fg_look_ends(&look);
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
	static char list[1000], lines[20000];
	size_t n = 0;

	CHECK(mkdtemp(folder) != NULL);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(mkdir(in_folder(folders[i]), 0700), 0);
	CHECK_EQ(fg_quota_read("/nowhere", folder), FG_QUOTA_NONE);
	CHECK_EQ(quota("0::/a/b\n"), FG_QUOTA_NONE);
	write_file("a/b/cpu.max", "max 100000\n");
	CHECK_EQ(quota("0::/a/b\n"), FG_QUOTA_NONE);
	write_file("a/cpu.max", "350000 100000\n");
	CHECK_EQ(quota("0::/a/b\n"), 3500);
	write_file("a/b/cpu.max", "150000 100000\n");
	CHECK_EQ(quota("0::/a/b\n"), 1500);
	write_file("a/b/cpu.max", "1000 100000\n");
	CHECK_EQ(quota("0::/a/b"), 10);
	write_file("a/b/cpu.max", "1000 1000000000\n");
	CHECK_EQ(quota("0::/a/b"), 1);
	write_file("a/b/cpu.max", "1000 100000\n");
	write_file("cpu.max", "200000 100000\n");
	CHECK_EQ(quota("0::/not/here\n"), 2000);
	CHECK_EQ(quota("0::/\n"), 2000);
	write_file("cpu/c/cpu.cfs_quota_us", "-1\n");
	write_file("cpu/c/cpu.cfs_period_us", "50000\n");
	CHECK_EQ(quota("7:memory:/x\n4:cpuset:/c\n3:cpu,cpuacct:/c\nnonsense\n"), FG_QUOTA_NONE);
	write_file("cpu/c/cpu.cfs_quota_us", "250000\n");
	CHECK_EQ(quota("7:memory:/x\n4:cpuset:/c\n3:cpuacct,cpu:/c\n"), 5000);
	/* More than any machine has, and as much as the kernel takes. */
	write_file("cpu.max", "4294967296000 1000\n");
	CHECK_EQ(quota("0::/\n"), FG_QUOTA_NONE);
	write_file("cpu.max", "17592186044415 1000\n");
	CHECK_EQ(quota("0::/\n"), FG_QUOTA_NONE);
	write_file("cpu.max", "9223372036854775807 1\n");
	CHECK_EQ(quota("0::/\n"), FG_QUOTA_NONE);
	/* Of a folder whose path is too long those above it can be read. */
	memset(list, 'x', sizeof list - 1);
	memcpy(list, "0::/a/", 6);
	CHECK_EQ(quota(list), 3500);
	CHECK_EQ(unlink(in_folder("cpu.max")), 0);
	/* Version 1 has a line for each controller: the last of many, with long paths. */
	for (int i = 0; i < 13; i++)
		n += (size_t)snprintf(lines + n, sizeof lines - n, "%d:name=%d:/%01000d\n", i, i,
				      0);
	strcpy(lines + n, "1:cpu:/c\n0::/\n");
	CHECK_EQ(quota(lines), 5000);
	strcpy(lines + n, "0::/a/b");
	CHECK_EQ(quota(lines), 10);
	write_file("cpu.max", "200000 100000\n");
	/* What is beside the namespace's root, or above it, is not what is mounted. */
	CHECK_EQ(quota("0::/..a\n"), 2000);
	CHECK_EQ(quota("0::/../a\n"), FG_QUOTA_NONE);
	CHECK_EQ(quota("0::/..\n"), FG_QUOTA_NONE);
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
	leaves_one_cpu();
	knows();
	comes_to_an_end();
	in_thread(real_time, NULL);
	quotas();
	stopped();
	return 0;
}
