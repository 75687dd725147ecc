// SPDX-License-Identifier: MIT
/*
 * What the program does on kernels before 6.4, on any: threads that are there when their process
 * registers are bound.  And a thread that is preempted stays counted while others register, be they
 * more than the audits after which it would not be.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include "harness.h"
#include "monitor_types.h"

enum { STRANGERS = FG_AUDIT_CAP + 5, ROUNDS = 20 };

static struct monitor m;
static struct {
	uint32_t ready, registered;
} *shared;
static uint32_t is_over;
static int cpus[2], go[2]; /* which is a pipe */

static void stranger(void *unused)
{
	struct client c;

	(void)unused;
	close(go[1]);
	__atomic_fetch_add(&shared->ready, 1, __ATOMIC_RELEASE);
	CHECK(!read(go[0], &(char){0}, 1));
	client_join(&c, m.name, 8);
	__atomic_fetch_add(&shared->registered, 1, __ATOMIC_RELEASE);
}

/* Before all others on its CPU, for 0.95 s of each. */
static void *hog(void *unused)
{
	struct sched_param p = {.sched_priority = 1};

	pin(0, cpus[0]);
	if (sched_setscheduler(0, SCHED_FIFO, &p))
		skip("no real-time priority: %s", strerror(errno));
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		;
	return unused;
}

struct wait {
	const struct client *client;
	const struct fg_slot *slot;
	uint32_t involuntary;
	uint64_t began_ns; /* the heartbeat before it */
};

/* It has not run since, and the heartbeat has not come so often that it may be forgotten. */
static bool goes_on(const struct wait *w)
{
	return __atomic_load_n(&w->slot->involuntary, __ATOMIC_RELAXED) == w->involuntary &&
	       __atomic_load_n(&w->slot->state, __ATOMIC_RELAXED) == FG_STATE_RUNNABLE &&
	       __atomic_load_n(&w->client->counters->heartbeat_ns, __ATOMIC_RELAXED) - w->began_ns <
		   FG_AUDIT_CAP / 2 * (uint64_t)FG_HEARTBEAT_NS;
}

static uint32_t counted(const struct client *c)
{
	return __atomic_load_n(&c->counters->queued[cpus[0]][c->welcome.domain], __ATOMIC_RELAXED);
}

/* False: the thread has run in between, or strangers were slow. */
static bool stays_counted(const struct client *c, const struct fg_slot *slot)
{
	struct wait w = {.client = c, .slot = slot};
	pid_t pid[STRANGERS];
	bool same = false;

	memset(shared, 0, sizeof(*shared));
	CHECK(!pipe(go));
	for (int i = 0; i < STRANGERS; i++)
		pid[i] = spawn(stranger, NULL);
	WAIT_FOR(__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) == STRANGERS);
	/* A fresh one. */
	w.involuntary = __atomic_load_n(&slot->involuntary, __ATOMIC_RELAXED);
	WAIT_FOR(__atomic_load_n(&slot->involuntary, __ATOMIC_RELAXED) != w.involuntary);
	w.began_ns = __atomic_load_n(&c->counters->heartbeat_ns, __ATOMIC_RELAXED);
	w.involuntary = __atomic_load_n(&slot->involuntary, __ATOMIC_RELAXED);
	close(go[1]);
	WAIT_FOR(__atomic_load_n(&shared->registered, __ATOMIC_ACQUIRE) == STRANGERS ||
		 !goes_on(&w));
	if (__atomic_load_n(&shared->registered, __ATOMIC_ACQUIRE) == STRANGERS) {
		uint32_t n = counted(c);

		same = goes_on(&w);
		if (same && n != 1)
			fail("%d registrations later %u threads are counted", STRANGERS, n);
	}
	for (int i = 0; i < STRANGERS; i++)
		reap(pid[i]);
	close(go[0]);
	return same;
}

int main(void)
{
	const struct fg_monitor_config cfg = {.early_storage = true};
	struct actor holder;
	struct client c;
	pthread_t t;
	int i;

	test_begin();
	if (usable_cpus(cpus, 2) < 2)
		skip("needs two CPUs");
	pin(0, cpus[1]); /* the monitor and the strangers, too */
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	monitor_start(&m, &cfg);
	client_join(&c, m.name, 8);
	bind_thread(&c, 2);
	WAIT_FOR(c.slots[2].bound == (uint32_t)getpid());
	actor_start(&holder, &c, 1, cpus[0], SCHED_OTHER);
	actor_get_up(&holder);
	actor_acquire(&holder);
	CHECK(!pthread_create(&t, NULL, hog, NULL));
	for (i = 0; i < ROUNDS && !stays_counted(&c, actor_slot(&holder)); i++)
		;
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	CHECK(!pthread_join(t, NULL));
	actor_release(&holder);
	actor_join(&holder);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	if (i == ROUNDS)
		skip("%d processes do not register while a thread waits for its CPU", STRANGERS);
	return 0;
}
