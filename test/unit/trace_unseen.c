/* SPDX-License-Identifier: MIT */
/*
 * `flexguard stat` sees the waits of all threads, also of those whose slots the monitor does not
 * see: more than it has room for, or than one user may have.
 */
#include "../tools/check.h"

#include "lock/mutex.h"

static struct fg_mutex m;

static void *waiter(void *arg)
{
	CHECK_EQ(_fg_mutex_lock(&m, NULL, arg), 0);
	CHECK_EQ(_fg_mutex_unlock(&m), 0);
	return NULL;
}

static uint64_t waits(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < FG_TRACE_ENTRIES; i++)
		sum += fg_trace_here.entry[i].count;
	return sum;
}

static void is_traced(void)
{
	uint64_t before = waits();
	pthread_t t;

	CHECK_EQ(_fg_mutex_lock(&m, NULL, &m), 0);
	t = start(waiter, &m);
	while (!(LOAD(m.lock.word) & FG_WORD_WAITERS))
		usleep(1000);
	CHECK_EQ(_fg_mutex_unlock(&m), 0);
	join(t);
	CHECK_EQ(waits(), before + 1);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 20);
	fg_trace_here.until_ns = UINT64_MAX;
	is_traced(); /* no monitor */
	fg_slots_seen = 1;
	is_traced();
	fg_slots_seen = FG_SLOTS_APART;
	is_traced();
	return 0;
}
