/* SPDX-License-Identifier: MIT */
/*
 * glibc marks a process-shared condition variable by bit 0 of a word at offset 36, or, from 2.41
 * on, at 28.  Ours, in the same bytes, has none of these bits while threads wait, wherever their
 * stacks are: else it would be taken for glibc's.
 */
#include "../tools/check.h"

#include <sys/mman.h>

enum { WAITERS = 3, STACK = 1 << 20 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int inside, go;

static void *waiter(void *arg)
{
	lock(&m);
	inside++;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	unlock(&m);
	return arg;
}

/* Addresses of which bits 32 and 33 are set. */
static pthread_t start_there(int i)
{
	void *at = (void *)(0x300000000 + (uintptr_t)i * 2 * STACK), *stack;
	pthread_attr_t a;
	pthread_t t;

	stack = mmap(at, STACK, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (stack != at)
		check_skip("no memory at %p", at);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstack(&a, stack, STACK), 0);
	CHECK_EQ(pthread_create(&t, &a, waiter, NULL), 0);
	CHECK_EQ(pthread_attr_destroy(&a), 0);
	return t;
}

int main(int argc, char **argv)
{
	const uint32_t *word = (const uint32_t *)&c;
	pthread_t t[WAITERS];

	check_begin(argv[0], 20);
	if (!getenv("CHECK_PRELOAD"))
		check_skip("of the library");
	for (int i = 0; i < WAITERS; i++) {
		t[i] = start_there(i);
		for (int in = 0; in <= i;) {
			sleep_us(1000);
			lock(&m);
			in = inside;
			unlock(&m);
		}
		lock(&m);
		CHECK_EQ(word[7] & 1, 0);
		CHECK_EQ(word[9] & 1, 0);
		unlock(&m);
	}
	lock(&m);
	go = 1;
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	unlock(&m);
	for (int i = 0; i < WAITERS; i++)
		join(t[i]);
	CHECK_EQ(word[7] & 1, 0);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	return 0;
}
