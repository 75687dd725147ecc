/* SPDX-License-Identifier: MIT */
/*
 * Random schedules, step by step: a step is an access to memory.
 *
 * By times: each access takes a random time, and whoever is due first goes on; the order of
 * what threads on several CPUs do is any.  By priorities: of all that may go on, the one with the
 * highest priority does, until it waits or a change point comes at which its priority falls below
 * all others' (PCT: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with
 * Probabilistic Guarantees of Finding Bugs", ASPLOS 2010).  A bug that needs d ordered steps, of k
 * that n threads do, is found with a probability of at least 1/(n k^(d-1)) a schedule, with d-1
 * change points.  A thread that pauses waits for others, so its priority falls, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "objects/objects.h"
#include "sim.h"

struct schedule schedule;

static uint64_t change_at[CHANGES_MAX];
static int changes;
static int64_t lowest;

/* Where threads were when another went on. */
#define SWITCHES 65536
static struct {
	uint64_t at, step;
	const void *pc;
	int thread, cpu;
} switches[SWITCHES];
static uint32_t nswitches;
static int last_thread = -1;

void schedule_begins(int nthreads, int n, uint64_t length)
{
	schedule.steps = 0;
	schedule.hash = 0xcbf29ce484222325ull;
	nswitches = 0;
	last_thread = -1;
	lowest = 0;
	changes = n;
	for (int i = 0; i < n; i++)
		change_at[i] = 1 + rng() % (length ? length : 1);
	/* Any order of all of them. */
	for (int i = 0; i < nthreads; i++)
		threads[i].priority = (int64_t)(rng() % (1ull << 40)) + 1;
}

bool schedule_step(struct thread *t, const void *pc, uint64_t at)
{
	bool falls = false;

	schedule.steps++;
	schedule.hash = (schedule.hash ^ (uint64_t)pc ^ (uint64_t)t->id << 48 ^ at) *
			0x100000001b3ull;
	if (schedule.traced) {
		uint32_t i = nswitches;

		if (t->id != last_thread)
			i = ++nswitches;
		last_thread = t->id;
		switches[i % SWITCHES].at = at;
		switches[i % SWITCHES].step = schedule.steps;
		switches[i % SWITCHES].pc = pc;
		switches[i % SWITCHES].thread = t->id;
		switches[i % SWITCHES].cpu = here->id;
	}
	if (!schedule.by_priority)
		return false;
	for (int i = 0; i < changes; i++)
		falls |= change_at[i] == schedule.steps;
	if (falls)
		t->priority = --lowest;
	return falls;
}

void schedule_pauses(struct thread *t)
{
	if (schedule.by_priority) {
		t->priority = --lowest;
		horizon = 0;
	}
}

void name_place(const void *pc, char *name, size_t size)
{
	char command[256];
	FILE *says;

	snprintf(command, sizeof(command), "addr2line -s -f -p -e /proc/%d/exe %p", getpid(),
		 (void *)((const char *)pc - 1));
	fflush(stdout);
	says = popen(command, "r");
	if (!says || !fgets(name, (int)size, says))
		snprintf(name, size, "?");
	if (says)
		pclose(says);
	name[strcspn(name, "\n")] = 0;
}

void print_place(const void *pc)
{
	char name[256];

	name_place(pc, name, sizeof(name));
	puts(name);
}

/* The last ones: what each thread did, and how far it came, before another went on. */
void schedule_print(void)
{
	uint32_t from = nswitches > 60 ? nswitches - 60 : 1;

	printf("  step     time/us  CPU thread  before another went on it came to\n");
	for (uint32_t i = from; i <= nswitches; i++) {
		printf("%6lu %11.3f  %3d %6d  ", switches[i % SWITCHES].step,
		       (double)switches[i % SWITCHES].at / US, switches[i % SWITCHES].cpu,
		       switches[i % SWITCHES].thread);
		print_place(switches[i % SWITCHES].pc);
	}
}
