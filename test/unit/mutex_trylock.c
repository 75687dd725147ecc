/* SPDX-License-Identifier: MIT */
/* trylock fails with EBUSY as long as anybody holds the lock, at once, and never otherwise. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int held, let_go;

static void *hold(void *arg)
{
	lock(&m);
	STORE(held, 1);
	UNTIL(LOAD(let_go));
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	check_begin(argv[0], 20);
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(pthread_mutex_trylock(&m), 0);
		CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
		unlock(&m);
	}
	t = start(hold, NULL);
	UNTIL(LOAD(held));
	for (int i = 0; i < 100000; i++)
		CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	STORE(let_go, 1);
	join(t);
	CHECK_EQ(pthread_mutex_trylock(&m), 0);
	unlock(&m);
	return 0;
}
