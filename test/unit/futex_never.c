/* SPDX-License-Identifier: MIT */
/*
 * Which waits by syscall(SYS_futex, ...) are never looked at, though all else would let them: each
 * is made many times at words that are looked at before and afterwards, with a library in which
 * looks cost nothing.  They are counted in a file of FLEXGUARD_STATS that this program makes before
 * it executes itself.
 *
 * Not looked at: shared words, bits of their own, PI, requeue, new words and unmapped ones; threads
 * of real-time policies; processes with a quota below two CPUs; any after a seccomp filter.
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "../tools/deadline.h"
#include "../tools/futex.h"
#include "abi/stats.h"

#define A_PAGE 4096

enum { TIMES = 40, NEW_WORDS = 64 };

static struct fg_stats *stats;
static uint32_t word, pi, other, fresh[NEW_WORDS * 64];
static uint32_t *page;

static uint64_t looks(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < FG_STATS_SHARDS; i++)
		sum += __atomic_load_n(&stats->shard[i].v[FG_STAT_LOOKS], __ATOMIC_RELAXED);
	return sum;
}

static void wait_plainly(const uint32_t *w, int op)
{
	struct timespec a_while = {.tv_nsec = 20000}, past = {0};

	CHECK_EQ(RESULT(futex(w, op, LOAD(*w), op & FUTEX_WAIT_BITSET ? &past : &a_while, NULL,
			      FUTEX_BITSET_MATCH_ANY)),
		 -ETIMEDOUT);
}

/* It may take a while: after a look that has lost its CPU there are none. */
static void is_looked_at(const uint32_t *w)
{
	uint64_t before = looks();

	while (looks() == before) {
		sleep_us(2000);
		wait_plainly(w, FUTEX_WAIT_PRIVATE);
		wait_plainly(w, FUTEX_WAIT_BITSET_PRIVATE);
	}
}

/* Would a machine like this one look at all?  In all that is said here, it would. */
static void needs_looks(void)
{
	for (int i = 0; i < 500 && !looks(); i++) {
		sleep_us(2000);
		wait_plainly(&word, FUTEX_WAIT_PRIVATE);
	}
	if (!looks())
		check_skip("nobody looks here: one CPU, a quota, a filter, or no rseq");
}

/* ---- by operation -------------------------------------------------------------------- */

static void shared(void)
{
	wait_plainly(&word, FUTEX_WAIT);
	wait_plainly(&word, FUTEX_WAIT_BITSET);
	CHECK_EQ(RESULT(futex(&word, FUTEX_WAIT, word + 1, NULL, NULL, 0)), -EAGAIN);
}

static void some_bits(void)
{
	struct timespec past = {0};

	CHECK_EQ(RESULT(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, word, &past, NULL, 2)), -ETIMEDOUT);
	CHECK_EQ(RESULT(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, word, &past, NULL, 1u << 31)),
		 -ETIMEDOUT);
}

static void inheritance(void)
{
	CHECK_EQ(RESULT(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0)), -EDEADLK);
	CHECK_EQ(RESULT(futex(&pi, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0)), -EDEADLK);
}

static void requeue(void)
{
	struct timespec past = {0};

	CHECK_EQ(RESULT(futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, word, &past, &other, 0)),
		 -ETIMEDOUT);
	CHECK_EQ(RESULT(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, NULL, &other, word)), 0);
	CHECK_EQ(RESULT(futex(&word, FUTEX_REQUEUE_PRIVATE, 0, NULL, &other, 0)), 0);
	CHECK_EQ(RESULT(futex(&word, FUTEX_WAKE_OP_PRIVATE, 0, NULL, &other, 0)), 0);
}

static void wakes(void)
{
	CHECK_EQ(RESULT(futex_wake(&word, 1)), 0);
	CHECK_EQ(RESULT(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, ~0u)), 0);
}

static void other_numbers(void)
{
#ifdef SYS_futex_waitv
	CHECK(RESULT(syscall(SYS_futex_waitv, &word, 0, 0, NULL, 0)) < 0);
#endif
	CHECK_EQ(syscall(SYS_getppid), getppid());
}

/* ---- by word ------------------------------------------------------------------------- */

/* Each of them once, lines apart. */
static void new_word(void)
{
	static int next;

	CHECK(next < NEW_WORDS);
	wait_plainly(&fresh[64 * next++], FUTEX_WAIT_PRIVATE);
}

static void make_page(void)
{
	page = mmap(page, A_PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (page ? MAP_FIXED : 0), -1, 0);
	CHECK(page != MAP_FAILED);
}

static void unmapped(void)
{
	make_known(page);
	CHECK_EQ(munmap(page, A_PAGE), 0);
	CHECK_EQ(RESULT(futex_wait(page, 0)), -EFAULT);
	CHECK_EQ(RESULT(futex_wait(page, 1)), -EFAULT);
	make_page();
}

