/* SPDX-License-Identifier: MIT */
/*
 * The smallest stacks: threads of PTHREAD_STACK_MIN and handlers on an alternate stack lock and
 * wait.
 */
#include "../tools/check.h"
#include <limits.h>
#include <sys/mman.h>

enum { THREADS = 8 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, h = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static long count;
static int turn;

static void *work(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&m);
		while (turn != id)
			pthread_cond_wait(&c, &m);
		turn = (turn + 1) % THREADS;
		count++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

static int handled;

static void handler(int sig)
{
	struct timespec ts = {0, 0};

	pthread_mutex_lock(&h);
	pthread_mutex_unlock(&h);
	if (!pthread_mutex_timedlock(&m, &ts))
		pthread_mutex_unlock(&m);
	handled++;
}

static void *contend(void *arg)
{
	for (int i = 0; i < 200; i++) {
		lock(&h);
		sleep_us(5);
		unlock(&h);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), min = (size_t)sysconf(_SC_MINSIGSTKSZ);
	size_t size = (min + 2048 + page - 1) / page * page;
	unsigned char *alt = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t ss = {.ss_sp = alt + page, .ss_size = size};
	pthread_t t[THREADS];
	pthread_attr_t a;
	struct sigaction sa;

	check_begin(argv[0], 20);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, (size_t)sysconf(_SC_THREAD_STACK_MIN)), 0);
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], &a, work, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(count, 100 * THREADS);

	CHECK(alt != MAP_FAILED);
	CHECK_EQ(mprotect(alt, page, PROT_NONE), 0);
	CHECK_EQ(sigaltstack(&ss, NULL), 0);
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = handler;
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &sa, NULL);
	t[0] = start(contend, NULL);
	for (int i = 0; i < 500; i++) {
		raise(SIGUSR1);
		sleep_us(10);
	}
	CHECK_EQ(handled, 500);
	join(t[0]);
	return 0;
}
