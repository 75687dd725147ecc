/* SPDX-License-Identifier: MIT */
/*
 * async.h.  A helper sleeps in futex_waitv(2) on up to 127 words and one of its own, by which it is told
 * that its list has changed.  The list is guarded by a mutex; what the helper sleeps on is a copy.
 */
#include "zoo/async.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS	(FUTEX_WAITV_MAX - 1)
#define HELPERS ((ZOO_ASYNC_MAX + WORDS - 1) / WORDS)

struct watch {
	struct futex_waitv what;
	uint64_t cookie;
};

struct helper {
	struct zoo_async *of;
	pthread_t thread;
	bool running;
	uint32_t news;	 /* a futex: changes with the list */
	uint32_t copied; /* as of which news it sleeps; a futex for who cancels */
	unsigned nr;
	struct watch watch[WORDS];
};

struct zoo_async {
	pthread_mutex_t m;
	int fd;
	bool closing;
	uint64_t *due; /* ring */
	unsigned first, nr_due, watched;
	struct helper *helper[HELPERS];
};

static long futex(uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* With the mutex. */
static void tell(struct helper *h)
{
	__atomic_fetch_add(&h->news, 1, __ATOMIC_RELEASE);
	futex(&h->news, FUTEX_WAKE, 1);
}

/* With the mutex: this watch is over. */
static void is_due(struct helper *h, unsigned i)
{
	struct zoo_async *a = h->of;
	uint64_t one = 1;

	a->due[(a->first + a->nr_due++) % ZOO_ASYNC_MAX] = h->watch[i].cookie;
	h->watch[i] = h->watch[--h->nr];
	if (write(a->fd, &one, sizeof(one)) < 0) {
		/* The counter is full: readable anyway. */
	}
}

static void *help(void *arg)
{
	struct futex_waitv list[WORDS + 1];
	uint64_t cookie[WORDS];
	struct helper *h = arg;
	unsigned nr, i;
	long r = -1;

	pthread_mutex_lock(&h->of->m);
	while (!h->of->closing) {
		uint32_t news = __atomic_load_n(&h->news, __ATOMIC_ACQUIRE);

		nr = h->nr;
		list[0] = (struct futex_waitv){.uaddr = (uintptr_t)&h->news, .val = news, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
		for (i = 0; i < nr; i++) {
			list[i + 1] = h->watch[i].what;
			cookie[i] = h->watch[i].cookie;
		}
		__atomic_store_n(&h->copied, news, __ATOMIC_RELEASE);
		futex(&h->copied, FUTEX_WAKE, INT_MAX);
		pthread_mutex_unlock(&h->of->m);
		r = syscall(SYS_futex_waitv, list, nr + 1, 0, NULL, 0);
		if (r < 0)
			r = errno == EAGAIN ? -1 : -2;
		pthread_mutex_lock(&h->of->m);
		for (i = 0; i < h->nr;) {
			uint32_t *word = (uint32_t *)(uintptr_t)h->watch[i].what.uaddr;

			/* The one that woke us, by its cookie: the list may have changed.  And whatever differs. */
			if ((r > 0 && h->watch[i].cookie == cookie[r - 1]) ||
			    (r == -1 && __atomic_load_n(word, __ATOMIC_ACQUIRE) != (uint32_t)h->watch[i].what.val))
				is_due(h, i);
			else
				i++;
		}
	}
	pthread_mutex_unlock(&h->of->m);
	return NULL;
}

struct zoo_async *zoo_async_open(void)
{
	struct zoo_async *a;

	if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 && errno == ENOSYS)
		return NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->due = malloc(ZOO_ASYNC_MAX * sizeof(*a->due));
	a->fd = a->due ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (a->fd < 0) {
		free(a->due);
		free(a);
		return NULL;
	}
	pthread_mutex_init(&a->m, NULL);
	return a;
}

int zoo_async_fd(const struct zoo_async *a)
{
	return a->fd;
}

static int add(struct helper *h, const struct watch *w)
{
	int err;

	if (!h->running) {
		err = pthread_create(&h->thread, NULL, help, h);
		if (err)
			return err;
		h->running = true;
	}
	h->watch[h->nr++] = *w;
	h->of->watched++;
	tell(h);
	return 0;
}

int zoo_async_watch(struct zoo_async *a, uint32_t *word, uint32_t value, bool shared, uint64_t cookie)
{
	struct watch w = {{.uaddr = (uintptr_t)word, .val = value, .flags = FUTEX_32 | (shared ? 0 : FUTEX_PRIVATE_FLAG)},
			  cookie};
	int err = ENOSPC;

	pthread_mutex_lock(&a->m);
	for (unsigned i = 0; i < HELPERS && a->watched < ZOO_ASYNC_MAX && err == ENOSPC; i++) {
		if (!a->helper[i]) {
			a->helper[i] = calloc(1, sizeof(*a->helper[i]));
			if (a->helper[i])
				a->helper[i]->of = a;
		}
		if (!a->helper[i])
			err = ENOMEM;
		else if (a->helper[i]->nr < WORDS)
			err = add(a->helper[i], &w);
	}
	pthread_mutex_unlock(&a->m);
	return err;
}

/* With the mutex, which is released meanwhile: until the helper sleeps on what the list is now. */
static void settle(struct helper *h)
{
	uint32_t news, copied;

	tell(h);
	news = __atomic_load_n(&h->news, __ATOMIC_RELAXED);
	while ((int32_t)((copied = __atomic_load_n(&h->copied, __ATOMIC_ACQUIRE)) - news) < 0) {
		pthread_mutex_unlock(&h->of->m);
		futex(&h->copied, FUTEX_WAIT, copied);
		pthread_mutex_lock(&h->of->m);
	}
}

bool zoo_async_cancel(struct zoo_async *a, uint64_t cookie)
{
	bool found = false;

	pthread_mutex_lock(&a->m);
	for (unsigned i = 0; i < HELPERS && a->helper[i] && !found; i++) {
		struct helper *h = a->helper[i];

		for (unsigned k = 0; k < h->nr && !found; k++) {
			if (h->watch[k].cookie != cookie)
				continue;
			found = true;
			h->watch[k] = h->watch[--h->nr];
			a->watched--;
			settle(h);
		}
	}
	for (unsigned i = 0; i < a->nr_due && !found; i++) {
		if (a->due[(a->first + i) % ZOO_ASYNC_MAX] != cookie)
			continue;
		found = true;
		a->due[(a->first + i) % ZOO_ASYNC_MAX] = a->due[a->first];
		a->first = (a->first + 1) % ZOO_ASYNC_MAX;
		a->nr_due--;
		a->watched--;
	}
	pthread_mutex_unlock(&a->m);
	return found;
}

bool zoo_async_fetch(struct zoo_async *a, uint64_t *cookie)
{
	uint64_t count;
	bool any;

	pthread_mutex_lock(&a->m);
	any = a->nr_due;
	if (any) {
		*cookie = a->due[a->first];
		a->first = (a->first + 1) % ZOO_ASYNC_MAX;
		a->nr_due--;
		a->watched--;
	} else if (read(a->fd, &count, sizeof(count)) < 0) {
		/* It was not readable. */
	}
	pthread_mutex_unlock(&a->m);
	return any;
}

void zoo_async_close(struct zoo_async *a)
{
	pthread_mutex_lock(&a->m);
	a->closing = true;
	for (unsigned i = 0; i < HELPERS && a->helper[i]; i++)
		tell(a->helper[i]);
	pthread_mutex_unlock(&a->m);
	for (unsigned i = 0; i < HELPERS && a->helper[i]; i++) {
		if (a->helper[i]->running)
			pthread_join(a->helper[i]->thread, NULL);
		free(a->helper[i]);
	}
	close(a->fd);
	free(a->due);
	pthread_mutex_destroy(&a->m);
	free(a);
}
