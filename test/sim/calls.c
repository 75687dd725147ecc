/* SPDX-License-Identifier: MIT */
/*
 * What programs ask of the machine's kernel: futexes, clocks and the other system calls of the
 * library; and the time that they spend between two of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include "kernel.h"
#include "objects/objects.h"
#include "sys/libc.h"
#include "zoo/zoo.h"

/* ---- futexes ------------------------------------------------------------------------- */

#define BUCKETS 1024
static struct {
	struct thread *first, **last;
	uint64_t busy;
	const struct cpu *held_by;
} bucket[BUCKETS];

void sim_futex_reset(void)
{
	memset(bucket, 0, sizeof(bucket));
}

/* Until it is this CPU's turn in simulated time. */
static void in_order(void)
{
	if (here->now >= horizon)
		sim_yield();
}

static unsigned bucket_of(const uint32_t *word)
{
	return (unsigned)((uint64_t)word * 0x9E3779B97F4A7C15ull >> 54) % BUCKETS;
}

static unsigned enter_bucket(const uint32_t *word)
{
	unsigned b = bucket_of(word);

	here->now += chaos ? rng() % US : M.syscall;
	in_order();
	if (here->now < bucket[b].busy)
		here->now = bucket[b].busy;
	here->now += M.futex;
	if (bucket[b].held_by) /* its spinlock and its list have to come over */
		here->now += 2 * cpu_distance(bucket[b].held_by, here);
	bucket[b].held_by = here;
	bucket[b].busy = here->now;
	if (!bucket[b].last)
		bucket[b].last = &bucket[b].first;
	return b;
}

static void unlink_waiter(unsigned b, struct thread **at)
{
	struct thread *t = *at;

	*at = t->fnext;
	if (bucket[b].last == &t->fnext)
		bucket[b].last = at;
	t->word = NULL;
	t->timer_seq++;
}

static long futex_wait(const uint32_t *word, uint32_t expected, uint32_t channels,
		       const struct timespec *until)
{
	struct thread *t = here->cur;
	unsigned b = enter_bucket(word);

	weak_fence(__ATOMIC_SEQ_CST);
	here->in_kernel = true;
	mem_access(word, A_READ);
	here->in_kernel = false;
	if (*word != expected)
		return -EAGAIN;
	if (until) {
		int64_t at = (until->tv_sec - 1) * (int64_t)(1000 * MS) +
			     until->tv_nsec * (int64_t)NS;

		if (at <= (int64_t)here->now)
			return -ETIMEDOUT;
		sim_post((uint64_t)at + (chaos ? rng() % (50 * US) : 50 * US), E_TIMER, t->id,
			 t->timer_seq);
	}
	kernel_stats.waits += !t->neighbour;
	t->word = word;
	t->channels = channels;
	t->fnext = NULL;
	*bucket[b].last = t;
	bucket[b].last = &t->fnext;
	t->state = T_ASLEEP;
	t->result = 0;
	sim_yield();
	return t->result;
}

/* ---- cancellation: glibc's, of which nothing here is used ------------------------------- */

void sim_cleanup_push(struct sim_cleanup *c)
{
	c->next = here->cur->cleanups;
	here->cur->cleanups = c;
}

void sim_cleanup_pop(void)
{
	here->cur->cleanups = here->cur->cleanups->next;
}

/* The stack stays as it is, under the handlers; then it is nobody's. */
static void unwind(void)
{
	struct thread *t = here->cur;

	t->cancelled = false;
	while (t->cleanups) {
		struct sim_cleanup *c = t->cleanups;

		t->cleanups = c->next;
		c->routine(c->arg);
	}
	here->cur->state = T_DONE;
	sim_yield();
}

static void testcancel(void)
{
	if (here && here->cur->cancelled)
		unwind();
}

