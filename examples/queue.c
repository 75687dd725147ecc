/* SPDX-License-Identifier: MIT */
/*
 * Producers and consumers around a queue with room for a few items, the textbook
 * case of a mutex and two condition variables.  Prints what has come through.
 *
 *   cc queue.c $(pkg-config --cflags --libs flexguard) -pthread
 */
#include <flexguard.h>
#include <pthread.h>
#include <stdio.h>

enum { ROOM = 8, WORKERS = 4, ITEMS = 20000 };

static fg_mutex_t mutex = FG_MUTEX_INIT;
static fg_cond_t not_full = FG_COND_INIT, not_empty = FG_COND_INIT;
static int queue[ROOM], count; /* guarded by mutex */

static void put(int item)
{
	fg_mutex_lock(&mutex);
	while (count == ROOM)
		fg_cond_wait(&not_full, &mutex);
	queue[count++] = item;
	fg_cond_signal(&not_empty);
	fg_mutex_unlock(&mutex);
}

static int get(void)
{
	int item;

	fg_mutex_lock(&mutex);
	while (count == 0)
		fg_cond_wait(&not_empty, &mutex);
	item = queue[--count];
	fg_cond_signal(&not_full);
	fg_mutex_unlock(&mutex);
	return item;
}

static void *produce(void *unused)
{
	(void)unused;
	for (int i = 1; i <= ITEMS; i++)
		put(i);
	return NULL;
}

static void *consume(void *sum)
{
	for (int i = 1; i <= ITEMS; i++)
		*(long long *)sum += get();
	return NULL;
}

int main(void)
{
	pthread_t thread[2 * WORKERS];
	long long sum[WORKERS] = {0}, total = 0;

	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&thread[2 * i], NULL, produce, NULL) ||
		    pthread_create(&thread[2 * i + 1], NULL, consume, &sum[i]))
			return 1;
	for (int i = 0; i < 2 * WORKERS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < WORKERS; i++)
		total += sum[i];
	printf("%lld\n", total);
	return total != (long long)WORKERS * ITEMS * (ITEMS + 1) / 2;
}
