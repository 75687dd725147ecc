/* SPDX-License-Identifier: MIT */
/*
 * For malloc_locks, by LD_PRELOAD: a small allocator under three locks: a semaphore, as Electric
 * Fence's, a process-shared mutex, which is glibc's, and one of ours.  Whatever locks, and
 * allocates while it does, comes back here and hangs, or does so without end.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { CLASSES = 24, ALIGN = 16 };

struct chunk {
	size_t class;
	struct chunk *next;
};

static sem_t semaphore;
static pthread_mutex_t shared, m = PTHREAD_MUTEX_INITIALIZER;
static struct chunk *free_list[CLASSES]; /* guarded by m */
static char *fresh, *end;		 /* guarded by m */
long locked_malloc_calls;

void *malloc(size_t n);
void free(void *p);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);
void *memalign(size_t align, size_t n);
void *aligned_alloc(size_t align, size_t n);
int posix_memalign(void **p, size_t align, size_t n);

static void lock(void)
{
	static bool made;
	pthread_mutexattr_t attr;

	if (!made) {
		made = true; /* first: what follows may allocate */
		sem_init(&semaphore, 0, 1);
		pthread_mutexattr_init(&attr);
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
		pthread_mutex_init(&shared, &attr);
	}
	while (sem_wait(&semaphore))
		;
	pthread_mutex_lock(&shared);
	pthread_mutex_lock(&m);
}

static void unlock(void)
{
	pthread_mutex_unlock(&m);
	pthread_mutex_unlock(&shared);
	sem_post(&semaphore);
}

static size_t size_of(size_t class)
{
	return (size_t)32 << class;
}

static struct chunk *carve(size_t bytes)
{
	struct chunk *c;

	if ((size_t)(end - fresh) < bytes) {
		size_t want = bytes > 1u << 20 ? bytes : 1u << 20;
		void *p = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return NULL;
		fresh = p;
		end = fresh + want;
	}
	c = (struct chunk *)fresh;
	fresh += bytes;
	return c;
}

void *malloc(size_t n)
{
	size_t class = 0;
	struct chunk *c;

	while (class < CLASSES && size_of(class) < n + ALIGN)
		class ++;
	if (class == CLASSES) {
		errno = ENOMEM;
		return NULL;
	}
	lock();
	locked_malloc_calls++;
	c = free_list[class];
	if (c)
		free_list[class] = c->next;
	else
		c = carve(size_of(class));
	unlock();
	if (!c) {
		errno = ENOMEM;
		return NULL;
	}
	c->class = class;
	return (char *)c + ALIGN;
}

void free(void *p)
{
	struct chunk *c = (struct chunk *)((char *)p - ALIGN);

	if (!p || c->class >= CLASSES) /* an aligned one: stays */
		return;
	lock();
	c->next = free_list[c->class];
	free_list[c->class] = c;
	unlock();
}

void *calloc(size_t n, size_t size)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	p = malloc(n * size);
	return p ? memset(p, 0, n * size) : NULL;
}

void *realloc(void *p, size_t n)
{
	void *q = malloc(n);

	if (p && q) {
		size_t had = size_of(((struct chunk *)((char *)p - ALIGN))->class) - ALIGN;

		memcpy(q, p, had < n ? had : n);
		free(p);
	}
	return q;
}

void *memalign(size_t align, size_t n)
{
	char *p = malloc(n + align + ALIGN), *q;

	if (!p)
		return NULL;
	q = (char *)(((uintptr_t)p + ALIGN + align - 1) / align * align);
	((struct chunk *)(q - ALIGN))->class = CLASSES;
	return q;
}

void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	*p = memalign(align, n);
	return *p ? 0 : ENOMEM;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(lock, unlock, unlock);
}