/* ---- by thread and process ----------------------------------------------------------- */

static void plain(void)
{
	wait_plainly(&word, FUTEX_WAIT_PRIVATE);
	wait_plainly(&word, FUTEX_WAIT_BITSET_PRIVATE);
}

static void never(const char *what, void (*wait)(void), int times)
{
	uint64_t before = looks();

	for (int i = 0; i < times; i++) {
		sleep_us(1000);
		wait();
	}
	if (looks() != before)
		check_say("%s: %llu looks", what, (unsigned long long)(looks() - before));
	CHECK_EQ(looks(), before);
}

/* A yield would cost it the rest of its period. */
static void *deadline(void *arg)
{
	(void)arg;
	if (!become_deadline())
		check_say("SCHED_DEADLINE is not permitted here: not tested");
	else
		never("a thread with a deadline", plain, TIMES);
	return NULL;
}

static void *real_time(void *policy)
{
	struct sched_param p = {.sched_priority = 1};

	if (sched_setscheduler(0, (int)(long)policy, &p))
		check_say("SCHED_FIFO is not permitted here: not tested");
	else
		never("a real-time thread", plain, TIMES);
	return NULL;
}

static void filtered(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog p = {.len = 1, .filter = &all};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		check_say("no filter can be installed here: not tested");
	else
		never("a seccomp filter", plain, TIMES);
}

/* ---- quotas -------------------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), (long)strlen(text));
	close(fd);
}

/*
 * A mount namespace in which /sys/fs/cgroup says that there is this quota, of either version: read
 * when the library starts.
 */
static void with_quota(char **argv, const char *us)
{
	char max[64];
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid) {
		check_child(pid);
		return;
	}
	snprintf(max, sizeof max, "%s 100000\n", us);
	if (unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL)) {
		check_say("no mount namespace can be had here: quotas are not tested");
		_exit(0);
	}
	put("/sys/fs/cgroup/cpu.max", max);
	CHECK_EQ(mkdir("/sys/fs/cgroup/cpu", 0755), 0);
	put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", us);
	put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
	execl("/proc/self/exe", argv[0], us, (char *)NULL);
	_exit(1);
}

static void run_with_quota(const char *us)
{
	make_known(&word);
	if (atol(us) < 200000) {
		never("a quota below two CPUs", plain, TIMES);
	} else {
		needs_looks(); /* the same, and they come */
		is_looked_at(&word);
	}
	exit(0);
}

/* ---- counts --------------------------------------------------------------------------- */

static void count_in_file(char **argv)
{
	static struct fg_stats empty = {
	    .abi = FG_STATS_ABI, .count = FG_STAT_COUNT, .shards = FG_STATS_SHARDS};
	char path[] = "/tmp/futex_never-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	empty.magic = FG_STATS_MAGIC;
	CHECK_EQ(write(fd, &empty, sizeof empty), sizeof empty);
	setenv(FG_STATS_ENV, path, 1);
	setenv("FUTEX_NEVER", path, 1);
	execv("/proc/self/exe", argv);
	CHECK(0);
}

/* The file is there until the first process ends. */
static void map_counts(void)
{
	int fd = open(getenv("FUTEX_NEVER"), O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	stats = mmap(NULL, sizeof *stats, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(stats != MAP_FAILED);
	close(fd);
}

static const struct {
	const char *what;
	void (*wait)(void);
} cases[] = {
    {"a shared word", shared}, {"some bits", some_bits},
    {"PI", inheritance},       {"requeue", requeue},
    {"wakes", wakes},	       {"other system calls", other_numbers},
    {"a new word", new_word},  {"an unmapped word", unmapped},
};

int main(int argc, char **argv)
{
	check_begin(argv[0], 30);
	if (!getenv("FUTEX_NEVER"))
		count_in_file(argv);
	map_counts();
	if (argc > 1)
		run_with_quota(argv[1]);
	CHECK_EQ(RESULT(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0)), 0);
	make_page();
	make_known(&word);
	make_known(&pi);
	make_known(page);
	needs_looks();
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		is_looked_at(&word);
		is_looked_at(&pi);
		is_looked_at(page);
		never(cases[i].what, cases[i].wait, TIMES);
	}
	is_looked_at(&word);
	in_thread(real_time, (void *)(long)SCHED_FIFO);
	in_thread(real_time, (void *)(long)SCHED_RR);
	in_thread(deadline, NULL);
	is_looked_at(&word);
	with_quota(argv, "199999");
	with_quota(argv, "50000");
	with_quota(argv, "200000");
	is_looked_at(&word);
	filtered();
	unlink(getenv("FUTEX_NEVER"));
	return 0;
}
