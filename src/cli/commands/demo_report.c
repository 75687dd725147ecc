/* SPDX-License-Identifier: MIT */
/*
 * What `flexguard demo` says at the end: medians, spreads, the ratio of each
 * pair, and one sentence a workload that claims no more than the pairs show.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "abi/options.h"
#include "cli/commands/demo.h"
#include "cli/common/json.h"
#include "cli/common/names.h"
#include "cli/common/text.h"
#include "cli/common/units.h"
#include "monitor/clock.h"

#define VERSION_NS 5000000000ull /* for a program to say its version; not varied */

/* Three runs a side all apart are a chance of 1 in 10 already; fewer prove nothing. */
#define MIN_PAIRS 3

struct summary {
	double median[FG_SIDES], spread[FG_SIDES]; /* spread: half the range, over the median */
	double ratio, low, high;		   /* of the pairs, FlexGuard / glibc */
	/* every run of one side beats every run of the other */
	bool apart;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *v, int n, double *low, double *high)
{
	double s[FG_DEMO_PAIRS];

	memcpy(s, v, (size_t)n * sizeof(*v));
	qsort(s, (size_t)n, sizeof(*s), compare);
	*low = s[0];
	*high = s[n - 1];
	return n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

static struct summary summarise(const struct fg_cell *c)
{
	double ratio[FG_DEMO_PAIRS], low[FG_SIDES], high[FG_SIDES];
	struct summary s;

	for (int side = 0; side < FG_SIDES; side++) {
		s.median[side] = median(c->rate[side], c->pairs, &low[side], &high[side]);
		s.spread[side] = (high[side] - low[side]) / 2 / s.median[side];
	}
	s.apart = c->pairs >= MIN_PAIRS && (low[FG_SIDE_FLEXGUARD] > high[FG_SIDE_GLIBC] ||
					    high[FG_SIDE_FLEXGUARD] < low[FG_SIDE_GLIBC]);
	for (int i = 0; i < c->pairs; i++)
		ratio[i] = c->rate[FG_SIDE_FLEXGUARD][i] / c->rate[FG_SIDE_GLIBC][i];
	s.ratio = median(ratio, c->pairs, &s.low, &s.high);
	return s;
}

/* +1 faster, -1 slower, 0 no difference that stands out of the spread. */
static int verdict(const struct summary *s)
{
	if (!s->apart)
		return 0;
	return s->ratio >= 1.02 ? 1 : s->ratio <= 0.98 ? -1 : 0;
}

static void sentence(const struct fg_demo *d, enum fg_workload w)
{
	/* a spread takes some pairs */
	static const char *const word[] = {"not judged, of too few pairs,", "slower",
					   "within the spread", "faster"};
	char text[4][200] = {"", "", "", ""}, all[1000];
	int measured = 0;
	bool said = false;
	size_t n;

	for (int i = 0; i < d->nr_cells; i++) {
		const struct fg_cell *c = &d->cell[i];
		struct summary s;
		char *t;
		size_t len;

		if (c->workload != w || !c->pairs)
			continue;
		s = summarise(c);
		t = text[c->pairs < MIN_PAIRS ? 0 : verdict(&s) + 2];
		len = strlen(t);
		measured++;
		snprintf(t + len, sizeof(text[0]) - len, "%s%d (%.2fx)", len ? ", " : "",
			 c->threads, s.ratio);
	}
	if (!measured) {
		printf("%s: nothing was measured.\n", fg_workload_name[w]);
		return;
	}
	n = (size_t)snprintf(all, sizeof(all), "%s: on FlexGuard,", fg_workload_name[w]);
	for (int k = 3; k >= 0; k--)
		if (*text[k]) {
			n += (size_t)snprintf(all + n, sizeof(all) - n, "%s %s at %s threads",
					      said ? ";" : "", word[k], text[k]);
			said = true;
		}
	fg_put_text("%s.", all);
}

void fg_demo_table(const struct fg_demo *d)
{
	char a[24], b[24];

	printf("\n%-10s %7s %15s %15s  %s\n", "workload", "threads", "glibc ops/s",
	       "FlexGuard ops/s", "FlexGuard/glibc (pairs)");
	for (int i = 0; i < d->nr_cells; i++) {
		const struct fg_cell *c = &d->cell[i];
		struct summary s;

		if (c->failed[FG_SIDE_GLIBC] || c->failed[FG_SIDE_FLEXGUARD])
			printf("%-10s %7d  failed: glibc %d, FlexGuard %d times\n",
			       fg_workload_name[c->workload], c->threads, c->failed[FG_SIDE_GLIBC],
			       c->failed[FG_SIDE_FLEXGUARD]);
		if (!c->pairs)
			continue;
		s = summarise(c);
		printf("%-10s %7d %7s +-%3.0f %% %7s +-%3.0f %%  %5.2f (%.2f to %.2f, %d)\n",
		       fg_workload_name[c->workload], c->threads,
		       fg_human_count(a, sizeof(a), s.median[FG_SIDE_GLIBC]),
		       100 * s.spread[FG_SIDE_GLIBC],
		       fg_human_count(b, sizeof(b), s.median[FG_SIDE_FLEXGUARD]),
		       100 * s.spread[FG_SIDE_FLEXGUARD], s.ratio, s.low, s.high, c->pairs);
	}
	putchar('\n');
	fg_put_text("Medians of runs of %d s; +- is half the range; preemption monitor: %s.\n",
		    d->seconds, d->monitor);
	if (d->load_start > 0.5 * (double)sysconf(_SC_NPROCESSORS_ONLN))
		fg_put_text(
		    "The machine was not idle (load %.1f at the start): other work is in these "
		    "figures.\n",
		    d->load_start);
	for (int w = 0; w < FG_WORKLOADS; w++)
		sentence(d, (enum fg_workload)w);
}

/* Of all CPUs since boot: time that the hypervisor gave to others. */
uint64_t fg_steal_ns(void)
{
	unsigned long long v[8] = {0};
	FILE *f = fopen("/proc/stat", "re");

	if (f) {
		if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
			   &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
			v[7] = 0;
		fclose(f);
	}
	return v[7] * (1000000000 / (unsigned long)sysconf(_SC_CLK_TCK));
}

double fg_load_average(void)
{
	double v[1] = {0};

	getloadavg(v, 1);
	return v[0];
}

static void cpu_model(char *buf, size_t size)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");

	snprintf(buf, size, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (colon && (!strncmp(line, "model name", 10) || !strncmp(line, "Processor", 9))) {
			colon[strcspn(colon, "\n")] = '\0';
			snprintf(buf, size, "%s", colon + 2);
			break;
		}
	}
	if (f)
		fclose(f);
}

