/* SPDX-License-Identifier: MIT */
/*
 * Usage: by_path LIBRARY.  Loads the library by its path, where the preload
 * library cannot stand in for it, and locks with both.
 */
#include "../tools/check.h"

enum { THREADS = 4, ROUNDS = 3000 };
static pthread_mutex_t ours = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long its[5];
static int (*lock_its)(void *), (*unlock_its)(void *);
static volatile long count[2];

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&ours);
		count[0] = count[0] + 1;
		unlock(&ours);
		CHECK_EQ(lock_its(its), 0);
		count[1] = count[1] + 1;
		CHECK_EQ(unlock_its(its), 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	void *library;
	Dl_info info;

	check_begin(argv[0], 60);
	CHECK_EQ(argc, 2);
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	lock_its = (int (*)(void *))dlsym(library, "fg_mutex_lock");
	unlock_its = (int (*)(void *))dlsym(library, "fg_mutex_unlock");
	CHECK(lock_its && dladdr((void *)lock_its, &info) && !strstr(info.dli_fname, "preload"));
	for (int i = 0; i < THREADS; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(count[0], THREADS * ROUNDS);
	CHECK_EQ(count[1], THREADS * ROUNDS);
	return 0;
}
