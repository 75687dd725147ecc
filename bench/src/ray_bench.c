/* SPDX-License-Identifier: MIT */
/*
 * A ray tracer with one contended lock: the threads take bundles of rays from one counter, as
 * SPLASH-2X's raytrace takes ray identifiers and jobs (Laforet et al., "FlexGuard", SOSP 2025,
 * section 5.3).  Mirrored spheres over a chequered floor.  The picture must be that of one thread.
 */
#include "app.h"

#include <math.h>

/* A picture takes some ms of a CPU.  Not varied. */
enum { SIZE = 192, SPHERES = 24, DEPTH = 4 };

struct vec {
	double x, y, z;
};

static struct app_option options[] = {
    {'n', "rays in a bundle", 4, 1, 10000}, {'p', "pictures", 4, 1, 10000}, {0}};
static struct {
	struct vec centre;
	double r, mirror;
} sphere[SPHERES];
static uint32_t pixel[SIZE * SIZE];

static struct {
	pthread_mutex_t m;
	unsigned next; /* ray; guarded */
	unsigned pictures;
} jobs OWN_LINES = {.m = PTHREAD_MUTEX_INITIALIZER};

static struct vec add(struct vec a, struct vec b, double f)
{
	return (struct vec){a.x + f * b.x, a.y + f * b.y, a.z + f * b.z};
}

static double dot(struct vec a, struct vec b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vec unit(struct vec a)
{
	return add((struct vec){0, 0, 0}, a, 1 / sqrt(dot(a, a)));
}

/* Index of the sphere that is hit first, -1: none; the distance in *t. */
static int hit(struct vec from, struct vec dir, double *t)
{
	int best = -1;

	*t = 1e9;
	for (int i = 0; i < SPHERES; i++) {
		struct vec to = add(sphere[i].centre, from, -1);
		double b = dot(to, dir), d = b * b - dot(to, to) + sphere[i].r * sphere[i].r, near;

		if (d < 0)
			continue;
		near = b - sqrt(d);
		if (near > 1e-4 && near < *t) {
			*t = near;
			best = i;
		}
	}
	return best;
}

static double shade(struct vec from, struct vec dir, int depth)
{
	static const struct vec light = {0.4, 0.8, -0.45};
	double t, s, light_t;
	struct vec at, n;
	int i = hit(from, dir, &t);

	if (i < 0) {
		if (dir.y >= -1e-3)
			return 0.3 + 0.7 * dir.y;
		at = add(from, dir, -from.y / dir.y);
		s = ((int)floor(at.x) + (int)floor(at.z)) & 1 ? 0.9 : 0.2;
		return hit(at, light, &light_t) < 0 ? s : s * 0.3;
	}
	at = add(from, dir, t);
	n = unit(add(at, sphere[i].centre, -1));
	s = fmax(0, dot(n, light)) * (hit(at, light, &light_t) < 0 ? 1 : 0.2);
	if (depth < DEPTH)
		s += sphere[i].mirror * shade(at, add(dir, n, -2 * dot(dir, n)), depth + 1);
	return s;
}

static void trace(unsigned ray)
{
	double x = ray % SIZE / (SIZE / 2.0) - 1, y = 1 - ray / SIZE / (SIZE / 2.0);

	pixel[ray] = (uint32_t)(1e6 *
				shade((struct vec){0, 1, -6}, unit((struct vec){x, y, 1.5}), 0));
}

static void *render(void *arg)
{
	unsigned bundle = (unsigned)options[0].value, first;

	(void)arg;
	for (;;) {
		pthread_mutex_lock(&jobs.m);
		if (jobs.next >= SIZE * SIZE && jobs.pictures > 1) {
			jobs.pictures--;
			jobs.next = 0;
		}
		first = jobs.next;
		jobs.next += bundle;
		pthread_mutex_unlock(&jobs.m);
		if (first >= SIZE * SIZE)
			return NULL;
		for (unsigned i = first; i < first + bundle && i < SIZE * SIZE; i++)
			trace(i);
	}
}

static uint64_t sum_of_picture(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < SIZE * SIZE; i++)
		sum = sum * 31 + pixel[i];
	return sum;
}

int main(int argc, char **argv)
{
	unsigned pictures, threads;
	uint64_t want, t0, ns, seed = 1;

	app_parse("ray_bench", argc, argv, options);
	pictures = (unsigned)options[1].value;
	for (int i = 0; i < SPHERES; i++) {
		sphere[i].r = 0.2 + 0.5 * app_uniform(&seed);
		sphere[i].centre = (struct vec){8 * app_uniform(&seed) - 4, sphere[i].r,
						8 * app_uniform(&seed) - 2};
		sphere[i].mirror = 0.8 * app_uniform(&seed);
	}
	for (unsigned i = 0; i < SIZE * SIZE; i++)
		trace(i);
	want = sum_of_picture();
	memset(pixel, 0, sizeof(pixel));
	jobs.pictures = pictures;
	threads = app.threads;
	t0 = now_ns();
	app_join(app_start(render));
	ns = now_ns() - t0;
	app.threads = threads;
	return app_report("rays", (double)pictures * SIZE * SIZE, ns, sum_of_picture() == want);
}
