/* SPDX-License-Identifier: MIT */
/*
 * A plugin is opened with RTLD_DEEPBIND by a library's constructor, before those of the preload
 * library have run (early_deep.c).  From then on libc names our functions as its own: what of ours
 * calls the next one of the same name finds that, and not itself, and the plugin's locks are the
 * program's.
 */
#include "../tools/check.h"

#include <sys/prctl.h>

#define ROUNDS 20000

extern void *early_plugin;

pthread_mutex_t host_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t host_cond = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t host_rwlock = PTHREAD_RWLOCK_INITIALIZER;
long host_sum, host_in;

static void *worker(void *arg)
{
	long wrong = 0;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		lock(&host_mutex);
		CHECK_EQ(pthread_rwlock_wrlock(&host_rwlock), 0);
		wrong += __atomic_exchange_n(&host_in, 1, __ATOMIC_RELAXED);
		host_sum++;
		__atomic_store_n(&host_in, 0, __ATOMIC_RELAXED);
		CHECK_EQ(pthread_rwlock_unlock(&host_rwlock), 0);
		unlock(&host_mutex);
	}
	return (void *)wrong;
}

int main(int argc, char **argv)
{
	const char *(*says)(void);
	long (*work)(int), *constructed;
	void *again;
	pthread_t t;

	check_begin(argv[0], 30);
	CHECK(early_plugin);
	says = (const char *(*)(void))dlsym(early_plugin, "plugin_says");
	work = (long (*)(int))dlsym(early_plugin, "plugin_work");
	constructed = dlsym(early_plugin, "plugin_constructed");
	CHECK(says && work && constructed);
	CHECK_EQ(*constructed, 0);
	/* Variadic ones (filter.c), dlopen() (deepbind.c), and the locks. */
	CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0),
		 syscall(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0));
	CHECK_EQ(syscall(SYS_getpid), getpid());
	again = dlopen("deep_plugin.so", RTLD_NOW | RTLD_NOLOAD);
	CHECK(again == early_plugin);
	CHECK_EQ(dlclose(again), 0);
	t = start(worker, NULL);
	CHECK_EQ(work(ROUNDS), 0);
	CHECK_EQ(join(t), 0);
	CHECK_EQ(dlclose(early_plugin), 0);
	return 0;
}
