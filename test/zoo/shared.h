/* SPDX-License-Identifier: MIT */
/* Two processes and a page of a file, which each of them has at an address of its own. */
#ifndef SHARED_H
#define SHARED_H

#include "../tools/check.h"
#include <sys/mman.h>
#include <sys/wait.h>

struct page; /* of the test */

static inline struct page *map(int fd, const void *not_here)
{
	struct page *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED && p != not_here);
	return p;
}

/* Both at once; the child's is at two addresses, and not at the parent's. */
static inline void in_both(int fd, struct page *p, void (*work)(struct page *a, struct page *b))
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct page *a = map(fd, p), *b = map(fd, p);

		CHECK_EQ(munmap(p, 4096), 0);
		work(a, b);
		_exit(0);
	}
	work(p, p);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

#endif
