/* SPDX-License-Identifier: MIT */
/*
 * Thread-specific data beside a library that has some of its own: the first keys are not taken,
 * so that a program which forgot to create its key, and uses 0, learns it; one that writes to keys
 * that it has not got does no harm; and nearly all keys are there for it, in their order.
 */
#include "../tools/check.h"

#include <limits.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *scribble(void *arg)
{
	(void)arg;
	lock(&m);
	unlock(&m);
	for (pthread_key_t k = 0; k < PTHREAD_KEYS_MAX; k++)
		pthread_setspecific(k, (void *)&m);
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_key_t never_created;
	pthread_key_t key, before = 0;
	int created = 0;

	(void)argc;
	check_begin(argv[0], 20);
	lock(&m); /* whatever a first lock sets up is there */
	unlock(&m);
	CHECK_EQ(pthread_setspecific(never_created, &m), EINVAL);
	for (int i = 0; i < 100; i++)
		join(start(scribble, NULL));
	for (pthread_key_t i = 0; i < 8; i++, created++) {
		CHECK_EQ(pthread_key_create(&key, NULL), 0);
		CHECK(!i || key == before + 1);
		before = key;
	}
	while (pthread_key_create(&key, NULL) == 0)
		created++;
	CHECK(created >= PTHREAD_KEYS_MAX - 2);
	return 0;
}
