// SPDX-License-Identifier: MIT
/*
 * Case 20: a switch that the monitor never sees.  The test takes the switch and
 * wake-up hooks away while a counted holder comes back.  With the daemon running
 * the audit takes the stale count; without it, the next switch-out does, once
 * the hooks are back.
 */
#include <sched.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "harness.h"
#include "monitor/internal.h"
#include "monitor.skel.h"

static struct fg_monitor *m;
static int listen_fd, stop[2];

/*
 * The audit sees tasks that run on another CPU than its own at that moment: daemon and actor,
 * which the scheduler may leave on one CPU for longer than any test waits, have one each.  The
 * thread that puts the hooks back is with the daemon: where it had displaced the actor, that one
 * would be switched in in full view.
 */
static int cpus[2];

static void *serve(void *arg)
{
	return (void *)(intptr_t)fg_monitor_serve(m, listen_fd, FG_NO_LOCK, stop[0]);
}

/* The monitor keeps the links of its programs only. */
static struct hook {
	/* descriptors; of the link -1 while it is the monitor's own, or there is none */
	int program, link;
} on_switch, on_wakeup;

static void find(struct hook *h, struct bpf_link *link)
{
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);

	CHECK(!bpf_obj_get_info_by_fd(bpf_link__fd(link), &info, &size));
	h->program = bpf_prog_get_fd_by_id(info.prog_id);
	h->link = -1;
	CHECK(h->program >= 0);
}

static void take_away(struct hook *h, struct bpf_link **link)
{
	if (*link)
		find(h, *link);
	bpf_link__destroy(*link);
	*link = NULL;
	if (h->link >= 0)
		close(h->link);
	h->link = -1;
}

static void unhook(void)
{
	take_away(&on_switch, &m->skel->links.on_switch);
	take_away(&on_wakeup, &m->skel->links.on_wakeup);
}

static void hook(void)
{
	on_switch.link = bpf_raw_tracepoint_open(NULL, on_switch.program);
	on_wakeup.link = bpf_raw_tracepoint_open(NULL, on_wakeup.program);
	CHECK(on_switch.link >= 0 && on_wakeup.link >= 0);
}

/* Counted as b, and then on CPU again without anybody having noticed. */
static void come_back_unseen(struct client *c, struct actor *a)
{
	actor_get_up(a);
	actor_acquire(a);
	actor_lie_down(a);
	WAIT_FOR(c->counters->dom[FG_DOMAIN_ALL].blocked == 1);
	unhook();
	actor_get_up(a);
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
	if (usable_cpus(cpus, 2) < 2)
		skip("one CPU: the audit never sees another thread run");
	m = monitor_open_or_skip(NULL);
	snprintf(name, sizeof(name), "@flexguard-test-%d", getpid());
	listen_fd = fg_monitor_listen(name, 0666);
	CHECK(listen_fd >= 0 && !pipe(stop));
	pin(0, cpus[1]); /* and all threads that begin from here on */
	CHECK(!pthread_create(&thread, NULL, serve, NULL));
	client_join(&c, name, 8);
	actor_start(&a, &c, 1, cpus[0], SCHED_OTHER);

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
	until = fg_now_ns() + DEADLINE_S * 1000000000ull;
	do {
		come_back_unseen(&c, &a);
		CHECK(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);
		hook();
		actor_tell(&a, ACT_SLEEP);
		WAIT_FOR(all_zero(c.counters));
		/* Off CPU when the hooks came back, it was switched in in full view: once more. */
	} while (c.counters->missed == missed && fg_now_ns() < until);
	CHECK(c.counters->missed > missed);

	/* Missed at the very end: exit takes it. */
	come_back_unseen(&c, &a);
	actor_join(&a);
	WAIT_FOR(all_zero(c.counters));
	fg_monitor_close(m);
	return 0;
}
