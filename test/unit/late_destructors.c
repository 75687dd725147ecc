/* SPDX-License-Identifier: MIT */
/*
 * Locks work, contended, in destructors of thread-specific data in every round, of thread_local
 * objects, in atexit handlers and in destructors of the program.
 */
#include "../tools/check.h"
#include <limits.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static long count, specific, local;
static pthread_key_t key;
static int at_exit;

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle;

static void use(void)
{
	for (int i = 0; i < 20; i++) {
		struct timespec ts = in_us(CLOCK_REALTIME, 1);

		lock(&m);
		*(volatile long *)&count += 1;
		if (i == 10)
			pthread_cond_timedwait(&c, &m, &ts);
		pthread_cond_signal(&c);
		unlock(&m);
	}
}

static void destroy_specific(void *rounds)
{
	use();
	ADD(specific, 1);
	if ((intptr_t)rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(key, (void *)((intptr_t)rounds + 1));
}

static void destroy_local(void *arg)
{
	use();
	ADD(local, 1);
}

static void *work(void *arg)
{
	if (arg) /* with and without a lock before */
		use();
	CHECK_EQ(pthread_setspecific(key, (void *)1), 0);
	CHECK_EQ(__cxa_thread_atexit_impl(destroy_local, NULL, &__dso_handle), 0);
	return NULL;
}

static void *work_once(void *arg)
{
	use();
	return NULL;
}

static void on_exit_handler(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		t[i] = start(work_once, NULL);
	use();
	for (int i = 0; i < 2; i++)
		join(t[i]);
	at_exit = 1;
}

__attribute__((destructor(101))) static void last(void)
{
	long before = count;

	if (!at_exit)
		return;
	use();
	if (count != before + 20)
		_exit(CHECK_FAILED);
	check_end(0);
}

int main(int argc, char **argv)
{
	pthread_t t[4];

	check_begin(argv[0], 20);
	CHECK_EQ(pthread_key_create(&key, destroy_specific), 0);
	for (intptr_t round = 0; round < 50; round++) {
		for (int i = 0; i < 4; i++)
			t[i] = start(work, (void *)(round & 1));
		for (int i = 0; i < 4; i++)
			join(t[i]);
	}
	CHECK_EQ(specific, 200 * PTHREAD_DESTRUCTOR_ITERATIONS);
	CHECK_EQ(local, 200);
	CHECK_EQ(atexit(on_exit_handler), 0);
	return CHECK_FAILED; /* the destructor says 0 */
}
