/* SPDX-License-Identifier: MIT */
/*
 * A plugin of deepbind.c: shares its mutex, from its constructor on, and has a function of the same
 * name.
 */
#include <pthread.h>

extern pthread_mutex_t host_mutex;
extern pthread_cond_t host_cond;
extern pthread_rwlock_t host_rwlock;
extern long host_sum, host_in;

const char *whose(void)
{
	return "plugin";
}

static int (*by_address)(pthread_mutex_t *) = pthread_mutex_lock;

static long enter(void)
{
	long wrong = __atomic_exchange_n(&host_in, 1, __ATOMIC_RELAXED);

	for (volatile int i = 0; i < 50; i++)
		;
	host_sum++;
	__atomic_store_n(&host_in, 0, __ATOMIC_RELAXED);
	return wrong;
}

/* Sections that somebody else was in, too. */
long plugin_work(int rounds)
{
	long wrong = 0;

	for (int i = 0; i < rounds; i++) {
		if (i % 2)
			pthread_mutex_lock(&host_mutex);
		else
			by_address(&host_mutex);
		wrong += enter();
		pthread_mutex_unlock(&host_mutex);
		pthread_cond_signal(&host_cond);
		pthread_rwlock_wrlock(&host_rwlock);
		wrong += enter();
		pthread_rwlock_unlock(&host_rwlock);
	}
	return wrong;
}

const char *plugin_says(void)
{
	return whose();
}

long plugin_constructed = -1;

__attribute__((constructor)) static void constructor(void)
{
	plugin_constructed = plugin_work(2000);
}
