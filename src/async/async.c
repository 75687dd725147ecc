/* SPDX-License-Identifier: MIT */
/*
 * flexguard_async.h.  A helper sleeps in futex_waitv(2) on up to 127 words and one of its own, by
 * which it is told that its list has changed.  The list is guarded by a mutex; what the helper
 * sleeps on is a copy.
 *
 * Words are looked at by the kernel only, which says EFAULT where this program would die.
 * futex_waitv(2) does not say which word was another, or at fault: each is asked for by a
 * FUTEX_WAIT that is over at once.
 */
#include <flexguard_async.h>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORDS	       (FUTEX_WAITV_MAX - 1)
#define HELPERS	       ((FG_ASYNC_MAX + WORDS - 1) / WORDS)
#define ERROR_SLEEP_NS 1000000 /* after an error for which there is no word; not varied */

struct watch {
	struct futex_waitv what;
	uint64_t cookie;
	uint64_t number; /* of all that were ever watched */
};

struct helper {
	struct fg_async *of;
	pthread_t thread;
	bool running;
	uint32_t news;	 /* a futex: changes with the list */
	uint32_t copied; /* as of which news it sleeps; a futex for a thread that cancels */
	unsigned nr;
	struct watch watch[WORDS];
};

struct due {
	struct futex_waitv what;
	uint64_t cookie;
	int error;
};

struct fg_async {
	pthread_mutex_t m;
	int fd;
	bool closing;
	struct due *due; /* ring */
	unsigned first, nr_due, watched;
	uint64_t numbers;
	struct helper *helper[HELPERS];
};

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/* With the mutex. */
static void tell(struct helper *h)
{
	__atomic_fetch_add(&h->news, 1, __ATOMIC_RELEASE);
	futex(&h->news, FUTEX_WAKE_PRIVATE, 1, NULL);
}

/*
 * A watch that is forgotten may have been woken in the place of another waiter, who sleeps on.
 * Nobody knows: of several words that were woken futex_waitv(2) names one.  So that one is woken.
 */
static void pass_on(const struct futex_waitv *what)
{
	futex((uint32_t *)(uintptr_t)what->uaddr, FUTEX_WAKE | (what->flags & FUTEX_PRIVATE_FLAG),
	      1, NULL);
}

/* With the mutex: this watch is over. */
static void is_due(struct helper *h, unsigned i, int error)
{
	struct fg_async *a = h->of;
	uint64_t one = 1;

	a->due[(a->first + a->nr_due++) % FG_ASYNC_MAX] = (struct due){h->watch[i].what,
								       h->watch[i].cookie, error};
	h->watch[i] = h->watch[--h->nr];
	if (write(a->fd, &one, sizeof(one)) < 0) {
		/* The counter is full: readable anyway. */
	}
}

/* Is the word still its value, and nobody wakes?  If not, 0 or an error. */
static bool is_over(const struct watch *w, int *error)
{
	static const struct timespec at_once;
	uint32_t *word = (uint32_t *)(uintptr_t)w->what.uaddr;

	*error = 0;
	if (!futex(word, FUTEX_WAIT | (w->what.flags & FUTEX_PRIVATE_FLAG), (uint32_t)w->what.val,
		   &at_once))
		return true;
	if (errno == ETIMEDOUT || errno == EINTR)
		return false;
	if (errno != EAGAIN)
		*error = errno;
	return true;
}

/* With the mutex: after EAGAIN, or another error.  False: no word is the reason. */
static bool look_at_all(struct helper *h)
{
	bool any = false;
	int error;

	for (unsigned i = 0; i < h->nr;) {
		if (is_over(&h->watch[i], &error)) {
			is_due(h, i, error);
			any = true;
		} else {
			i++;
		}
	}
	return any;
}

static void woken(struct helper *h, uint64_t number)
{
	for (unsigned i = 0; i < h->nr; i++) {
		if (h->watch[i].number == number) { /* the list may have changed */
			is_due(h, i, 0);
			return;
		}
	}
}

