// SPDX-License-Identifier: MIT
/*
 * Case 20: a switch that the monitor never sees.  The test takes the switch and
 * wake-up hooks away while a counted holder comes back.  With the daemon running
 * the audit takes the stale count; without it, the next switch-out does, once
 * the hooks are back.
 */
#include <sched.h>
#include <bpf/libbpf.h>
#include "harness.h"
#include "monitor/internal.h"
#include "monitor.skel.h"

static struct fg_monitor *m;
static int listen_fd, stop[2];

static void *serve(void *arg)
{
	return (void *)(intptr_t)fg_monitor_serve(m, listen_fd, stop[0]);
}

static void unhook(void)
{
	bpf_link__destroy(m->skel->links.on_switch);
	bpf_link__destroy(m->skel->links.on_wakeup);
	m->skel->links.on_switch = m->skel->links.on_wakeup = NULL;
}

static void hook(void)
{
	m->skel->links.on_switch = bpf_program__attach(m->skel->progs.on_switch);
	m->skel->links.on_wakeup = bpf_program__attach(m->skel->progs.on_wakeup);
	CHECK(m->skel->links.on_switch && m->skel->links.on_wakeup);
}

/* Counted as b, and then on CPU again without anybody having noticed. */
static void come_back_unseen(struct client *c, struct actor *a)
{
	uint64_t rounds;

	actor_tell(a, ACT_BUSY);
	actor_acquire(a);
	actor_lie_down(a);
	WAIT_FOR(c->counters->dom[FG_DOMAIN_ALL].b == 1);
	unhook();
	actor_tell(a, ACT_BUSY);
	rounds = __atomic_load_n(&a->rounds, __ATOMIC_RELAXED);
	WAIT_FOR(__atomic_load_n(&a->rounds, __ATOMIC_RELAXED) > rounds + 1000);
	actor_release(a);
}

int main(void)
{
	struct actor a;
	struct client c;
	pthread_t thread;
	char name[64];
	uint64_t missed, until;
	void *err;

	test_begin();
	m = monitor_open_or_skip(NULL);
	snprintf(name, sizeof(name), "@flexguard-test-%d", getpid());
	listen_fd = fg_monitor_listen(name, 0666);
	CHECK(listen_fd >= 0 && !pipe(stop));
	CHECK(!pthread_create(&thread, NULL, serve, NULL));
	client_join(&c, name, 8);
	actor_start(&a, &c, 1, -1, SCHED_OTHER);

	missed = c.counters->missed;
	come_back_unseen(&c, &a);
	WAIT_FOR(all_zero(c.counters));
	CHECK(c.counters->missed > missed);
	/* Its slot is put right as well, and so it is when it leaves the CPU unseen. */
	WAIT_FOR(c.slots[1].state == FG_STATE_ON);
	actor_tell(&a, ACT_SLEEP);
	WAIT_FOR(c.slots[1].state == FG_STATE_SLEEP);
	hook();

	close(stop[1]);
	CHECK(!pthread_join(thread, &err) && !err);
	missed = c.counters->missed;
	until = now_ns() + DEADLINE_S * 1000000000ull;
	do {
		come_back_unseen(&c, &a);
		CHECK(c.counters->dom[FG_DOMAIN_ALL].b == 1);
		hook();
		actor_tell(&a, ACT_SLEEP);
		WAIT_FOR(all_zero(c.counters));
		/* Off CPU when the hooks came back, it was switched in in full view: once more. */
	} while (c.counters->missed == missed && now_ns() < until);
	CHECK(c.counters->missed > missed);

	/* Missed at the very end: exit takes it. */
	come_back_unseen(&c, &a);
	actor_join(&a);
	WAIT_FOR(all_zero(c.counters));
	fg_monitor_close(m);
	return 0;
}
