/* SPDX-License-Identifier: MIT */
/*
 * By the accounts of scl (kernel/policies/scl.bpf.h, as it is) all have a lock for as long, however
 * long their sections are for the window: two bullies and two victims of a lock with a queue, who
 * wait before it as long as the accounts say, by a clock of their own.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What the header takes from syncord.bpf.h, which is left out. */
#define SYNCORD_BPF_H
#define SYNCORD_TARGETS 16
#define SEC(name)
#define __uint(name, n)	   int(*name)[n]
#define __type(name, what) what *name
enum { SYNCORD_READ = 1, SYNCORD_IRQ = 8 };
enum { BPF_MAP_TYPE_ARRAY = 2 };
typedef uint32_t u32;
typedef uint64_t u64;
struct syncord_lock {
	u32 id;
};

static u64 clock_ns;

static u64 bpf_ktime_get_ns(void)
{
	return clock_ns;
}

static u64 bpf_get_current_pid_tgid(void)
{
	return 1;
}

static void at_most(u64 *most, u64 n)
{
	if (n > *most)
		*most = n;
}

static void *bpf_map_lookup_elem(void *map, u32 *key);

#define const /* options are set here */
#include "../../kernel/policies/scl.bpf.h"
#undef const

static struct share share_table[SYNCORD_TARGETS * SLOTS];
static struct total total_table[SYNCORD_TARGETS];

static void *bpf_map_lookup_elem(void *map, u32 *key)
{
	return map == (void *)&shares ? (void *)&share_table[*key] : (void *)&total_table[*key];
}

/* ---- a lock with a queue ----------------------------------------------------------- */

enum { THREADS = 4, SECTIONS_IN_ALL = 20000 };

struct thread {
	u64 section_ns, at_ns, held_ns; /* at: when it asks, or since when it waits */
	bool queued;
};

/* Who is next, and when: the first who asks meanwhile, or else the first of the queue. */
static struct thread *next(struct thread *thread, u64 free_ns, u64 *at_ns)
{
	struct thread *asks = NULL, *first = NULL;

	for (int i = 0; i < THREADS; i++) {
		struct thread **best = thread[i].queued ? &first : &asks;

		if (!*best || thread[i].at_ns < (*best)->at_ns)
			*best = &thread[i];
	}
	*at_ns = first && first->at_ns > free_ns ? first->at_ns : free_ns;
	if (first && (!asks || *at_ns <= asks->at_ns))
		return first;
	*at_ns = asks->at_ns;
	return asks;
}

/* Jain's index of the times held in the second half, when what begins has passed. */
static double fairness(u64 window, u64 bully_ns, u64 victim_ns)
{
	struct syncord_lock lock = {.id = 3};
	struct thread thread[THREADS] = {{0}};
	u64 free_ns, at_ns;
	double sum = 0, squares = 0;

	memset(share_table, 0, sizeof(share_table));
	memset(total_table, 0, sizeof(total_table));
	window_ns = window;
	clock_ns = free_ns = 1000000000000; /* the machine has been up for a while */
	for (int i = 0; i < THREADS; i++) {
		thread[i].section_ns = i % 2 ? bully_ns : victim_ns;
		thread[i].at_ns = clock_ns;
	}
	for (int n = 0; n < SECTIONS_IN_ALL;) {
		struct thread *t = next(thread, free_ns, &at_ns);
		u32 number = (u32)(1 + (t - thread));

		clock_ns = at_ns;
		if (!t->queued) {
			t->at_ns += beyond(&lock, number);
			t->queued = true;
			continue;
		}
		account_begin(&lock, number);
		clock_ns += t->section_ns;
		/* Those who ask while it is inside do so before it tells how long it was. */
		free_ns = clock_ns;
		for (int i = 0; i < THREADS; i++)
			if (!thread[i].queued && thread[i].at_ns < free_ns) {
				clock_ns = thread[i].at_ns;
				thread[i].at_ns += beyond(&lock, (u32)(1 + i));
				thread[i].queued = true;
			}
		clock_ns = free_ns;
		account_end(&lock, number);
		if (++n > SECTIONS_IN_ALL / 2)
			t->held_ns += t->section_ns;
		t->queued = false;
		t->at_ns = clock_ns;
	}
	for (int i = 0; i < THREADS; i++) {
		sum += (double)thread[i].held_ns;
		squares += (double)thread[i].held_ns * (double)thread[i].held_ns;
	}
	return sum * sum / (THREADS * squares);
}

/* Seconds until a thread that held the lock for `once` owes nothing, if others hardly use it. */
static u64 pays_for(u64 window, u64 once)
{
	struct syncord_lock lock = {.id = 3};
	u64 from;

	memset(share_table, 0, sizeof(share_table));
	memset(total_table, 0, sizeof(total_table));
	window_ns = window;
	clock_ns = 1000000000000;
	for (u32 thread = 1; thread <= 2; thread++) {
		account_begin(&lock, thread);
		clock_ns += thread == 1 ? once : 1000;
		account_end(&lock, thread);
	}
	for (from = clock_ns; beyond(&lock, 1) > 1000000 && clock_ns - from < 10000 * window;) {
		clock_ns += window / 10;
		account_begin(&lock, 2);
		clock_ns += 1000;
		account_end(&lock, 2);
		account_begin(&lock, 1);
		clock_ns += 1000;
		account_end(&lock, 1);
	}
	return (clock_ns - from) / 1000000000;
}

int main(void)
{
	static const struct {
		u64 window_ns, bully_ns, victim_ns;
	} of[] = {{1000000000, 1000000, 10000},	      {1000000000, 400000000, 1000000},
		  {1000000000, 2000000000, 20000000}, {1000000000, 2000000000, 1500000000},
		  {10000000, 25000000, 1000000},      {10000000, 40000000, 25000000}};
	int failed = 0;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		double fair = fairness(of[i].window_ns, of[i].bully_ns, of[i].victim_ns);

		printf("windows of %g ms, sections of %g and %g ms: Jain's index %.3f\n",
		       (double)of[i].window_ns / 1e6, (double)of[i].bully_ns / 1e6,
		       (double)of[i].victim_ns / 1e6, fair);
		failed |= fair < 0.99;
	}
	/* One section that was once very long is not paid for for ever. */
	printf("60 s once: %u s\n", (unsigned)pays_for(1000000000, 60000000000));
	failed |= pays_for(1000000000, 60000000000) >
		  15 * 64; /* halved 15 times, 64 windows each */
	(void)thread_of;
	return failed;
}
