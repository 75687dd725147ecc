/* SPDX-License-Identifier: MIT */
/*
 * Threads take locks, nested and in every way that POSIX has, and change what
 * the locks guard.  Options add what real programs do meanwhile.
 *
 *   -t N  threads (default 4)        -d S  seconds, or -n N sections a thread
 *   -l N  locks (default 4)          -k T  normal|recursive|errorcheck|adaptive|mixed|native
 *   -s N  seed                       -w S  seconds without progress that count as a hang
 *   -S    signals whose handlers lock      -T  timed locks with tiny deadlines
 *   -C    condition waits, cancelled       -F  fork inside the section
 *   -X    fork and exec inside the section -R  threads that are born and die
 *   -y    long sections: yield and sleep inside   -q    say nothing on success
 *
 * More than 500 lines, in one file: all of it is about the same few threads and locks, and what it
 * uses of ../tools has its state in a file.
 */
#include "objects.h"
#include "../tools/progress.h"

#include <getopt.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>

#define MAX_THREADS 64
#define MAX_LOCKS   1024
#define MAX_NEST    4
#define SLEEPERS    3

static int n_threads = 4, n_locks = 4, do_signals, do_timed, do_cancel, do_fork, do_exec, do_churn,
	   do_yield, quiet;
static long run_us, n_sections;
static char *self;
extern char **environ;

static struct object objects[MAX_LOCKS];
static struct object handler_objects[2]; /* locked by signal handlers only */
static int stop;

static struct worker {
	uint64_t rng, handler_rng;
	long sections, changes; /* by the worker */
	int tid;		/* 0 = between two threads of a churn */
	int done;
} __attribute__((aligned(64))) workers[MAX_THREADS];

static __thread struct worker *me __attribute__((tls_model("initial-exec")));
static long handler_changes, cancel_changes;

static int index_of(struct worker *w)
{
	return (int)(w - workers);
}

/* ---- taking a lock ------------------------------------------------------- */

static int try_until_deadline(struct object *o, struct worker *w)
{
	struct timespec ts;
	long us = (long)rnd_below(&w->rng, 200) - 20;

	if (rnd(&w->rng) & 1) {
		ts = in_us(CLOCK_REALTIME, us);
		return pthread_mutex_timedlock(&o->mutex, &ts);
	}
	ts = in_us(CLOCK_MONOTONIC, us);
	return pthread_mutex_clocklock(&o->mutex, CLOCK_MONOTONIC, &ts);
}

/* The object is locked on return 1.  may_fail: the caller holds locks above this one. */
static int take(struct object *o, struct worker *w, int may_fail)
{
	unsigned how = rnd_below(&w->rng, 16);
	int r;

	if (may_fail || how == 0) {
		progress_at(index_of(w), "in trylock");
		r = pthread_mutex_trylock(&o->mutex);
		CHECK(r == 0 || r == EBUSY);
		if (!r || may_fail)
			return !r;
	}
	if (do_timed && how < 10) {
		progress_at(index_of(w), "in a timed lock");
		for (int i = 0; i < 4; i++) {
			r = try_until_deadline(o, w);
			CHECK(r == 0 || r == ETIMEDOUT);
			if (!r)
				return 1;
		}
	}
	progress_at(index_of(w), "in lock");
	CHECK_EQ(pthread_mutex_lock(&o->mutex), 0);
	return 1;
}

/* What the type promises to the owner. */
static void use_type(struct object *o, struct worker *w)
{
	int r;

	if (rnd_below(&w->rng, 8))
		return;
	switch (o->type) {
	case PTHREAD_MUTEX_RECURSIVE:
		for (unsigned n = rnd_below(&w->rng, 4), i = 0; i < 2 * n; i++)
			CHECK_EQ(i < n ? pthread_mutex_lock(&o->mutex) :
					 pthread_mutex_unlock(&o->mutex),
				 0);
		CHECK_EQ(pthread_mutex_trylock(&o->mutex), 0);
		CHECK_EQ(pthread_mutex_unlock(&o->mutex), 0);
		break;
	case PTHREAD_MUTEX_ERRORCHECK:
		CHECK_EQ(pthread_mutex_lock(&o->mutex), EDEADLK);
		/* glibc's robust ones say EDEADLK to this, too */
		r = pthread_mutex_trylock(&o->mutex);
		CHECK(r == EBUSY || (r == EDEADLK && o->native));
		break;
	default: CHECK_EQ(pthread_mutex_trylock(&o->mutex), EBUSY);
	}
}

