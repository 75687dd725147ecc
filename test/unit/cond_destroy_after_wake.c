/* SPDX-License-Identifier: MIT */
/*
 * The condition variable may be destroyed, and its memory used for something else, as soon as a
 * broadcast, or a signal for each, has woken its waiters.
 */
#include "../tools/check.h"
#include <sched.h>
#include <sys/mman.h>

enum { WAITERS = 3, ROUNDS = 400 };

struct object {
	pthread_cond_t c;
};

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static struct object *o;
static int waiting, go;

static void *wait_once(void *arg)
{
	struct object *mine = o;

	lock(&m);
	waiting++;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&mine->c, &m), 0);
	waiting--;
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	cpu_set_t all, one;

	check_begin(argv[0], 20);
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t t[WAITERS];

		/* On one CPU the woken ones run when all is over. */
		CHECK_EQ(sched_setaffinity(0, sizeof all, round & 8 ? &one : &all), 0);
		o = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(o != MAP_FAILED);
		CHECK_EQ(pthread_cond_init(&o->c, NULL), 0);
		go = 0;
		for (int i = 0; i < WAITERS; i++)
			t[i] = start(wait_once, NULL);
		for (int there = 0; !there;) {
			lock(&m);
			there = waiting == WAITERS;
			if (there) {
				go = 1;
				if (round & 4) {
					for (int i = 0; i < WAITERS; i++)
						CHECK_EQ(pthread_cond_signal(&o->c), 0);
				} else {
					CHECK_EQ(pthread_cond_broadcast(&o->c), 0);
				}
				if (round & 1) /* legal at once: the waiters have been woken */
					CHECK_EQ(pthread_cond_destroy(&o->c), 0);
			}
			unlock(&m);
			if (!there)
				sleep_us(20);
		}
		if (!(round & 1))
			CHECK_EQ(pthread_cond_destroy(&o->c), 0);
		if (round & 2)
			memset(&o->c, 0xa5, sizeof o->c);
		for (int i = 0; i < WAITERS; i++)
			join(t[i]);
		if (round & 2)
			for (unsigned i = 0; i < sizeof o->c; i++)
				CHECK_EQ(((unsigned char *)&o->c)[i], 0xa5);
		CHECK_EQ(munmap(o, 4096), 0);
	}
	return 0;
}
