/* SPDX-License-Identifier: MIT */
/* The next owner unmaps the lock while the unlock before it may still be on its way out. */
#include "../tools/check.h"
#include <sys/mman.h>

struct object {
	pthread_mutex_t m;
	int refs;
};

static struct object *current;

static void *use(void *arg)
{
	struct object *o = arg;
	int left;

	lock(&o->m);
	left = --o->refs;
	unlock(&o->m);
	if (!left) {
		CHECK_EQ(pthread_mutex_destroy(&o->m), 0);
		CHECK_EQ(munmap(o, 4096), 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 30);
	for (int i = 0; i < 3000; i++) {
		pthread_t t[2];

		current = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);
		CHECK(current != MAP_FAILED);
		current->refs = 3; /* the mutex: zeroed memory */
		for (int j = 0; j < 2; j++)
			t[j] = start(use, current);
		use(current);
		for (int j = 0; j < 2; j++)
			join(t[j]);
	}
	return 0;
}
