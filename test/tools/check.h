/* SPDX-License-Identifier: MIT */
/*
 * What every test program shares: assertions that name their line, a watchdog,
 * a seeded generator and the thread calls that must not fail.  Nothing here
 * knows FlexGuard: the programs are plain pthread programs, and each of them
 * passes on glibc alone.
 *
 * Exit status: 0 passed, 1 an assertion failed, 77 skipped, 124 hung, 2 the
 * test was set up wrongly.
 *
 * Environment: CHECK_SEED the seed; CHECK_PRELOAD a part of the name of the
 * object that pthread_mutex_lock has to come from (without it a mistyped
 * LD_PRELOAD would pass every test); CHECK_SCALE multiplies the watchdog's time;
 * CHECK_WATCHDOG its seconds, where a hang is what is expected (must-fail);
 * CHECK_WORK how many of its rounds in a hundred a program does (check_rounds);
 * CHECK_TIMES how many times as long as it is told a stress program goes on;
 * CHECK_STOP=1 stops a program that hangs or fails, for a debugger.
 */
#ifndef CHECK_H
#define CHECK_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK_FAILED 1
#define CHECK_SETUP  2
#define CHECK_SKIP   77
#define CHECK_HUNG   124

/* A program that needs a second may need many on a machine that is busy with others. */
#define CHECK_LEAST_SECONDS 60

#define CHECK_UNUSED __attribute__((unused))

static const char *check_name CHECK_UNUSED = "test";
static uint64_t check_seed CHECK_UNUSED = 1;
static unsigned check_seconds CHECK_UNUSED;

/* One write, no stdio lock, no malloc: also called from signal handlers. */
__attribute__((format(printf, 1, 2))) static inline void check_say(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n = snprintf(line, sizeof line, "%s[%d]: ", check_name, (int)getpid());

	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof line - n, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	line[n++] = '\n';
	if (write(2, line, n) < 0)
		return;
}

__attribute__((noreturn)) static inline void check_end(int status)
{
	if (status != CHECK_SKIP && getenv("CHECK_STOP"))
		kill(getpid(), SIGSTOP);
	_exit(status);
}

__attribute__((noreturn)) static inline void check_fail(const char *file, int line,
							const char *what)
{
	check_say("%s:%d: failed: %s (seed %llu)", file, line, what,
		  (unsigned long long)check_seed);
	check_end(CHECK_FAILED);
}

__attribute__((noreturn)) static inline void check_fail_eq(const char *file, int line,
							   const char *what, long long got,
							   long long want)
{
	check_say("%s:%d: failed: %s is %lld, not %lld (seed %llu)", file, line, what, got, want,
		  (unsigned long long)check_seed);
	check_end(CHECK_FAILED);
}