static void drop(struct object *o, struct worker *w)
{
	object_leave(o, index_of(w) + 1);
	progress_at(index_of(w), "in unlock");
	CHECK_EQ(pthread_mutex_unlock(&o->mutex), 0);
	if (o->type == PTHREAD_MUTEX_ERRORCHECK && !rnd_below(&w->rng, 16))
		CHECK_EQ(pthread_mutex_unlock(&o->mutex), EPERM);
}

/* ---- processes that are born in the section ------------------------------ */

struct child_work {
	struct object *o;
	int n;
};

static void *child_thread(void *arg)
{
	struct child_work *c = arg;

	for (int i = 0; i < c->n; i++) {
		lock(&c->o->mutex);
		object_enter(c->o, 99);
		object_change(c->o, i);
		object_leave(c->o, 99);
		unlock(&c->o->mutex);
	}
	return NULL;
}

/*
 * Only the thread that forked exists here.  It owns what it held; of the other
 * locks it can say nothing, so it only tries them.
 */
__attribute__((noreturn)) static void in_child(struct object **held, int n, struct worker *w)
{
	struct child_work work = {held[0], 50};
	long before = held[0]->count;
	pthread_t t[2];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, SIG_IGN);
	check_watchdog(30);
	for (int i = 0; i < n; i++)
		object_verify(held[i]);
	for (int i = n; i-- > 0;) {
		/* glibc knows owners by their thread id, which is another one in the child */
		int r = pthread_mutex_unlock(&held[i]->mutex);
		int owned = held[i]->type == PTHREAD_MUTEX_RECURSIVE ||
			    held[i]->type == PTHREAD_MUTEX_ERRORCHECK;

		CHECK(r == 0 || (r == EPERM && owned));
		if (r)
			_exit(0);
		held[i]->inside = 0;
	}
	for (int i = 0; i < 2; i++)
		t[i] = start(child_thread, &work);
	child_thread(&work);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	CHECK_EQ(held[0]->count, before + 150);
	for (int i = 0; i < 8; i++) {
		struct object *o = &objects[rnd_below(&w->rng, n_locks)];

		if (!pthread_mutex_trylock(&o->mutex)) {
			object_verify(o);
			unlock(&o->mutex);
		}
	}
	_exit(0);
}

