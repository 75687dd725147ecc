/* SPDX-License-Identifier: MIT */
/*
 * Random schedules of small programs, one for each seed, and what is said when one of them goes
 * wrong.  A batch of them runs in a process of its own, which is forked from one in which nothing
 * has happened yet: a schedule and its seed are all that a failure needs to come again.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "objects/objects.h"
#include "runtime/policy.h"

#define BATCH 25
/* Simulated time.  Nobody waits as long, but in vain, looking at the lock ever more rarely. */
#define WAIT_MAX (60000 * MS)

/* The outcome of a batch, in memory that both processes have. */
static struct outcome {
	uint64_t done, ops, steps, hash, longest, idle;
	uint64_t seed; /* of the schedule that is under way, or has failed */
	char what[160];
} *outcome;
static bool searching; /* for a smaller one, of which only the last is shown */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fails(const char *format, uint64_t n)
{
	snprintf(outcome->what, sizeof(outcome->what), format, n);
}

/* False: it has failed. */
static bool one_schedule(const struct check *c, uint64_t seed)
{
	int k, stuck;

	outcome->seed = seed;
	rng_state = (seed + 1) * 0x9E3779B97F4A7C15ull | 1;
	for (int i = 0; i < 8; i++)
		rng();
	k = c->exact ? c->threads : 2 + (int)(rng() % (uint64_t)(c->threads - 1));
	load.threads = k;
	load.most = c->threads;
	load.forks = load.forking;
	schedule.by_priority = c->changes >= 0;
	schedule_begins(2 * c->threads, c->changes, c->length);
	sim_restart();
	load_reset();
	for (int i = 0; i < k; i++)
		sim_spawn(i, load.object->check, rng() % (2 * US));
	for (int i = 0; i < k; i++)
		handlers_arm(&threads[i]);
	if (load.forks && load.object->interrupt && rng() % 2)
		threads[0].interrupt = 1 + (uint32_t)(rng() % 500);
	stuck = sim_run(WAIT_MAX);
	outcome->steps += schedule.steps;
	outcome->hash = (outcome->hash ^ schedule.hash) * 0x100000001b3ull;
	for (int i = 0; i < (load.forking ? 2 * c->threads : k); i++) {
		outcome->ops += threads[i].ops;
		if (threads[i].max_wait > outcome->longest)
			outcome->longest = threads[i].max_wait;
	}
	if (results.idle > outcome->idle)
		outcome->idle = results.idle;
	if (results.violations)
		memcpy(outcome->what, results.what, sizeof(results.what));
	else if (stuck && schedule.steps >= SCHEDULE_MAX)
		fails("does not end: after %lu accesses somebody still spins", schedule.steps);
	else if (stuck)
		fails("%lu threads wait for ever", (uint64_t)stuck);
	else if (results.idle > c->bound)
		fails("nobody got anything for %lu ms", results.idle / MS);
	else
		load.object->after();
	if (results.violations && !outcome->what[0])
		memcpy(outcome->what, results.what, sizeof(results.what));
	return !outcome->what[0];
}

/* Schedules of n seeds from `seed` on, from a state in which nothing has happened.  False: one has
 * failed. */
