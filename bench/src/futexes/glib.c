/* SPDX-License-Identifier: MIT */
/* GLib: GMutex, GAsyncQueue. */
#include <glib.h>

#include "driver.h"

static GMutex lock;
static GAsyncQueue *queue[MOST_PLACES];

void bench_begin(unsigned places)
{
	for (unsigned i = 0; i < places; i++)
		queue[i] = g_async_queue_new();
}

void bench_section(void (*inside)(void))
{
	g_mutex_lock(&lock);
	inside();
	g_mutex_unlock(&lock);
}

void bench_put(unsigned place)
{
	g_async_queue_push(queue[place], &lock);
}

void bench_take(unsigned place)
{
	g_async_queue_pop(queue[place]);
}