static pid_t fork_in_section(struct object **held, int n, struct worker *w)
{
	char *argv[] = {self, "-q", "-t3", "-l1", "-n200", NULL};
	sigset_t block, old;
	pid_t pid = 0;

	progress_at(index_of(w), "in fork");
	if (do_exec && (rnd(&w->rng) & 1)) { /* vfork, in glibc */
		CHECK_EQ(posix_spawn(&pid, self, NULL, NULL, argv, environ), 0);
		return pid;
	}
	sigemptyset(&block); /* no handler in the child: its locks may be held by nobody */
	sigaddset(&block, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid && do_exec) {
		execv(self, argv);
		_exit(CHECK_SETUP);
	}
	if (!pid)
		in_child(held, n, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

/* ---- the section --------------------------------------------------------- */

static void section(struct worker *w)
{
	struct object *held[MAX_NEST];
	unsigned want = rnd_below(&w->rng, 3) ? 1 : 1 + rnd_below(&w->rng, MAX_NEST);
	int n = 0, lowest = 0, id = index_of(w);
	pid_t pid = 0;

	/* Upwards in the order of the locks; a lock below the last one is only tried. */
	while (want--) {
		int i = (int)rnd_below(&w->rng, n_locks), again = 0;

		for (int j = 0; j < n; j++)
			again |= held[j] == &objects[i];
		if (again || !take(&objects[i], w, i < lowest))
			continue;
		if (i > lowest)
			lowest = i;
		held[n++] = &objects[i];
		object_enter(&objects[i], id + 1);
	}
	progress_at(id, "in the section");
	for (int i = 0; i < n; i++) {
		use_type(held[i], w);
		object_change(held[i], (unsigned)rnd(&w->rng));
		w->changes++;
		if (!rnd_below(&w->rng, 64))
			object_verify(held[i]);
	}
	if (!rnd_below(&w->rng, 4))
		busy(rnd_below(&w->rng, 2000));
	if (do_yield && !rnd_below(&w->rng, 16)) {
		if (rnd(&w->rng) & 1)
			sched_yield();
		else
			sleep_us(rnd_below(&w->rng, 300));
	}
	if ((do_fork || do_exec) && n && !rnd_below(&w->rng, 200))
		pid = fork_in_section(held, n, w);
	progress_at(id, "in the section");
	while (n) {
		int i = (int)rnd_below(&w->rng, n);

		drop(held[i], w);
		held[i] = held[--n];
	}
	if (pid) {
		progress_at(id, "in waitpid");
		check_child(pid);
	}
	if (!rnd_below(&w->rng, 4))
		busy(rnd_below(&w->rng, 4000));
	w->sections++;
	progress_made(id);
}

static int finished(struct worker *w)
{
	return n_sections ? w->sections >= n_sections : LOAD(stop);
}

static void *work(void *arg)
{
	struct worker *w = me = arg;
	long chunk = do_churn ? (long)rnd_below(&w->rng, 100) : -1;

	STORE(w->tid, (int)syscall(SYS_gettid));
	while (!finished(w) && chunk-- != 0)
		section(w);
	STORE(w->tid, 0);
	if (finished(w)) {
		progress_at(index_of(w), NULL);
		STORE(w->done, 1);
	} else {
		pthread_attr_t a;
		pthread_t t;

		/* The successor starts while this thread ends. */
		pthread_attr_init(&a);
		pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
		CHECK_EQ(pthread_create(&t, &a, work, w), 0);
		pthread_attr_destroy(&a);
	}
	return NULL;
}

/* ---- signals ------------------------------------------------------------- */

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	if (me) {
		struct object *o = &handler_objects[rnd_below(&me->handler_rng, 2)];

		CHECK_EQ(pthread_mutex_lock(&o->mutex), 0);
		object_enter(o, index_of(me) + 1);
		object_change(o, (unsigned)rnd(&me->handler_rng));
		object_leave(o, index_of(me) + 1);
		CHECK_EQ(pthread_mutex_unlock(&o->mutex), 0);
		__atomic_add_fetch(&handler_changes, 1, __ATOMIC_RELAXED);
	}
	errno = saved;
}

static void *send_signals(void *arg)
{
	uint64_t rng = rnd_seed(1000);

	(void)arg;
	while (!LOAD(stop)) {
		int tid = LOAD(workers[rnd_below(&rng, n_threads)].tid);

		if (tid)
			syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
		sleep_us(rnd_below(&rng, 300));
	}
	return NULL;
}

/* ---- cancelled waiters --------------------------------------------------- */

static pthread_cond_t sleepers_cond = PTHREAD_COND_INITIALIZER;

static void cancelled_waiter(void *arg)
{
	struct object *o = arg;

	object_enter(o, 77); /* the mutex is ours again, or this fails */
	object_change(o, 7);
	cancel_changes++;
	object_leave(o, 77);
	CHECK_EQ(pthread_mutex_unlock(&o->mutex), 0);
}

static void *wait_for_ever(void *arg)
{
	struct object *o = arg;
	struct timespec ts;

	lock(&o->mutex);
	pthread_cleanup_push(cancelled_waiter, o);
	for (;;) {
		int r;

		ts = in_us(CLOCK_REALTIME, 500);
		r = pthread_cond_timedwait(&sleepers_cond, &o->mutex, &ts);
		CHECK(r == 0 || r == ETIMEDOUT);
		object_enter(o, 78);
		busy(100);
		object_leave(o, 78);
		r = pthread_cond_wait(&sleepers_cond, &o->mutex);
		CHECK_EQ(r, 0);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static void *cancel_waiters(void *arg)
{
	uint64_t rng = rnd_seed(2000);
	pthread_t t[SLEEPERS];

	(void)arg;
	for (int i = 0; i < SLEEPERS; i++)
		t[i] = start(wait_for_ever, &objects[0]);
	while (!LOAD(stop)) {
		int i = (int)rnd_below(&rng, SLEEPERS);

		sleep_us(rnd_below(&rng, 1000));
		if (rnd(&rng) & 1)
			CHECK_EQ(pthread_cond_signal(&sleepers_cond), 0);
		if (!rnd_below(&rng, 8))
			CHECK_EQ(pthread_cond_broadcast(&sleepers_cond), 0);
		CHECK_EQ(pthread_cancel(t[i]), 0);
		CHECK(join(t[i]) == PTHREAD_CANCELED);
		t[i] = start(wait_for_ever, &objects[0]);
	}
	for (int i = 0; i < SLEEPERS; i++) {
		CHECK_EQ(pthread_cancel(t[i]), 0);
		CHECK(join(t[i]) == PTHREAD_CANCELED);
	}
	return NULL;
}

/* ---- main ---------------------------------------------------------------- */

static int kind = PTHREAD_MUTEX_NORMAL, mixed, native;

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:d:n:k:l:s:w:STCFXRyq")) != -1)
		switch (c) {
		case 't': n_threads = atoi(optarg); break;
		case 'n': n_sections = atol(optarg); break;
		case 'l': n_locks = atoi(optarg); break;
		case 'k':
			kind = mutex_type_by_name(optarg);
			native = !strcmp(optarg, "native");
			mixed = kind < 0;
			if (mixed && !native && strcmp(optarg, "mixed"))
				_exit(CHECK_SETUP);
			break;
		case 'S': do_signals = 1; break;
		case 'T': do_timed = 1; break;
		case 'C': do_cancel = 1; break;
		case 'F': do_fork = 1; break;
		case 'X': do_exec = 1; break;
		case 'R': do_churn = 1; break;
		case 'y': do_yield = 1; break;
		case 'q': quiet = 1; break;
		default:
			if (!progress_option(c, &run_us))
				_exit(CHECK_SETUP);
		}
	if (n_threads < 1 || n_threads > MAX_THREADS || n_locks < 1 || n_locks > MAX_LOCKS)
		_exit(CHECK_SETUP);
	if (!run_us && !n_sections)
		run_us = 2000000;
}

static void make_objects(void)
{
	for (int i = 0; i < n_locks; i++)
		object_init(&objects[i], mixed ? i % 4 : kind, i & 4);
	for (int i = 0; native && i < n_locks; i++) {
		/* Neighbours differ in both; glibc has no adaptive robust ones. */
		objects[i].type %= PTHREAD_MUTEX_ADAPTIVE_NP;
		objects[i].native = 1 + i % (NATIVES - 1);
		mutex_native(&objects[i].mutex, objects[i].type, objects[i].native);
	}
	for (int i = 0; i < 2; i++)
		object_init(&handler_objects[i], PTHREAD_MUTEX_NORMAL, i);
}

/* What was changed is what the workers have counted. */
static void check_objects(void)
{
	long changes = 0, counts = 0, sections = 0;

	for (int i = 0; i < n_threads; i++) {
		changes += workers[i].changes;
		sections += workers[i].sections;
	}
	for (int i = 0; i < n_locks; i++) {
		CHECK_EQ(pthread_mutex_trylock(&objects[i].mutex), 0);
		object_verify(&objects[i]);
		unlock(&objects[i].mutex);
		counts += objects[i].count;
		CHECK_EQ(pthread_mutex_destroy(&objects[i].mutex), 0);
	}
	CHECK_EQ(counts, changes + cancel_changes);
	CHECK_EQ(handler_objects[0].count + handler_objects[1].count, handler_changes);
	if (!quiet)
		check_say("passed: %ld sections, %ld changes", sections, counts);
}

int main(int argc, char **argv)
{
	pthread_t watch, signals = 0, canceller = 0, t[MAX_THREADS];
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);

	check_begin(argv[0], 10);
	CHECK(len > 0);
	path[len] = 0;
	self = path;
	parse(argc, argv);
	make_objects();
	watch = progress_begin(run_us);
	if (do_signals) {
		struct sigaction sa;

		memset(&sa, 0, sizeof sa);
		sa.sa_handler = on_signal;
		sigaction(SIGUSR1, &sa, NULL);
	}
	for (int i = 0; i < n_threads; i++) {
		workers[i].rng = rnd_seed(i);
		workers[i].handler_rng = rnd_seed(i + 500);
		progress_at(i, "starting");
		t[i] = start(work, &workers[i]);
		if (do_churn)
			pthread_detach(t[i]);
	}
	if (do_signals)
		signals = start(send_signals, NULL);
	if (do_cancel)
		canceller = start(cancel_waiters, NULL);
	if (run_us) {
		sleep_us((unsigned)run_us);
		STORE(stop, 1);
	}
	for (int i = 0; i < n_threads; i++) {
		UNTIL(LOAD(workers[i].done));
		if (!do_churn)
			join(t[i]);
	}
	STORE(stop, 1);
	if (do_signals)
		join(signals);
	if (do_cancel)
		join(canceller);
	progress_end(watch);
	check_objects();
	return 0;
}
