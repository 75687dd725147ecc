/* SPDX-License-Identifier: MIT */
/*
 * General semaphores (src/zoo/sema.h), of both kinds, between processes: never more inside than
 * units, nobody is left.
 */
#include "../tools/check.h"
#include "zoo/sema.h"
#include <sys/mman.h>

#define THREADS 6
#define ROUNDS	4000

static int (*init)(struct zoo_sema *, uint32_t, bool, bool);
static void (*down)(struct zoo_sema *), (*up)(struct zoo_sema *);
static bool (*trydown)(struct zoo_sema *);

static struct {
	struct zoo_sema s;
	int inside, most;
} *page;
static int units;

static void *use(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 4 || !trydown(&page->s))
			down(&page->s);
		CHECK(__atomic_add_fetch(&page->inside, 1, __ATOMIC_SEQ_CST) <= units);
		if (i % 64 == 0)
			sched_yield();
		__atomic_sub_fetch(&page->inside, 1, __ATOMIC_SEQ_CST);
		up(&page->s);
	}
	return arg;
}

static void exactly(int n)
{
	for (int i = 0; i < n; i++)
		CHECK(trydown(&page->s));
	CHECK(!trydown(&page->s));
	for (int i = 0; i < n; i++)
		up(&page->s);
}

static void all(int n, bool fair, bool shared)
{
	pthread_t t[THREADS];
	pid_t child[2];
	int status;

	units = n;
	CHECK_EQ(init(&page->s, (uint32_t)n, fair, shared), 0);
	exactly(n);
	for (int i = 0; shared && i < 2; i++) {
		child[i] = fork();
		if (!child[i]) {
			use(NULL);
			_exit(0);
		}
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, use, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (int i = 0; shared && i < 2; i++) {
		CHECK_EQ(waitpid(child[i], &status, 0), child[i]);
		CHECK_EQ(status, 0);
	}
	exactly(n);
	CHECK_EQ(page->inside, 0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	*(void **)&init = dlsym(RTLD_DEFAULT, "zoo_sema_init");
	*(void **)&down = dlsym(RTLD_DEFAULT, "zoo_sema_down");
	*(void **)&trydown = dlsym(RTLD_DEFAULT, "zoo_sema_trydown");
	*(void **)&up = dlsym(RTLD_DEFAULT, "zoo_sema_up");
	CHECK(init && down && trydown && up);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	CHECK_EQ(init(&page->s, ZOO_SEMA_MAX + 1, false, false), EINVAL);
	for (int n = 1; n <= 3; n++) {
		all(n, false, false);
		all(n, true, false);
		all(n, n == 2, true);
	}
	return 0;
}