static void package_version(struct fg_json *j, const char *package)
{
	const char *argv[] = {"dpkg-query", "-W", "-f", "${Version}", package, NULL};
	char out[256];

	fg_json_text(j, package, fg_capture(argv, VERSION_NS, out, sizeof(out)) == 0 ? out : NULL);
}

static void context(struct fg_json *j, const struct fg_demo *d)
{
	const char *policy = secure_getenv(FG_POLICY_ENV);
	double wall_ns = (double)(fg_now_ns() - d->started_ns);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct utsname u;
	char model[200];

	uname(&u);
	cpu_model(model, sizeof(model));
	fg_json_open(j, NULL, '{');
	fg_json_open(j, "context", '{');
	fg_json_text(j, "flexguard", FG_VERSION);
	fg_json_text(j, "date", d->date);
	fg_json_text(j, "kernel", u.release);
	fg_json_text(j, "machine", u.machine);
	fg_json_text(j, "cpu_model", model);
	fg_json_int(j, "cpus", cpus);
	fg_json_real(j, "load_at_start", 2, d->load_start);
	fg_json_real(j, "steal_percent", 2,
		     100 * (double)(fg_steal_ns() - d->steal_start_ns) / wall_ns / (double)cpus);
	fg_json_text(j, "policy", policy && *policy ? policy : fg_policy_name[FG_POLICY_DEFAULT]);
	fg_json_text(j, "monitor", d->monitor);
	fg_json_int(j, "seconds_per_run", d->seconds);
	fg_json_int(j, "rounds", d->rounds);
	fg_json_real(j, "wall_s", 1, wall_ns / 1e9);
	fg_json_flag(j, "interrupted", d->interrupted);
	package_version(j, "rocksdb-tools");
	package_version(j, "sysbench");
	fg_json_close(j, '}');
	fg_json_close(j, '}');
	fg_json_end(j);
}

static void pair(struct fg_json *j, const struct fg_cell *c, int n)
{
	fg_json_open(j, NULL, '{');
	fg_json_open(j, "pair", '{');
	fg_json_text(j, "workload", fg_workload_name[c->workload]);
	fg_json_int(j, "threads", c->threads);
	fg_json_int(j, "n", n);
	fg_json_real(j, "glibc", 1, c->rate[FG_SIDE_GLIBC][n]);
	fg_json_real(j, "flexguard", 1, c->rate[FG_SIDE_FLEXGUARD][n]);
	fg_json_close(j, '}');
	fg_json_close(j, '}');
	fg_json_end(j);
}

static void result(struct fg_json *j, const struct fg_cell *c)
{
	struct summary s;

	fg_json_open(j, NULL, '{');
	fg_json_open(j, "result", '{');
	fg_json_text(j, "workload", fg_workload_name[c->workload]);
	fg_json_int(j, "threads", c->threads);
	fg_json_int(j, "pairs", c->pairs);
	fg_json_int(j, "failed_glibc", c->failed[FG_SIDE_GLIBC]);
	fg_json_int(j, "failed_flexguard", c->failed[FG_SIDE_FLEXGUARD]);
	if (c->pairs) {
		s = summarise(c);
		fg_json_real(j, "glibc_median", 1, s.median[FG_SIDE_GLIBC]);
		fg_json_real(j, "flexguard_median", 1, s.median[FG_SIDE_FLEXGUARD]);
		fg_json_real(j, "ratio", 4, s.ratio);
		fg_json_real(j, "ratio_low", 4, s.low);
		fg_json_real(j, "ratio_high", 4, s.high);
	}
	fg_json_close(j, '}');
	fg_json_close(j, '}');
	fg_json_end(j);
}

void fg_demo_json(FILE *f, const struct fg_demo *d)
{
	struct fg_json j = {.f = f};

	context(&j, d);
	for (int i = 0; i < d->nr_cells; i++) {
		const struct fg_cell *c = &d->cell[i];

		for (int k = 0; k < c->pairs; k++)
			pair(&j, c, k);
		if (c->pairs || c->failed[FG_SIDE_GLIBC] || c->failed[FG_SIDE_FLEXGUARD])
			result(&j, c);
	}
}
