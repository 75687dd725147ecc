// SPDX-License-Identifier: MIT
/*
 * The companion scheduler, fair: on one CPU, beside four threads of a user that claim for ever to
 * own what others wait for, a plain thread of another user gets its half, and one of the same user
 * its fifth, or most of that; and so beside processes that fork, exec and exit without end. Nothing
 * is held up until the watchdog comes.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include "sched_common.h"

#define LIARS	4
#define CHAINS	4
#define BURNT_S 1.5 /* CPU time that is divided */
#define OTHER	65534

static struct shared {
	double other_s, plain_s;
	double had_s[CHAINS + 1]; /* by processes of the first user */
	uint32_t stop;
} *shared;
static int cpu;

static void *burn_plain(void *arg)
{
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
		shared->plain_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void burn_other(void *arg)
{
	CHECK(!setgid(OTHER) && !setuid(OTHER));
	/* ends with that; it holds the scheduler's link, as all children do */
	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
		shared->other_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static void lie(void *arg)
{
	struct actor liar[LIARS];
	struct monitor *m = arg;
	uint32_t lock[LIARS][2];
	pthread_t plain;
	struct client c;

	client_join(&c, m->name, 8);
	for (uint32_t i = 0; i < LIARS; i++) {
		actor_start(&liar[i], &c, i + 1, cpu, SCHED_OTHER);
		lock[i][0] = (i + 1) | FG_WORD_WAITERS;
		actor_slot(&liar[i])->pending = (uintptr_t)lock[i];
		actor_tell(&liar[i], ACT_BUSY);
	}
	CHECK(!pthread_create(&plain, NULL, burn_plain, NULL));
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		shared->had_s[0] = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
		usleep(20000);
	}
	pthread_join(plain, NULL);
	for (int i = 0; i < LIARS; i++)
		actor_join(&liar[i]);
}

static void burn_same(void *arg)
{
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
		shared->plain_s = shared->had_s[CHAINS] = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

/* A chain of children that burn less than a turn each; of one in two chains they exec, too. */
static void churn(void *arg)
{
	intptr_t chain = (intptr_t)arg;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		struct rusage u;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < 0.003)
				;
			if (chain % 2)
				execl("/proc/self/exe", "true", "nothing", NULL);
			_exit(0);
		}
		CHECK(waitpid(pid, NULL, 0) == pid);
		CHECK(!getrusage(RUSAGE_CHILDREN, &u));
		shared->had_s[chain] = (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
				       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	}
}

static double theirs(void)
{
	double s = 0;

	for (int i = 0; i <= CHAINS; i++)
		s += shared->had_s[i];
	return s;
}

/*
 * Of what all have had from here on: the other user's part, and that of a plain thread beside
 * `busy` others of the first user.
 */
static void check_shares(const struct fg_sched *s, int busy, const char *what)
{
	double other = shared->other_s, plain = shared->plain_s, all = theirs();

	WAIT_FOR(shared->other_s - other + theirs() - all > BURNT_S);
	all = theirs() - all;
	plain = shared->plain_s - plain;
	other = shared->other_s - other;
	printf("%s: the other user %.3f s, they %.3f s, a plain thread of these %.3f s\n", what,
	       other, all, plain);
	fflush(stdout);
	if (other < 0.35 * (other + all) || plain < all / (busy + 1) / 2)
		fail("%s: not fair", what);
	check_alive(s);
}

static void stop(pid_t *pid, int n)
{
	shared->stop = 1;
	while (n--)
		reap(pid[n]);
	memset(shared, 0, sizeof(*shared));
}

int main(int argc, char **argv)
{
	struct fg_sched_counts counts;
	struct fg_sched *s;
	struct monitor m;
	pid_t pid[CHAINS + 2];

	if (argc > 1)
		return 0; /* of churn() */
	test_begin();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	monitor_start(&m, NULL);
	s = sched_open_or_skip(m.pid);
	usable_cpus(&cpu, 1);
	/* What follows inherits it. */
	pin(0, cpu);

	pid[0] = spawn(lie, &m);
	pid[1] = spawn(burn_other, NULL);
	WAIT_FOR(shared->plain_s > 0 && shared->other_s > 0 && counts_of(s).first >= 5);
	check_shares(s, LIARS, "liars");
	counts = counts_of(s);
	CHECK(counts.extended && counts.first && counts.first <= counts.preempted);
	stop(pid, 2);

	for (intptr_t i = 0; i < CHAINS; i++)
		pid[i] = spawn(churn, (void *)i);
	pid[CHAINS] = spawn(burn_same, NULL);
	pid[CHAINS + 1] = spawn(burn_other, NULL);
	WAIT_FOR(shared->plain_s > 0 && shared->other_s > 0 && shared->had_s[0] > 0);
	check_shares(s, CHAINS, "fork, exec, exit");
	stop(pid, CHAINS + 2);

	monitor_stop(&m);
	calls->close(s);
	CHECK(sched_is("disabled"));
	return 0;
}
