/* SPDX-License-Identifier: MIT */
/*
 * Streaming k-median: points come in blocks; for each block the threads, in phases between
 * barriers, weigh whether opening another centre pays, each for its part of the points, and one of
 * them decides.  The shape of PARSEC's streamcluster (Bienia et al., PACT 2008) in the FlexGuard
 * paper (SOSP 2025, section 5.3): a few milliseconds of arithmetic hold hundreds of barriers.
 * PARSEC brings a barrier of its own, a mutex and a condition variable, so that whoever compares
 * mutexes there compares that barrier: -m 1.  Without, barriers are the system's.  All costs are
 * integers, so that any number of threads must come to the same result.
 */
#include "app.h"

/* Fewer dimensions than streamcluster has: barriers are what counts.  Not varied. */
enum { DIMENSIONS = 16, MAX_CENTRES = 32, TRIES = 60 };

static struct app_option options[] = {
    {'n', "points in a block", 512, 16, 1e6},
    {'b', "blocks", 8, 1, 1e6},
    {'m', "0 pthread_barrier_t, 1 a mutex and a condition variable", 0, 0, 1},
    {0}};
static unsigned points, blocks;
static int32_t (*point)[DIMENSIONS];
static uint64_t *cost; /* of each point, to its centre */
static int32_t centre[MAX_CENTRES][DIMENSIONS];
static unsigned nr_centres;
static uint64_t facility = 2000000; /* what a centre costs; not varied */
static struct {
	int64_t gain;
} OWN_LINES *part; /* of each thread */
static bool of_mutexes;
static pthread_barrier_t barrier;
static struct {
	pthread_mutex_t m;
	pthread_cond_t all;
	unsigned there, turn;
} gate = {.m = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER};
static bool opens;
static uint64_t result;

/* Whether I am the one. */
static bool all_here(void)
{
	bool last;

	if (!of_mutexes)
		return pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
	pthread_mutex_lock(&gate.m);
	last = ++gate.there == app.threads;
	if (last) {
		gate.there = 0;
		gate.turn++;
		pthread_cond_broadcast(&gate.all);
	} else {
		for (unsigned turn = gate.turn; turn == gate.turn;)
			pthread_cond_wait(&gate.all, &gate.m);
	}
	pthread_mutex_unlock(&gate.m);
	return last;
}

static uint64_t distance(const int32_t *a, const int32_t *b)
{
	uint64_t d = 0;

	for (int i = 0; i < DIMENSIONS; i++)
		d += (uint64_t)((int64_t)(a[i] - b[i]) * (a[i] - b[i]));
	return d;
}

static void make_block(uint64_t *seed)
{
	for (unsigned i = 0; i < points; i++) {
		int cluster = (int)(app_uniform(seed) * 9);

		for (int d = 0; d < DIMENSIONS; d++)
			point[i][d] = (int32_t)((cluster * (d + 3)) % 7 * 200 +
						(int)(app_uniform(seed) * 120));
		cost[i] = UINT32_MAX;
	}
	nr_centres = 0;
}

/* One more centre at this point: what my points would gain. */
static void weigh(unsigned me, const int32_t *candidate)
{
	unsigned from = points * me / app.threads, to = points * (me + 1) / app.threads;
	int64_t gain = 0;

	for (unsigned i = from; i < to; i++) {
		uint64_t d = distance(point[i], candidate);

		if (d < cost[i])
			gain += (int64_t)(cost[i] - d);
	}
	part[me].gain = gain;
}

static void move(unsigned me, const int32_t *candidate)
{
	unsigned from = points * me / app.threads, to = points * (me + 1) / app.threads;

	for (unsigned i = from; i < to; i++) {
		uint64_t d = distance(point[i], candidate);

		if (d < cost[i])
			cost[i] = d;
	}
}

static void decide(const int32_t *candidate)
{
	int64_t gain = -(int64_t)facility;

	for (unsigned i = 0; i < app.threads; i++)
		gain += part[i].gain;
	opens = gain > 0 && nr_centres < MAX_CENTRES;
	if (opens)
		memcpy(centre[nr_centres++], candidate, sizeof(centre[0]));
}

static void *cluster(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t seed = 7;

	for (unsigned b = 0; b < blocks; b++) {
		if (all_here()) {
			uint64_t block_seed = b + 1;

			make_block(&block_seed);
		}
		all_here();
		for (int t = 0; t < TRIES; t++) {
			const int32_t *candidate = point[(unsigned)(app_uniform(&seed) * points)];

			weigh(me, candidate);
			if (all_here())
				decide(candidate);
			all_here();
			if (opens)
				move(me, candidate);
		}
		if (all_here()) {
			for (unsigned i = 0; i < points; i++)
				result = result * 31 + cost[i];
			result = result * 31 + nr_centres;
		}
	}
	return NULL;
}

static uint64_t run(unsigned threads, uint64_t *ns)
{
	uint64_t t0;

	app.threads = threads;
	part = app_memory(threads * sizeof(*part));
	pthread_barrier_init(&barrier, NULL, threads);
	result = 0;
	t0 = now_ns();
	app_join(app_start(cluster));
	*ns = now_ns() - t0;
	pthread_barrier_destroy(&barrier);
	return result;
}

int main(int argc, char **argv)
{
	uint64_t want, got, ns, alone_ns;
	unsigned threads;

	app_parse("kmedian_bench", argc, argv, options);
	points = (unsigned)options[0].value;
	blocks = (unsigned)options[1].value;
	of_mutexes = options[2].value > 0;
	point = app_memory(points * sizeof(*point));
	cost = app_memory(points * sizeof(*cost));
	threads = app.threads;
	want = run(1, &alone_ns);
	got = run(threads, &ns);
	return app_report("points", (double)points * blocks, ns, got == want);
}
