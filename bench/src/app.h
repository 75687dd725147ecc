/* SPDX-License-Identifier: MIT */
/*
 * What the small applications share: options, threads that work until told to stop, one line at the
 * end.
 */
#ifndef FG_BENCH_APP_H
#define FG_BENCH_APP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct app_option {
	char letter;
	const char *what; /* for the help */
	double value, low, high;
};

static struct {
	const char *name;
	unsigned threads;
	double seconds;
	bool json;
} app;

static void app_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", app.name, what);
	exit(2);
}

static const char *app_is_in;

/* By whoever ends it early.  All of this may be done in a signal handler. */
static void app_ends(int sig)
{
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/rm", "rm", "-rf", "--", app_is_in, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	_exit(128 + sig);
}

/* Makes a folder for as long as the program runs, of a name as mkdtemp(3) has it. */
__attribute__((unused)) static void app_folder(char *template)
{
	static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
	struct sigaction old, sa = {.sa_handler = app_ends};

	sigfillset(&sa.sa_mask);
	if (!mkdtemp(template))
		app_fail("cannot make a folder for its data");
	app_is_in = template;
	for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (!sigaction(ends[i], NULL, &old) && old.sa_handler != SIG_IGN) /* nohup */
			sigaction(ends[i], &sa, NULL);
}

static void *app_memory(size_t size)
{
	void *p = aligned_alloc(2 * CACHE_LINE,
				(size + 2 * CACHE_LINE - 1) / (2 * CACHE_LINE) * (2 * CACHE_LINE));

	if (!p)
		app_fail("no memory");
	return memset(p, 0, size);
}

static void app_usage(FILE *f, const struct app_option *more)
{
	fprintf(
	    f,
	    "usage: %s [options]\n  -t N         threads (%u)\n  -d SECONDS   measuring window (%g)\n",
	    app.name, app.threads, app.seconds);
	for (; more->letter; more++)
		fprintf(f, "  -%c N         %s (%g)\n", more->letter, more->what, more->value);
	fputs("  -j           one line of JSON\n", f);
	exit(f == stdout ? 0 : 2);
}

/* -t, -d, -j, -h and those of `more`, which ends with letter 0. */
__attribute__((unused)) static void app_parse(const char *name, int argc, char **argv,
					      struct app_option *more)
{
	char letters[64] = "t:d:jh";
	int c;

	app.name = name;
	app.threads = 2;
	app.seconds = 1;
	for (struct app_option *o = more; o->letter; o++)
		snprintf(letters + strlen(letters), sizeof(letters) - strlen(letters),
			 "%c:", o->letter);
	while ((c = getopt(argc, argv, letters)) != -1) {
		struct app_option *o = more;

		while (o->letter && o->letter != c)
			o++;
		if (o->letter)
			o->value = number(optarg, o->low, o->high);
		else if (c == 't')
			app.threads = (unsigned)number(optarg, 1, 100000);
		else if (c == 'd')
			app.seconds = number(optarg, 0.01, 3600);
		else if (c == 'j')
			app.json = true;
		else
			app_usage(c == 'h' ? stdout : stderr, more);
	}
	if (optind != argc)
		app_usage(stderr, more);
}

/* Starts app.threads of them with their numbers. */
__attribute__((unused)) static pthread_t *app_start(void *(*run)(void *))
{
	pthread_t *t = app_memory(app.threads * sizeof(*t));

	for (unsigned i = 0; i < app.threads; i++)
		if (pthread_create(&t[i], NULL, run, (void *)(uintptr_t)i))
			app_fail("cannot make so many threads");
	return t;
}

__attribute__((unused)) static void app_join(pthread_t *t)
{
	for (unsigned i = 0; i < app.threads; i++)
		pthread_join(t[i], NULL);
	free(t);
}

/* ---- for those that work in a window of time ---- */

struct app_count {
	uint64_t operations; /* written by its thread, read at any time */
	uint64_t sum;	     /* the thread's own */
} OWN_LINES;

static struct app_count *app_count; /* of each thread */
static int app_stop;

static inline bool app_goes_on(void)
{
	return !__atomic_load_n(&app_stop, __ATOMIC_RELAXED);
}

static inline void app_counts(unsigned me, uint64_t operations)
{
	__atomic_store_n(&app_count[me].operations, operations, __ATOMIC_RELAXED);
}

static uint64_t app_operations(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < app.threads; i++)
		n += __atomic_load_n(&app_count[i].operations, __ATOMIC_RELAXED);
	return n;
}

#define WARM_UP_NS 50000000u /* not varied */

/*
 * What the threads do in app.seconds, after a warm-up; `meanwhile`, if any, takes that long.  They
 * have ended.
 */
__attribute__((unused)) static double app_window(void *(*run)(void *), void (*meanwhile)(void),
						 uint64_t *ns)
{
	uint64_t t0, n0, n;
	pthread_t *t;

	app_count = app_memory(app.threads * sizeof(*app_count));
	t = app_start(run);
	sleep_ns(WARM_UP_NS);
	t0 = now_ns();
	n0 = app_operations();
	if (meanwhile)
		meanwhile();
	else
		sleep_ns((uint64_t)(app.seconds * 1e9));
	*ns = now_ns() - t0;
	n = app_operations() - n0;
	__atomic_store_n(&app_stop, 1, __ATOMIC_RELAXED);
	app_join(t);
	return (double)n;
}

__attribute__((unused)) static double app_uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 11) / 9007199254740992.0;
}

/* The exit status. */
__attribute__((unused)) static int app_report(const char *unit, double n, uint64_t ns, bool ok)
{
	if (app.json)
		printf("{\"threads\": %u, \"per_ms\": %.5f, \"window_ms\": %.2f, \"check\": %s}\n",
		       app.threads, n * 1e6 / (double)ns, (double)ns / 1e6, ok ? "true" : "false");
	else
		printf(
		    "threads          %u\n%s/ms %.3f\nwindow (ms)      %.1f\nresult           %s\n",
		    app.threads, unit, n * 1e6 / (double)ns, (double)ns / 1e6,
		    ok ? "right" : "WRONG");
	return !ok;
}

#endif
