// SPDX-License-Identifier: MIT
/*
 * Case 19, and worse: clients whose TLS offset, slot numbers, pointers or slot
 * contents are nonsense.  They are not counted, or only as one thread each, and
 * disturb neither an honest client's counts nor the monitor.
 */
#include <sched.h>
#include <sys/mman.h>
#include "harness.h"

static struct monitor m;

static void join_with_offset(struct client *c, int64_t offset, uint32_t slots)
{
	struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, slots, 0, offset};
	int sock = client_connect(m.name), fds[2];

	CHECK(sock >= 0);
	CHECK(!client_exchange(sock, &hello, sizeof(hello), &c->welcome, fds));
	CHECK(!c->welcome.error);
	close(sock);
	c->slots = mmap(NULL, c->welcome.slots * sizeof(struct fg_slot), PROT_READ | PROT_WRITE,
			MAP_SHARED, fds[0], 0);
	c->counters = mmap(NULL, sizeof(struct fg_counters), PROT_READ, MAP_SHARED, fds[1], 0);
	CHECK(c->slots != MAP_FAILED && c->counters != MAP_FAILED);
}

static void sleep_ticks(int times)
{
	while (times--)
		usleep(200);
}

static void wrong_offset(void *arg)
{
	static const int64_t offsets[] = {0,	     1,		-1,	      INT64_MAX,
					  INT64_MIN, 1ll << 47, -(1ll << 47), 4096 * 1024};
	struct client c;
	size_t i;

	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		join_with_offset(&c, offsets[i], 8);
		c.slots[1].cs = 1;
		bind_thread(&c, 1);
		sleep_ticks(5);
		CHECK(!c.slots[1].bound);
	}
}

static void wrong_slot(void *arg)
{
	static const uint32_t slots[] = {32, 33, 4096, 0x7fffffff, 0xffffffff};
	struct client c;
	size_t i;

	join_with_offset(&c, tls_offset(), 8);
	CHECK(c.welcome.slots == 32);
	for (i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		struct fg_slot beyond;
		struct client fake = {.slots = &beyond - (ptrdiff_t)slots[i]};

		bind_thread(&fake, slots[i]); /* writes its owner_id into `beyond` */
		sleep_ticks(5);
	}
	CHECK(!c.slots[1].bound);
}

/* Pending and node point to where nothing is, or may not be read from. */
static void wrong_pointer(void *arg)
{
	static const uint64_t pointers[] = {
	    1, 8, 4094, 0xffffffff81000000ull, ~0ull, 1ull << 63, 0x7ffffffff000ull};
	struct client c;
	void *gone;
	size_t i;

	join_with_offset(&c, tls_offset(), 8);
	bind_thread(&c, 1);
	sleep_ticks(2);
	CHECK(c.slots[1].bound == (uint32_t)getpid());
	gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(gone != MAP_FAILED);
	*(uint32_t *)gone = 1;
	c.slots[1].pending = (uintptr_t)gone;
	sleep_ticks(2);
	CHECK(c.slots[1].blocked); /* so the rest of this function can fail */
	munmap(gone, 4096);
	usleep(200);
	c.slots[1].blocked = 0;
	for (i = 0; i < sizeof(pointers) / sizeof(pointers[0]) + 1; i++) {
		sleep_ticks(5);
		CHECK(!c.slots[1].blocked);
		if (i < sizeof(pointers) / sizeof(pointers[0]))
			c.slots[1].pending = pointers[i];
		c.slots[1].role = FG_ROLE_WAITING;
		c.slots[1].node = c.slots[1].pending;
	}
}

/* Scribbles all over its page while it sleeps and runs; dies in the middle. */
static void scribble(void *arg)
{
	struct client c;
	unsigned int seed = 1;
	uint32_t *words;
	size_t i;

	join_with_offset(&c, tls_offset(), 8);
	bind_thread(&c, 1);
	words = (uint32_t *)c.slots;
	for (i = 0; i < 200000; i++) {
		words[rand_r(&seed) % (32 * sizeof(struct fg_slot) / 4)] = rand_r(&seed) % 8;
		if (i % 1000 == 0)
			usleep(50);
	}
	c.slots[1].cs = 1;
	c.slots[1].bound = 0;
}

int main(void)
{
	static void (*const lies[])(void *) = {wrong_offset, wrong_slot, wrong_pointer, scribble};
	struct client c;
	struct actor a;
	size_t i;
	pid_t pid;

	test_begin();
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	actor_start(&a, &c, 1, -1, SCHED_OTHER);
	actor_get_up(&a);
	actor_acquire(&a);
	actor_lie_down(&a);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		pid = spawn(lies[i], NULL);
		reap(pid);
		WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1 &&
			 c.counters->dom[FG_DOMAIN_ALL].preempted == 0);
		CHECK(c.slots[1].state == FG_STATE_SLEEP);
	}
	actor_join(&a);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
