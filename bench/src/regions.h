/* SPDX-License-Identifier: MIT */
/*
 * Memory that processes share, for ulockflex: anonymous, a System V segment or a file.  Of the last
 * two each process has a mapping of its own.
 */
#ifndef FG_BENCH_REGIONS_H
#define FG_BENCH_REGIONS_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum memory { ANONYMOUS, SHMAT, MAPPED_FILE };

struct region {
	void *at; /* in this process */
	size_t size;
	enum memory memory;
	int id; /* segment or descriptor */
};

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list args;

	fputs("ulockflex: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("no memory: %zu bytes", size);
	return p;
}

static void map_region(struct region *r)
{
	void *p;

	if (r->memory == SHMAT) {
		p = shmat(r->id, NULL, 0);
		if (p == (void *)-1)
			fail("cannot attach a segment: %s", strerror(errno));
	} else {
		p = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, r->id, 0);
		if (p == MAP_FAILED)
			fail("cannot map a file: %s", strerror(errno));
	}
	r->at = p;
}

/* Nothing is left behind, whoever is killed: segments are removed and files unlinked at once. */
static void make_region(struct region *r, enum memory memory, size_t size)
{
	char path[] = "/tmp/ulockflex-XXXXXX";

	*r = (struct region){.memory = memory, .size = size};
	if (memory == ANONYMOUS) {
		r->at = shared_memory(r->size);
		return;
	}
	if (memory == SHMAT) {
		r->id = shmget(IPC_PRIVATE, r->size, 0600);
		if (r->id < 0)
			fail("no segment of %zu bytes: %s (/proc/sys/kernel/shmmax, shmmni)",
			     r->size, strerror(errno));
		map_region(r);
		shmctl(r->id, IPC_RMID, NULL);
		return;
	}
	r->id = mkstemp(path);
	if (r->id < 0 || unlink(path) || ftruncate(r->id, (off_t)r->size))
		fail("no file of %zu bytes in /tmp: %s", r->size, strerror(errno));
	map_region(r);
}

/* Of a process: at an address of its own, where the memory has one, and the parent's is gone. */
static void map_region_again(struct region *r)
{
	void *parents = r->at;

	if (r->memory == ANONYMOUS)
		return;
	map_region(r);
	if (r->memory == SHMAT)
		shmdt(parents);
	else
		munmap(parents, r->size);
}

static enum memory memory_of(const char *name)
{
	if (!strcmp(name, "mmap"))
		return ANONYMOUS;
	if (!strcmp(name, "shmat"))
		return SHMAT;
	if (strcmp(name, "file"))
		fail("-r %s: mmap, shmat or file", name);
	return MAPPED_FILE;
}

#endif