#define CHECK(e)                                            \
	do {                                                \
		if (!(e))                                   \
			check_fail(__FILE__, __LINE__, #e); \
	} while (0)

#define CHECK_EQ(got, want)                                                             \
	do {                                                                            \
		long long check_got = (long long)(got), check_want = (long long)(want); \
		if (check_got != check_want)                                            \
			check_fail_eq(__FILE__, __LINE__, #got, check_got, check_want); \
	} while (0)

__attribute__((noreturn, format(printf, 1, 2))) static inline void check_skip(const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	check_say("skipped: %s", why);
	check_end(CHECK_SKIP);
}

/* Whether the test has chosen one for the library; what the caller has is empty (meson.build). */
static inline int check_has_policy(void)
{
	const char *policy = getenv("FLEXGUARD_POLICY");

	return policy && *policy;
}

/* For many threads: 64 KiB, where the CPU's least is not more (aarch64: 128). */
static inline size_t check_small_stack(void)
{
	long least = sysconf(_SC_THREAD_STACK_MIN);

	return least > 64 * 1024 ? (size_t)least : 64 * 1024;
}

static inline void check_alarm(int sig)
{
	(void)sig;
	check_say("watchdog: hangs after %u s (seed %llu)", check_seconds,
		  (unsigned long long)check_seed);
	check_end(CHECK_HUNG);
}

/*
 * Ends the process after so many seconds.  One signal, once: a periodic one
 * would interrupt futex waits and so repair the lost wake-ups that it is to find.
 * Children of fork and new images have to call it again.
 */
static inline void check_end_after(unsigned seconds)
{
	struct sigaction sa;
	const char *scale = getenv("CHECK_SCALE");

	memset(&sa, 0, sizeof sa);
	sa.sa_handler = check_alarm;
	sigaction(SIGALRM, &sa, NULL);
	check_seconds = seconds * (scale ? atoi(scale) : 1);
	alarm(check_seconds);
}

/* The same, after CHECK_LEAST_SECONDS at least, unless the environment says when. */
static inline void check_watchdog(unsigned seconds)
{
	const char *given = getenv("CHECK_WATCHDOG");

	if (given && atoi(given) > 0)
		seconds = (unsigned)atoi(given);
	else if (seconds < CHECK_LEAST_SECONDS)
		seconds = CHECK_LEAST_SECONDS;
	check_end_after(seconds);
}

/*
 * How many rounds to do of these.  A lock that collapses when threads outnumber CPUs
 * pays a time slice for each hand-over: on a busy machine it gets less work, not more time.
 */
CHECK_UNUSED static int check_rounds(int all)
{
	const char *work = getenv("CHECK_WORK");
	int rounds = work ? (int)((long long)all * atoi(work) / 100) : all;

	return rounds > 0 ? rounds : 1;
}

static inline void check_begin(const char *argv0, unsigned seconds)
{
	const char *slash = strrchr(argv0, '/'), *seed = getenv("CHECK_SEED");
	const char *preload = getenv("CHECK_PRELOAD");
	Dl_info info;

	check_name = slash ? slash + 1 : argv0;
	if (seed)
		check_seed = strtoull(seed, NULL, 0);
	check_watchdog(seconds);
	if (preload && *preload) {
		/* A program that is linked at a fixed place may find its own jump to it first. */
		void *f = dlsym(RTLD_NEXT, "pthread_mutex_lock");

		if (!f || !dladdr(f, &info) || !strstr(info.dli_fname, preload)) {
			check_say("set up wrongly: pthread_mutex_lock does not come from %s",
				  preload);
			check_end(CHECK_SETUP);
		}
	}
}

/* ---- generator: xorshift64*, one state a thread -------------------------- */

static inline uint64_t rnd(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1dull >> 16;
}

static inline uint64_t rnd_seed(uint64_t n)
{
	uint64_t s = check_seed * 0x9e3779b97f4a7c15ull + n * 0xbf58476d1ce4e5b9ull + 1;

	if (!s)
		s = 1;
	rnd(&s);
	rnd(&s);
	return s;
}

static inline unsigned rnd_below(uint64_t *s, unsigned n)
{
	return (unsigned)(rnd(s) % n);
}

/* ---- threads and time ---------------------------------------------------- */

static inline pthread_t start(void *(*f)(void *), void *arg)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, f, arg), 0);
	return t;
}

static inline void *join(pthread_t t)
{
	void *r;

	CHECK_EQ(pthread_join(t, &r), 0);
	return r;
}

static inline void sleep_us(unsigned us)
{
	struct timespec ts = {us / 1000000, (long)(us % 1000000) * 1000};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* Polls until somebody else has made e true; the watchdog bounds it. */
#define UNTIL(e)                      \
	do {                          \
		while (!(e))          \
			sleep_us(50); \
	} while (0)

#define LOAD(x)	    __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)
#define ADD(x, v)   __atomic_add_fetch(&(x), v, __ATOMIC_ACQ_REL)

static inline long long clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		check_fail(__FILE__, __LINE__, "clock_gettime");
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* What the thread has had of the CPUs. */
static inline long long thread_cpu_ns(pthread_t thread)
{
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock))
		check_fail(__FILE__, __LINE__, "pthread_getcpuclockid");
	return clock_ns(clock);
}

static inline struct timespec in_us(clockid_t clock, long us)
{
	long long ns = clock_ns(clock) + us * 1000ll;
	struct timespec ts;

	ts.tv_sec = ns / 1000000000ll;
	ts.tv_nsec = ns % 1000000000ll;
	return ts;
}