/* A cancellation interrupts it. */
static long cancellable(long nr, long a, long b, long c, long d, long e, long f)
{
	long r;

	testcancel();
	here->cur->cancellable = true;
	r = sim_syscall(nr, a, b, c, d, e, f);
	here->cur->cancellable = false;
	return r;
}

/* A cancellation arrives at any time in the call, also after a wake-up. */
long sim_syscall_called(long nr, long a, long b, long c, long d, long e, long f)
{
	long r = cancellable(nr, a, b, c, d, e, f);

	testcancel();
	return r;
}

/*
 * What a call has done is not cancelled, as in glibc since its bug 12683 was mended: who was woken
 * by then has the wake-up.
 */
long sim_syscall_point(long nr, long a, long b, long c, long d, long e, long f)
{
	long r = cancellable(nr, a, b, c, d, e, f);

	if (r == -EINTR)
		testcancel();
	return r;
}

void sim_cancel_in(struct thread *t, uint64_t ps)
{
	sim_post(here->now + ps, E_CANCEL, t->id, 0);
}

static int setcanceltype(int type, int *old)
{
	if (old)
		*old = type;
	return 0;
}

/*
 * Thread-specific data: the destructors of keys that have a value, which none of them looks at.
 * The first of them is the one that the library takes at once (runtime/thread.c).
 */
#define FIRST_KEY 31
static void (*destructors[8])(void *);
static bool has_value[8]; /* the same in all threads */
static unsigned nkeys;

int sim_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	if (nkeys == sizeof(destructors) / sizeof(*destructors))
		return EAGAIN;
	destructors[nkeys] = destructor;
	*key = FIRST_KEY + nkeys++;
	return 0;
}

static int setspecific(pthread_key_t key, const void *value)
{
	has_value[key - FIRST_KEY] = value != NULL;
	return 0;
}

static uint32_t forks; /* so far */

static long tid_of(const struct thread *t)
{
	return 1 + ((long)forks + t->lives) * SIM_THREADS + t->id;
}

/* A child has the number of the thread that it goes on with. */
static long pid = 1;

long sim_pid(void)
{
	return pid;
}

void sim_forked(void)
{
	forks++;
	pid = tid_of(here->cur);
}

/* That its owner is in it is all that the library wants of libc's mutex (fg_tid_of_libc). */
static int own(pthread_mutex_t *m)
{
	m->__data.__owner = (int)tid_of(here->cur);
	return 0;
}

static int disown(pthread_mutex_t *m)
{
	m->__data.__owner = 0;
	return 0;
}

/* In the place of sys/libc.c. */
void fg_libc_setup(void)
{
}

void *fg_libc_function(const char *name, const char *version)
{
	(void)version;
	if (!strcmp(name, "sem_wait"))
		return (void *)sim_libc_sem_wait;
	if (!strcmp(name, "sem_timedwait"))
		return (void *)sim_libc_sem_timedwait;
	if (!strcmp(name, "sem_clockwait"))
		return (void *)sim_libc_sem_clockwait;
	return dlsym(RTLD_DEFAULT, name);
}

void *fg_libc(enum fg_libc_index which)
{
	switch (which) {
	case FG_LIBC_pthread_setcanceltype: return (void *)setcanceltype;
	case FG_LIBC_pthread_testcancel: return (void *)testcancel;
	case FG_LIBC_pthread_setspecific: return (void *)setspecific;
	case FG_LIBC_pthread_mutex_lock: return (void *)own;
	case FG_LIBC_pthread_mutex_unlock: return (void *)disown;
	default: abort();
	}
}

