// SPDX-License-Identifier: MIT
/*
 * Users whose packets come in any order and number: while a user waits, no other one is served more
 * than FG_FAIR_QUEUE_BETWEEN times between two services of the first, and nobody's packets change
 * places.
 */
#include "harness.h"
#include "monitor/fair_queue.h"

enum { USERS = 12, PACKETS = 1000, STEPS = 200000 };

static struct fg_fair_queue queue;
static struct {
	bool waits;
	int user;
	uint64_t tag, came;
} packet[PACKETS];
static uint32_t waiting[USERS], served_since[USERS][USERS]; /* [of whom][by whom it is seen] */
static uint64_t last_came[USERS];

static void come(int user, uint64_t step)
{
	int i = 0;

	while (i < PACKETS && packet[i].waits)
		i++;
	if (i == PACKETS)
		return;
	packet[i].waits = true;
	packet[i].user = user;
	packet[i].came = step;
	packet[i].tag = fg_fair_queue_tag(&queue, (uid_t)user * 1000);
	/* From here on the user waits: what was before does not count. */
	if (!waiting[user]++)
		for (int v = 0; v < USERS; v++)
			served_since[v][user] = 0;
}

static void serve(void)
{
	int best = -1, u;

	for (int i = 0; i < PACKETS; i++)
		if (packet[i].waits &&
		    (best < 0 || packet[i].tag < packet[best].tag ||
		     (packet[i].tag == packet[best].tag && packet[i].came < packet[best].came)))
			best = i;
	if (best < 0)
		return;
	packet[best].waits = false;
	u = packet[best].user;
	fg_fair_queue_serve(&queue, packet[best].tag);
	waiting[u]--;
	CHECK(packet[best].came >= last_came[u]);
	last_came[u] = packet[best].came;
	for (int v = 0; v < USERS; v++) {
		served_since[v][u] = 0;
		if (v == u || !waiting[v])
			continue;
		if (++served_since[u][v] > FG_FAIR_QUEUE_BETWEEN)
			fail("user %d was served %u times while %d waited", u, served_since[u][v],
			     v);
	}
}

int main(void)
{
	unsigned seed = 12;

	test_begin();
	for (uint64_t step = 0; step < STEPS; step++) {
		int r = rand_r(&seed) % 100;

		/*
		 * User 0 floods, 1 and 2 send much, the others now and then; sometimes all at once.
		 */
		if (r < 40)
			come(0, step);
		else if (r < 50)
			come(1 + rand_r(&seed) % 2, step);
		else if (r < 56)
			come(rand_r(&seed) % USERS, step);
		if (r % 2 || step % 5000 < 1000)
			serve();
	}
	return 0;
}
