/* SPDX-License-Identifier: MIT */
/*
 * A plugin in a namespace of its own (dlmopen) has another libc, and another table of keys, but a
 * thread has one place for its values.  Threads of the plugin that take the program's locks, and
 * threads of the program that have taken them and then call the plugin, have there what the plugin
 * has put there, and at their end nothing else is destroyed.
 */
#include "../tools/check.h"

enum { ROUNDS = 2000, THREADS = 4 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static long sum, calls;
static void (*plugin_use)(void (*f)(void));

static void use(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&m);
		*(volatile long *)&sum += 1;
		unlock(&m);
	}
	CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
	calls++;
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
}

static void *nothing(void *arg)
{
	return arg;
}

static void *work(void *arg)
{
	use();
	plugin_use(use);
	return arg;
}

int main(int argc, char **argv)
{
	void (*begin)(const char *, void (*)(void)), (*end)(void);
	pthread_t t[THREADS];
	void *plugin;

	CHECK_EQ(argc, 2);
	check_begin(argv[0], 20);
	plugin = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
	if (!plugin)
		check_say("%s", dlerror());
	CHECK(plugin);
	begin = (void (*)(const char *, void (*)(void)))dlsym(plugin, "plugin_begin");
	end = (void (*)(void))dlsym(plugin, "plugin_end");
	plugin_use = (void (*)(void (*)(void)))dlsym(plugin, "plugin_use");
	CHECK(begin && end && plugin_use);
	/* Of the plugin's threads libc does not know, and with one of its own it locks nothing. */
	join(start(nothing, NULL));
	begin(check_name, use);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(work, NULL);
	work(NULL);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	end();
	CHECK_EQ(calls, 4 * 2 + (THREADS + 1) * 3);
	CHECK_EQ(sum, calls * ROUNDS);
	return 0;
}