static long futex_wake(const uint32_t *word, int count, uint32_t channels)
{
	unsigned b = enter_bucket(word);
	struct thread **at = &bucket[b].first;
	int n = 0;

	weak_fence(__ATOMIC_SEQ_CST); /* before it looks for sleepers (hb_waiters_pending) */
	here->in_kernel = true;
	kernel_stats.wakes += !here->cur || !here->cur->neighbour;
	while (*at && n < count) {
		struct thread *t = *at;

		if (t->word != word || !(t->channels & channels)) {
			at = &t->fnext;
			continue;
		}
		unlink_waiter(b, at);
		here->now += M.wake;
		weak_wakes(here->cur ? here->cur->id : -1, t->id);
		sim_wake(t);
		n++;
	}
	kernel_stats.woken += (uint64_t)n;
	here->in_kernel = false;
	return n;
}

/* Its sleep ends by itself: an interrupt on the CPU that it went to sleep on. */
static void end_sleep(struct thread *t, uint64_t at, long result)
{
	struct cpu *c = &cpus[t->cpu];
	struct thread **p;
	unsigned b;

	if (t->word) {
		b = bucket_of(t->word);
		for (p = &bucket[b].first; *p != t; p = &(*p)->fnext)
			;
		unlink_waiter(b, p);
		t->result = result;
	}
	here = c;
	if (c->now < at)
		c->now = at;
	c->in_kernel = true;
	sim_wake(t);
	c->in_kernel = false;
}

void sim_timer(int id, uint64_t seq, uint64_t at)
{
	struct thread *t = &threads[id];

	if (t->timer_seq != seq || t->state != T_ASLEEP)
		return;
	kernel_stats.timeouts++;
	end_sleep(t, at, -ETIMEDOUT);
}

void sim_cancel(int id, uint64_t at)
{
	struct thread *t = &threads[id];

	if (t->state == T_DONE)
		return;
	t->cancelled = true;
	if (t->state == T_ASLEEP && t->cancellable)
		end_sleep(t, at, -EINTR);
}

/* ---- system calls, clocks -------------------------------------------------------------- */

/* Ending, and clone(2) in another thread: of the order that such machines show; not varied. */
#define END_AND_BEGIN_NS 20000

void sim_replaced(void)
{
	struct timespec until = {.tv_nsec = END_AND_BEGIN_NS + (long)(rng() % END_AND_BEGIN_NS)};
	struct thread *t = here->cur;

	for (unsigned i = 0; i < nkeys; i++)
		if (has_value[i])
			destructors[i](t);
	here->in_kernel = true;
	mon_exit(t->id);
	here->in_kernel = false;
	sim_syscall(SYS_nanosleep, (long)&until, 0, 0, 0, 0, 0);
	fiber_new_tls(t);
	t->lives++;
	mon_new(t->id, (int)tid_of(t));
}

static uint64_t now_ps(void)
{
	return here ? here->now : 0;
}