static void *help(void *arg)
{
	static const struct timespec error_sleep = {.tv_nsec = ERROR_SLEEP_NS};
	struct futex_waitv list[WORDS + 1];
	uint64_t number[WORDS];
	struct helper *h = arg;
	bool unexplained;
	unsigned nr, i;
	int error;
	long r;

	pthread_mutex_lock(&h->of->m);
	while (!h->of->closing) {
		uint32_t news = __atomic_load_n(&h->news, __ATOMIC_ACQUIRE);

		nr = h->nr;
		list[0] = (struct futex_waitv){.uaddr = (uintptr_t)&h->news,
					       .val = news,
					       .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
		for (i = 0; i < nr; i++) {
			list[i + 1] = h->watch[i].what;
			number[i] = h->watch[i].number;
		}
		__atomic_store_n(&h->copied, news, __ATOMIC_RELEASE);
		futex(&h->copied, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
		pthread_mutex_unlock(&h->of->m);
		r = syscall(SYS_futex_waitv, list, nr + 1, 0, NULL, 0);
		error = r < 0 ? errno : 0;
		pthread_mutex_lock(&h->of->m);
		unexplained = false;
		if (r > 0 && r <= (long)nr)
			woken(h, number[r - 1]);
		else if (error && error != EINTR)
			unexplained = !look_at_all(h) && error != EAGAIN;
		if (unexplained) { /* no memory, say, or a word that has become memory again */
			pthread_mutex_unlock(&h->of->m);
			nanosleep(&error_sleep, NULL);
			pthread_mutex_lock(&h->of->m);
		}
	}
	pthread_mutex_unlock(&h->of->m);
	return NULL;
}

struct fg_async *fg_async_open(void)
{
	struct fg_async *a;

	if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 && errno != EINVAL)
		return NULL; /* EINVAL: no words */
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->due = malloc(FG_ASYNC_MAX * sizeof(*a->due));
	a->fd = a->due ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (a->fd < 0) {
		free(a->due);
		free(a);
		return NULL;
	}
	pthread_mutex_init(&a->m, NULL);
	return a;
}

int fg_async_fd(const struct fg_async *a)
{
	return a->fd;
}

static int add(struct helper *h, const struct watch *w)
{
	sigset_t all, before;
	int err;

	if (!h->running) {
		/* No handler of the program's runs in it. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		err = pthread_create(&h->thread, NULL, help, h);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (err)
			return err;
		h->running = true;
	}
	h->watch[h->nr++] = *w;
	h->of->watched++;
	tell(h);
	return 0;
}

int fg_async_watch(struct fg_async *a, uint32_t *word, uint32_t value, bool shared, uint64_t cookie)
{
	struct watch w = {{.uaddr = (uintptr_t)word,
			   .val = value,
			   .flags = FUTEX_32 | (shared ? 0 : FUTEX_PRIVATE_FLAG)},
			  cookie,
			  0};
	int err = ENOSPC;

	pthread_mutex_lock(&a->m);
	w.number = a->numbers++;
	for (unsigned i = 0; i < HELPERS && a->watched < FG_ASYNC_MAX && err == ENOSPC; i++) {
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
		futex(&h->copied, FUTEX_WAIT_PRIVATE, copied, NULL);
		pthread_mutex_lock(&h->of->m);
	}
}

bool fg_async_cancel(struct fg_async *a, uint64_t cookie)
{
	struct futex_waitv what;
	bool found = false;

	pthread_mutex_lock(&a->m);
	for (unsigned i = 0; i < HELPERS && a->helper[i] && !found; i++) {
		struct helper *h = a->helper[i];

		for (unsigned k = 0; k < h->nr && !found; k++) {
			if (h->watch[k].cookie != cookie)
				continue;
			found = true;
			what = h->watch[k].what;
			h->watch[k] = h->watch[--h->nr];
			a->watched--;
			settle(h);
			pass_on(&what);
		}
	}
	for (unsigned i = 0; i < a->nr_due && !found; i++) {
		if (a->due[(a->first + i) % FG_ASYNC_MAX].cookie != cookie)
			continue;
		found = true;
		pass_on(&a->due[(a->first + i) % FG_ASYNC_MAX].what);
		a->due[(a->first + i) % FG_ASYNC_MAX] = a->due[a->first];
		a->first = (a->first + 1) % FG_ASYNC_MAX;
		a->nr_due--;
		a->watched--;
	}
	pthread_mutex_unlock(&a->m);
	return found;
}

bool fg_async_fetch(struct fg_async *a, uint64_t *cookie, int *error)
{
	uint64_t count;
	bool any;

	pthread_mutex_lock(&a->m);
	any = a->nr_due;
	if (any) {
		*cookie = a->due[a->first].cookie;
		*error = a->due[a->first].error;
		a->first = (a->first + 1) % FG_ASYNC_MAX;
		a->nr_due--;
		a->watched--;
	} else if (syscall(SYS_read, a->fd, &count, sizeof(count)) < 0) {
		/* It was not readable.  No cancellation point, with the mutex, as read() is. */
	}
	pthread_mutex_unlock(&a->m);
	return any;
}

void fg_async_close(struct fg_async *a)
{
	int state;

	/* All or nothing: helpers would go on in what is left. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&a->m);
	a->closing = true;
	for (unsigned i = 0; i < HELPERS && a->helper[i]; i++)
		tell(a->helper[i]);
	pthread_mutex_unlock(&a->m);
	for (unsigned i = 0; i < HELPERS && a->helper[i]; i++) {
		if (a->helper[i]->running)
			pthread_join(a->helper[i]->thread, NULL);
		for (unsigned k = 0; k < a->helper[i]->nr; k++)
			pass_on(&a->helper[i]->watch[k].what);
		free(a->helper[i]);
	}
	for (unsigned i = 0; i < a->nr_due; i++)
		pass_on(&a->due[(a->first + i) % FG_ASYNC_MAX].what);
	close(a->fd);
	free(a->due);
	pthread_mutex_destroy(&a->m);
	free(a);
	pthread_setcancelstate(state, NULL);
}