static bool batch(const struct check *c, uint64_t seed, uint64_t n)
{
	pid_t child;
	int status;

	outcome->what[0] = 0;
	fflush(stdout);
	child = fork();
	if (child < 0) {
		perror("fork");
		exit(1);
	}
	if (!child) {
		bool good = true;

		for (uint64_t i = 0; i < n && good; i++, outcome->done++)
			good = one_schedule(c, seed + i);
		if (results.where && (!searching || schedule.traced)) {
			printf("at ");
			print_place(results.where);
		}
		if (schedule.traced)
			schedule_print();
		fflush(stdout);
		_exit(!good);
	}
	while (waitpid(child, &status, 0) != child)
		;
	if (WIFSIGNALED(status))
		fails("killed by signal %lu", (uint64_t)WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void print_replay(const struct check *c, uint64_t first)
{
	char line[400] = "";

	for (int i = 0; c->argv[i]; i++) {
		/* What stands for the schedules and the seed is said anew. */
		if (!strncmp(c->argv[i], "-x", 2) || !strncmp(c->argv[i], "-s", 2)) {
			i += !c->argv[i][2] && c->argv[i + 1];
			continue;
		}
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s ", c->argv[i]);
	}
	printf("again: %s-s %lu -x %lu\n", line, first, outcome->seed - first + 1);
}

/* What the schedule of outcome->seed does, of a batch from seed `first` on that ends with it. */
static void show_trace(const struct check *c, uint64_t first)
{
	schedule.traced = true;
	if (batch(c, first, outcome->seed - first + 1))
		puts("this is not it: it does not come again");
	else
		printf("so it went wrong: %s\n", outcome->what);
}

/*
 * The fewest threads, rounds and change points with which it goes wrong as well: by itself, or
 * after those before it, from which its threads know something.  If there are none, the schedule
 * that has failed, of a batch from seed `first` on.
 */
static void find_smaller(const struct check *original, uint64_t first)
{
	struct check c = *original;
	double until = seconds() + c.search_s;
	int rounds = load.rounds;
	uint64_t failed = outcome->seed;
	uint64_t size = load.forking ? 1 : BATCH; /* nothing is left of the others */

	c.exact = true;
	for (c.threads = 2; c.threads <= original->threads; c.threads++)
		for (load.rounds = 1; load.rounds <= rounds; load.rounds++)
			/* By priorities, but for what does not sleep. */
			for (c.changes = -load.foreign; c.changes < (load.foreign ? 0 : 4);
			     c.changes++) {
				c.length = 300ull * (uint64_t)(c.threads * load.rounds);
				for (uint64_t seed = 0; seed < 40 * BATCH; seed += size) {
					if (seconds() > until)
						goto none;
					if (batch(&c, seed, size))
						continue;
					failed = outcome->seed;
					if (!batch(&c, failed, 1))
						seed = failed;
					outcome->seed = failed;
					printf("smallest found: %d threads, %d rounds, %d change "
					       "points, after %lu others\n",
					       c.threads, load.rounds,
					       c.changes > 0 ? c.changes : 0, failed - seed);
					show_trace(&c, seed);
					return;
				}
			}
none:
	load.rounds = rounds;
	outcome->seed = failed;
	printf("none smaller found in %g s\n", c.search_s);
	show_trace(original, first);
}

static const char *const order_names[] = {[__ATOMIC_CONSUME] = "consume",
					  [__ATOMIC_ACQUIRE] = "acquire",
					  [__ATOMIC_RELEASE] = "release",
					  [__ATOMIC_ACQ_REL] = "acq_rel",
					  [__ATOMIC_SEQ_CST] = "seq_cst"};

/* Is what the place is in ("FUNCTION at ...") among the names? */
static bool is_asked(const char *place, const char *names)
{
	size_t n = strcspn(place, " ");

	for (; *names; names += strcspn(names, ","), names += *names == ',')
		if (strcspn(names, ",") == n && !strncmp(names, place, n))
			return true;
	return false;
}

/* Which of the orders that a program of the object comes by are needed for what is checked? */
static int check_orders(struct check *c)
{
	struct orders *all;
	uint32_t found = 0, asked = 0;
	uint64_t n;

	orders = mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	for (n = 0; n < c->schedules; n += BATCH)
		if (!batch(c, c->seed + n, BATCH)) {
			printf("seed %lu: %s\n", outcome->seed, outcome->what);
			return 1;
		}
	all = orders;
	orders = NULL;
	for (uint32_t i = 0; i < all->n; i++) {
		bool good = true;
		char place[256];

		name_place(all->at[i].pc, place, sizeof(place));
		if (c->relaxed && !is_asked(place, c->relaxed))
			continue;
		asked++;
		relaxed_at = all->at[i].pc;
		for (n = 0; n < c->schedules && good; n += BATCH)
			good = batch(c, c->seed + n, BATCH);
		found += !good;
		printf("%-7s ", order_names[all->at[i].order]);
		if (good)
			printf("%-10s %-60s %s\n", "not found", "", place);
		else
			printf("%-10lu %-60.60s %s\n", outcome->seed - c->seed + 1, outcome->what,
			       place);
	}
	printf("%s: %u places with an order, %u needed in %lu schedules each\n", load.object->name,
	       asked, found, c->schedules);
	return 0;
}

int check_run(struct check *c, const char *lock)
{
	uint64_t seed = c->seed, left = c->schedules, done = 0, size = BATCH;
	double t0 = seconds();
	bool good = true;

	outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	load.checks = true;
	if (load.forking)
		size = 1;     /* nothing is left of the others */
	if (c->changes > 0) { /* how long a schedule is, in steps */
		struct check pilot = *c;

		pilot.changes = 0;
		batch(&pilot, 1, size);
		c->length = outcome->steps / (outcome->done ? outcome->done : 1);
		memset(outcome, 0, sizeof(*outcome));
	}
	if (c->relax)
		return check_orders(c);
	for (; left && good; left -= size, seed += size) {
		size = size < left ? size : left;
		good = batch(c, seed, size);
	}
	done = outcome->done;
	if (!good) {
		uint64_t first = seed - size, failed = outcome->seed;

		printf("schedule %lu, seed %lu: %s\n", failed - c->seed, failed, outcome->what);
		print_replay(c, first);
		if (c->search_s > 0) {
			struct outcome of_all = *outcome;

			searching = true;
			find_smaller(c, first);
			*outcome = of_all;
		}
	}
	printf("%s %s: %lu schedules, %lu operations, %lu steps, longest wait %.2f ms, nobody "
	       "got anything for %.2f ms, hash %016lx, %.1f s, %.0f schedules a minute\n",
	       lock, load.object->name, done, outcome->ops, outcome->steps,
	       (double)outcome->longest / MS, (double)outcome->idle / MS, outcome->hash,
	       seconds() - t0, (double)done * 60 / (seconds() - t0));
	return !good;
}