/* Whether the deadline has passed: what ETIMEDOUT claims. */
static inline int is_past(clockid_t clock, struct timespec t)
{
	long long now = clock_ns(clock);

	return now / 1000000000ll > t.tv_sec ||
	       (now / 1000000000ll == t.tv_sec && now % 1000000000ll >= t.tv_nsec);
}

/* A key whose destructor comes after those of the first 32, which the library's is among. */
static inline void late_key(pthread_key_t *key, void (*destructor)(void *))
{
	do {
		CHECK_EQ(pthread_key_create(key, destructor), 0);
	} while (*key < 32);
}

/* -1: it is none. */
static inline int mutex_type_by_name(const char *name)
{
	static const char *const names[] = {[PTHREAD_MUTEX_NORMAL] = "normal",
					    [PTHREAD_MUTEX_RECURSIVE] = "recursive",
					    [PTHREAD_MUTEX_ERRORCHECK] = "errorcheck",
					    [PTHREAD_MUTEX_ADAPTIVE_NP] = "adaptive"};

	for (int i = 0; i < 4; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -1;
}

static inline void mutex_of_type(pthread_mutex_t *m, int type)
{
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutex_init(m, &a), 0);
	CHECK_EQ(pthread_mutexattr_destroy(&a), 0);
}

/* Process-shared ones. */
static inline void mutex_pshared(pthread_mutex_t *m)
{
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutex_init(m, &a), 0);
	CHECK_EQ(pthread_mutexattr_destroy(&a), 0);
}

static inline void cond_pshared(pthread_cond_t *c)
{
	pthread_condattr_t a;

	CHECK_EQ(pthread_condattr_init(&a), 0);
	CHECK_EQ(pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(c, &a), 0);
	CHECK_EQ(pthread_condattr_destroy(&a), 0);
}

static inline void lock(pthread_mutex_t *m)
{
	CHECK_EQ(pthread_mutex_lock(m), 0);
}

static inline void unlock(pthread_mutex_t *m)
{
	CHECK_EQ(pthread_mutex_unlock(m), 0);
}

/* The result of f(arg) in a thread of its own. */
static inline long in_thread(void *(*f)(void *), void *arg)
{
	return (long)join(start(f, arg));
}

/* What pthread_mutex_trylock and _unlock say to another thread. */
static inline void *check_try(void *m)
{
	long r = pthread_mutex_trylock((pthread_mutex_t *)m);

	if (!r)
		unlock((pthread_mutex_t *)m);
	return (void *)r;
}

static inline long try_elsewhere(pthread_mutex_t *m)
{
	return in_thread(check_try, m);
}

/* When `n` threads have counted themselves in *here, and wait for *go: all at once. */
static inline void all_at_once(pthread_mutex_t *m, pthread_cond_t *c, const int *here, int n,
			       int *go)
{
	while (!*go) {
		lock(m);
		*go = *here == n;
		if (*go)
			CHECK_EQ(pthread_cond_broadcast(c), 0);
		unlock(m);
		if (!*go)
			sleep_us(1000);
	}
}

/* ---- processes ----------------------------------------------------------- */

/*
 * fork; the child has a watchdog of its own and dies with its parent's thread at the latest then.
 */
static inline pid_t check_fork(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		check_watchdog(check_seconds ? check_seconds : 10);
	return pid;
}

/* By the system call itself, of which no fork handler hears; its arguments: clone(2). */
static inline pid_t check_clone(void)
{
#ifdef __s390x__
	return (pid_t)syscall(SYS_clone, 0, SIGCHLD, 0, 0, 0);
#else
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

/* Waits for a child, which has to end by exit(0) or to be skipped. */
static inline void check_child(pid_t pid)
{
	int status;
	pid_t r;

	do {
		r = waitpid(pid, &status, 0);
	} while (r < 0 && errno == EINTR);
	CHECK_EQ(r, pid);
	if (WIFSIGNALED(status)) {
		check_say("child %d died of signal %d", (int)pid, WTERMSIG(status));
		check_end(CHECK_FAILED);
	}
	if (WEXITSTATUS(status) == CHECK_SKIP || WEXITSTATUS(status) == CHECK_HUNG)
		check_end(WEXITSTATUS(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

#endif