static long sim_clock(clockid_t clock, struct timespec *t)
{
	uint64_t ns;

	if (here && !here->in_kernel)
		here->now += M.clock;
	ns = now_ps() / NS;
	if (clock < 0) { /* a thread's CPU clock */
		struct thread *o = &threads[(~(clock >> 3) - 1) % SIM_THREADS];

		ns = (o->ran + (o->state == T_RUN && cpus[o->cpu].now > o->started ?
				    cpus[o->cpu].now - o->started :
				    0)) /
		     NS;
	} else if (clock == CLOCK_PROCESS_CPUTIME_ID) {
		ns = sim_process_ran() / NS;
	} else {
		ns += 1000000000; /* nothing is ever at 0 */
	}
	t->tv_sec = (time_t)(ns / 1000000000);
	t->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

/*
 * The expedited one: each other CPU that runs a thread of the process is interrupted, by way of a
 * line that goes there, and the caller waits for the last of them (smp_call_function_many_cond() in
 * kernel/smp.c), also for one that a hypervisor has taken away.
 */
static long membarrier(void)
{
	uint64_t until = 0;
	bool any = false;

	in_order();
	weak_fence_everywhere();
	if (chaos)
		return 0;
	here->now += M.syscall;
	kernel_stats.barriers++;
	for (int i = 0; i < M.cpus; i++) {
		struct cpu *o = &cpus[i];

		if (o == here || !o->cur || o->cur->neighbour)
			continue;
		any = true;
		o->interrupted += M.interrupt;
		here->now += cpu_distance(here, o);
		until = o->off_until > until ? o->off_until : until;
	}
	if (any)
		here->now += M.interrupt;
	if (here->now < until)
		here->now = until;
	if (here->now >= horizon)
		sim_yield();
	return 0;
}

long sim_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	struct timespec *ts;
	long r;
	(void)e;

	if (quota_serves(nr, a, b, c, &r))
		return r;
	if (!here && nr != SYS_clock_gettime)
		return nr == SYS_futex ? 0 : syscall(nr, a, b, c, d, e, f); /* memory, at start */
	switch (nr) {
	case SYS_futex:
		switch (b & FUTEX_CMD_MASK) {
		case FUTEX_WAIT_BITSET:
			return futex_wait((void *)a, (uint32_t)c, (uint32_t)f, (void *)d);
		case FUTEX_WAKE_BITSET: return futex_wake((void *)a, (int)c, (uint32_t)f);
		case FUTEX_WAKE: return futex_wake((void *)a, (int)c, ~0u);
		}
		return -ENOSYS;
	case SYS_sched_yield:
		here->now += M.syscall;
		kernel_stats.yields++;
		if (chaos)
			schedule_pauses(here->cur);
		if (here->queue) {
			here->cur->vruntime = 0;
			for (struct thread *t = here->queue; t; t = t->next)
				here->cur->vruntime = t->vruntime + 1;
			here->resched = true;
			sim_yield();
		}
		return 0;
	case SYS_nanosleep:
		ts = (void *)a;
		sim_post(here->now + (uint64_t)ts->tv_nsec * NS + 50 * US, E_TIMER, here->cur->id,
			 ++here->cur->timer_seq);
		here->cur->state = T_ASLEEP;
		here->cur->word = NULL;
		sim_yield();
		return 0;
	case SYS_clock_gettime: return sim_clock((clockid_t)a, (void *)b);
	case SYS_gettid: return tid_of(here->cur);
	case SYS_getpid: return sim_pid();
	case SYS_sched_getscheduler: return SCHED_OTHER;
	case SYS_prctl: return -EINVAL; /* no time-slice extension */
	case SYS_sched_getaffinity:
		memset((void *)c, 0, (size_t)b);
		for (int i = 0; i < M.cpus; i++)
			CPU_SET_S((size_t)i, (size_t)b, (cpu_set_t *)c);
		return b;
	case SYS_mmap:
		a = (long)mmap((void *)a, (size_t)b, (int)c, (int)d, (int)e, f);
		load_mapped((void *)a, (uint64_t)b);
		return a;
	case SYS_membarrier: return membarrier();
	case SYS_openat: return -ENOENT; /* there is no /proc */
	case SYS_rt_sigprocmask:	 /* all, or those of before */
		here->cur->blocks_signals = a == SIG_BLOCK;
		return 0;
	case SYS_munmap: return munmap((void *)a, (size_t)b);
	default: fprintf(stderr, "sim: system call %ld\n", nr); abort();
	}
}

/* In the place of src/zoo/numa.c. */
uint32_t zoo_numa_node(void)
{
	return here ? (uint32_t)here->socket : 0;
}

const char *zoo_numa_start(void)
{
	return NULL;
}

void sim_pause(void)
{
	if (!here)
		return;
	here->now += chaos ? rng() % (100 * NS) :
			     at_pace(here, M.pause * 7 / 8 + rng() % (M.pause / 4));
	here->pauses_until = here->now;
	if (chaos)
		schedule_pauses(here->cur);
	if (here->now >= horizon)
		sim_yield();
}

void sim_work(uint64_t ps)
{
	here->now += chaos ? rng() % (ps + 1) : at_pace(here, ps);
	if (here->now >= horizon)
		sim_yield();
}
