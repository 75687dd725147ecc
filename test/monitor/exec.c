// SPDX-License-Identifier: MIT
/*
 * Case 11: exec in a critical section, by the leader or by another thread,
 * leaves no count, and the new image is not looked at with the old offsets.
 * It may say hello again.
 */
#include <sched.h>
#include <sys/mman.h>
#include "harness.h"

static struct monitor m;
static bool from_thread, hello_again;

static void *become(void *arg)
{
	struct client *c = arg;
	struct actor a = {.client = c, .slot = 2};

	bind_thread(c, 2);
	actor_acquire(&a);
	WAIT_FOR(c->slots[2].bound == (uint32_t)gettid());
	execl("/proc/self/exe", "exec", hello_again ? "again" : "quiet", m.name, NULL);
	fail("exec");
}

static void child(void *arg)
{
	static struct actor other;
	struct client c;
	pthread_t thread;

	client_join(&c, m.name, 8);
	/* A second holder, that exec kills. */
	actor_start(&other, &c, 3, -1, SCHED_OTHER);
	WAIT_FOR(c.slots[3].bound);
	actor_acquire(&other);
	actor_tell(&other, ACT_BUSY);
	if (!from_thread)
		become(&c);
	bind_thread(&c, 1);
	CHECK(!pthread_create(&thread, NULL, become, &c));
	for (;;)
		pause();
}

/* The new image: sleeps; or says hello, holds, and sleeps until stdin is closed. */
static int image(bool again, const char *name)
{
	struct client c;
	struct actor a = {.client = &c, .slot = 1};
	int i;

	if (again) {
		client_join(&c, name, 8);
		bind_thread(&c, 1);
		actor_acquire(&a);
		WAIT_FOR(c.slots[1].blocked >= 5);
		CHECK(c.counters->dom[FG_DOMAIN_ALL].blocked <= 1);
		return 0;
	}
	for (i = 0; i < 5; i++)
		usleep(1000);
	return 0;
}

int main(int argc, char **argv)
{
	struct client c;
	int i;

	test_begin();
	if (argc == 3)
		return image(!strcmp(argv[1], "again"), argv[2]);
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	for (i = 0; i < 20; i++) {
		uint64_t total;
		pid_t pid;

		from_thread = i & 1;
		hello_again = i & 2;
		total = ever_blocked(c.counters);
		pid = spawn(child, NULL);
		reap(pid);
		WAIT_FOR(all_zero(c.counters));
		if (hello_again)
			CHECK(ever_blocked(c.counters) >= total + 5);
	}
	monitor_stop(&m);
	return 0;
}
