/* SPDX-License-Identifier: MIT */
/* What a run has shown: a line of JSON, and what options ask for. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#include "objects/objects.h"
#include "runtime/thread.h"

struct figures figures;

static int by_ops(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double wait_quantile(double q, uint64_t all)
{
	uint64_t seen = 0;

	for (int b = 0; b < 256; b++)
		if ((seen += results.wait_hist[b]) >= q * (double)all)
			return (double)(1ull << b / 4) * (1 + (b % 4 + 1) / 4.0) / 1000;
	return 0;
}

/* Of waiters that spin, at a held lock. */
static uint64_t looks(void)
{
	uint64_t n = 0;

	for (int i = 0; i < FG_STATS_SHARDS; i++)
		n += figures.counts->shard[i].v[FG_STAT_SPINS];
	return n;
}

static void report_runnable(void)
{
	uint64_t n = kernel_stats.runnable_samples;

	printf(",\"one_runnable\":%.2f", n ? (double)kernel_stats.one_runnable / (double)n : 0);
	if (!figures.show_runnable)
		return;
	printf(",\"runnable_at\":[");
	for (uint64_t i = 0; i < n && i < SAMPLES; i++)
		printf("%s%u", i ? "," : "", runnable_at[i]);
	printf("]");
}

void report(const char *lock, int n, uint64_t ps, double host_s)
{
	static uint64_t ops[SIM_THREADS];
	uint64_t all = 0, half = 0, max_wait = 0, sum = 0, lives = 0;
	double s;

	for (int i = 0; i < n; i++) {
		all += ops[i] = threads[i].ops;
		sum += threads[i].sum_wait;
		lives += threads[i].lives;
		if (threads[i].max_wait > max_wait)
			max_wait = threads[i].max_wait;
	}
	qsort(ops, (size_t)n, sizeof(*ops), by_ops);
	for (int i = n - n / 2; i < n; i++)
		half += ops[i];
	s = all ? (double)all : 1;
	printf(
	    "{\"object\":\"%s\",\"lock\":\"%s\",\"cpus\":%d,\"threads\":%d,\"sections\":%lu,\"per_ms\":%.1f,\"cs_us\":%.3f,"
	    "\"p50_us\":%.2f,\"p999_us\":%.1f,\"max_wait_us\":%.0f,\"fairness\":%.2f,\"min_ops\":%lu,"
	    "\"waits\":%.4f,\"wakes\":%.4f,\"timeouts\":%.4f,\"switches\":%.4f,\"preempted\":%lu,\"pulls\":%lu,\"yields\":%lu,\"membarriers\":%lu,"
	    "\"runnable\":%.1f,\"used\":%.1f",
	    load.object->name, lock, M.cpus, n, all, (double)all / ((double)ps / MS),
	    (double)sum / s / US, wait_quantile(.5, all), wait_quantile(.999, all),
	    (double)max_wait / US, all ? (double)half / s : 0, ops[0],
	    (double)kernel_stats.waits / s, (double)kernel_stats.wakes / s,
	    (double)kernel_stats.timeouts / s, (double)kernel_stats.switches / s,
	    kernel_stats.preempted, kernel_stats.pulls, kernel_stats.yields, kernel_stats.barriers,
	    kernel_stats.runnable_samples ?
		(double)kernel_stats.runnable_sum / (double)kernel_stats.runnable_samples :
		0,
	    (double)kernel_stats.ran / (double)ps);
	report_runnable();
	if (figures.counts)
		printf(",\"looks_us\":%.1f", (double)looks() / ((double)ps / US));
	printf(",\"others_sections\":%lu,\"lives\":%lu,\"indices\":%u", neighbours_sections(),
	       lives, fg_threads_highest());
	printf(",\"transfers\":{");
	for (int c = 0; c < C_CLASSES; c++)
		printf("%s\"%s\":[%.2f,%.2f]", c ? "," : "", class_name[c],
		       (double)mem_stats.local[c] / s, (double)mem_stats.remote[c] / s);
	printf(
	    "},\"started_us\":%llu,\"violations\":%lu,\"hooks\":%lu,\"fibers\":%lu,\"host_s\":%.1f}\n",
	    (unsigned long long)(figures.started / US), results.violations, kernel_stats.hooks,
	    kernel_stats.fibers, host_s);
}

static int by_n(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	return x->n < y->n ? 1 : x->n > y->n ? -1 : 0;
}

/* The places in the code that most lines were moved for; more of those for the lock's. */
void report_sites(uint64_t sections)
{
	qsort(sites, SITES, sizeof(*sites), by_n);
	for (int i = 0, locks = 0; i < SITES && sites[i].n && locks < 16; i++) {
		locks += sites[i].class == C_LOCK;
		if (i >= 16 && sites[i].class != C_LOCK)
			continue;
		printf("%8.2f %-8s ", (double)sites[i].n / (double)(sections ? sections : 1),
		       class_name[sites[i].class]);
		print_place(sites[i].pc);
	}
}

/* What it tells the monitor. */
static void report_slot(const struct thread *t)
{
	for (uint32_t k = 1; k <= fg_threads_highest(); k++) {
		const struct fg_slot *s = fg_slot_look(k);

		if (fg_thread_of(k)->tid % SIM_THREADS == (uint32_t)t->id + 1)
			printf("%08x role %u, in %u sections, pending %lx  ", fg_id_at(k), s->role,
			       s->sections, (unsigned long)s->pending);
	}
}

/* Where each thread is, at the end. */
void report_places(int n)
{
	static const char *const states[] = {"new", "runs", "queued", "sleeps", "done"};

	for (int i = 0; i < n; i++) {
		const struct thread *t = &threads[i];

		printf("%4d %-6s CPU %-3d %8lu sections  ", i, states[t->state], t->cpu, t->ops);
		report_slot(t);
		print_place(t->place);
	}
}
