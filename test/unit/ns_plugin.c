/* SPDX-License-Identifier: MIT */
/*
 * For namespace_threads: in a namespace of its own, and with keys of thread-specific data that no
 * thread has a value for, but for the last one.
 */
#include "../tools/check.h"

enum { KEYS = 31, THREADS = 4 };

static pthread_key_t key[KEYS];
static pthread_t thread[THREADS];
static void (*call_back)(void);
static int values, destroyed;

static void destroy(void *value)
{
	CHECK(value == &values);
	ADD(destroyed, 1);
}

/* One value of this thread, none of all others; and nobody else's. */
void plugin_use(void (*f)(void));
void plugin_use(void (*f)(void))
{
	for (int i = 0; i < KEYS; i++)
		CHECK(!pthread_getspecific(key[i]));
	CHECK_EQ(pthread_setspecific(key[KEYS - 1], &values), 0);
	f();
	for (int i = 0; i < KEYS; i++)
		CHECK(pthread_getspecific(key[i]) == (i == KEYS - 1 ? &values : NULL));
	CHECK_EQ(pthread_setspecific(key[KEYS - 1], NULL), 0);
	f();
	for (int i = 0; i < KEYS; i++)
		CHECK(!pthread_getspecific(key[i]));
}

static void *work(void *arg)
{
	plugin_use(call_back);
	CHECK_EQ(pthread_setspecific(key[KEYS - 1], &values), 0);
	return arg;
}

void plugin_begin(const char *name, void (*f)(void));
void plugin_begin(const char *name, void (*f)(void))
{
	check_name = name;
	call_back = f;
	for (int i = 0; i < KEYS; i++)
		CHECK_EQ(pthread_key_create(&key[i], destroy), 0);
	for (int i = 0; i < THREADS; i++)
		thread[i] = start(work, NULL);
}

void plugin_end(void);
void plugin_end(void)
{
	for (int i = 0; i < THREADS; i++)
		join(thread[i]);
	CHECK_EQ(destroyed, THREADS);
}
