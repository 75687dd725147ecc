// SPDX-License-Identifier: MIT
/*
 * Puts slot arrays into the map of maps.  Each such update takes effect at once,
 * but the kernel ends it with a wait for all programs that may still see the old
 * entry (synchronize_rcu): 5 to 20 ms (2-CPU VM, Linux 6.18).  No client should
 * wait for that, its own or that of the one before it, so threads of this file
 * make the updates, and the loop only waits until it can see the result.
 *
 * Removals have a thread of their own, which does all that have come together
 * in one update.  The index is not given to another process before that.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"
#include "monitor.skel.h"

/* Not varied. */
#define PUBLISH_BATCH	  64
#define ADDERS		  8
#define PUBLISHED_WAIT_NS 50000000ull /* of one client at most; updates take 5 to 20 ms */

struct request {
	struct request *next;
	uint32_t key;
	int array_fd; /* -1: remove */
};

struct queue {
	struct fg_monitor *monitor;
	pthread_mutex_t mutex; /* guards the rest */
	pthread_cond_t wake;
	struct request *head, **tail;
	bool stop;
};

struct fg_publisher {
	struct queue add, remove;
	uint32_t adding; /* arrays that the threads have not done with yet, atomic */
	int room_fd;	 /* eventfd: less to do */
	pthread_t threads[ADDERS + 1];
	int nr_threads;
};

/*
 * Removed means replaced by an empty array: an update can be one of many, and
 * this map type has no batched delete.
 */
static void update_arrays(struct fg_monitor *m, const uint32_t *key, const int *fd, uint32_t n,
			  bool *failed)
{
	int map = bpf_map__fd(m->skel->maps.processes);
	uint32_t i, done = n;

	memset(failed, 0, n * sizeof(*failed));
	if (n > 1 && !bpf_map_update_batch(map, key, fd, &done, NULL))
		return;
	/* Not supported, or one of them failed: one by one, then the others still work. */
	for (i = 0; i < n; i++)
		failed[i] = bpf_map_update_elem(map, &key[i], &fd[i], BPF_ANY);
}

static struct fg_process *process_of(struct fg_monitor *m, const struct request *r)
{
	return &m->processes[r->key / FG_PIECES];
}

#define ADDERS_LOOK_NS 1000000u /* not varied */

/* An array that is still being put in would come after its removal. */
static void wait_for_adders(struct fg_monitor *m, const struct request *r)
{
	while (__atomic_load_n(&process_of(m, r)->adding, __ATOMIC_ACQUIRE))
		usleep(ADDERS_LOOK_NS / 1000);
}

/* Clients may be waiting for what a thread has done. */
static void tell_loop(struct fg_monitor *m)
{
	uint64_t one = 1;

	(void)!write(m->publisher->room_fd, &one, sizeof(one));
}

bool fg_publisher_has_room(struct fg_monitor *m)
{
	return !m->publisher || __atomic_load_n(&m->publisher->adding, __ATOMIC_SEQ_CST) < ADDERS;
}

void fg_publisher_heard(struct fg_monitor *m)
{
	uint64_t n;

	(void)!read(m->publisher->room_fd, &n, sizeof(n));
}

static void publish(struct fg_monitor *m, struct request *list)
{
	uint32_t key[PUBLISH_BATCH], n;
	struct request *r, *first;
	bool failed[PUBLISH_BATCH], adds;
	int fd[PUBLISH_BATCH];

	while (list) {
		first = list;
		for (n = 0; list && n < PUBLISH_BATCH; list = list->next, n++) {
			if (list->array_fd < 0)
				wait_for_adders(m, list);
			key[n] = list->key;
			fd[n] = list->array_fd >= 0 ? list->array_fd : m->empty.fd;
		}
		update_arrays(m, key, fd, n, failed);
		for (n = 0; first != list; n++) {
			r = first;
			first = first->next;
			adds = r->array_fd >= 0;
			if (adds)
				close(r->array_fd);
			/*
			 * Release: pairs with the acquire in fg_process_register's search, and in
			 * fg_publish.  An array that could not be removed is there still, and the
			 * index stays out of use.
			 */
			if (adds || !failed[n])
				__atomic_fetch_sub(adds ? &process_of(m, r)->adding :
							  &process_of(m, r)->leaving,
						   1, __ATOMIC_RELEASE);
			if (adds)
				__atomic_fetch_sub(&m->publisher->adding, 1, __ATOMIC_SEQ_CST);
			free(r);
		}
		tell_loop(m);
	}
}

static void *run(void *arg)
{
	struct queue *q = arg;
	struct request *list;

	pthread_mutex_lock(&q->mutex);
	while (q->head || !q->stop) {
		if (!q->head) {
			pthread_cond_wait(&q->wake, &q->mutex);
			continue;
		}
		list = q->head;
		q->head = NULL;
		q->tail = &q->head;
		pthread_mutex_unlock(&q->mutex);
		publish(q->monitor, list);
		pthread_mutex_lock(&q->mutex);
	}
	pthread_mutex_unlock(&q->mutex);
	return NULL;
}

static int post(struct queue *q, uint32_t key, int array_fd)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->key = key;
	r->array_fd = array_fd;
	pthread_mutex_lock(&q->mutex);
	*q->tail = r;
	q->tail = &r->next;
	pthread_cond_signal(&q->wake);
	pthread_mutex_unlock(&q->mutex);
	return 0;
}

bool fg_is_published(struct fg_monitor *m, uint32_t index, uint32_t piece, const struct fg_array *a)
{
	uint32_t key = index * FG_PIECES + piece, found = 0;

	/* What user space reads from a map of maps is the id of the map in there. */
	return !bpf_map_lookup_elem(bpf_map__fd(m->skel->maps.processes), &key, &found) &&
	       found == a->id;
}

int fg_publish(struct fg_monitor *m, uint32_t index, uint32_t piece, const struct fg_array *a)
{
	bool tried, found;
	uint64_t until;
	int fd, err;

	/* The thread is done with it later than the caller. */
	fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	__atomic_fetch_add(&m->processes[index].adding, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&m->publisher->adding, 1, __ATOMIC_SEQ_CST);
	err = post(&m->publisher->add, index * FG_PIECES + piece, fd);
	if (err) {
		__atomic_fetch_sub(&m->processes[index].adding, 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&m->publisher->adding, 1, __ATOMIC_SEQ_CST);
		close(fd);
		return err;
	}
	/* All adders busy, and the machine as well?  Then it becomes visible a little later. */
	for (until = fg_now_ns() + PUBLISHED_WAIT_NS;; usleep(20)) {
		tried = !__atomic_load_n(&m->processes[index].adding, __ATOMIC_ACQUIRE);
		found = fg_is_published(m, index, piece, a);
		if (found || tried || fg_now_ns() >= until)
			break;
	}
	return found || !tried ? 0 : -EIO;
}

void fg_unpublish(struct fg_monitor *m, uint32_t index, uint32_t piece)
{
	/*
	 * Without memory for the request the index stays out of use: better than two users at a
	 * time.
	 */
	__atomic_fetch_add(&m->processes[index].leaving, 1, __ATOMIC_RELAXED);
	post(&m->publisher->remove, index * FG_PIECES + piece, -1);
}

static void queue_init(struct queue *q, struct fg_monitor *m)
{
	q->monitor = m;
	q->tail = &q->head;
	pthread_mutex_init(&q->mutex, NULL);
	pthread_cond_init(&q->wake, NULL);
}

static void queue_stop(struct queue *q)
{
	pthread_mutex_lock(&q->mutex);
	q->stop = true;
	pthread_cond_broadcast(&q->wake);
	pthread_mutex_unlock(&q->mutex);
}

int fg_publisher_start(struct fg_monitor *m)
{
	struct fg_publisher *p = calloc(1, sizeof(*p));
	sigset_t all, old;
	int i, err = 0;

	if (!p)
		return -ENOMEM;
	p->room_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->room_fd < 0 || fg_watch(m, p->room_fd, FG_EV_ROOM, 0)) {
		err = -errno;
		if (p->room_fd >= 0)
			close(p->room_fd);
		free(p);
		return err;
	}
	m->publisher = p;
	queue_init(&p->add, m);
	queue_init(&p->remove, m);
	/* The host program's signals are not for these threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	for (i = 0; i <= ADDERS && !err; i++) {
		err = pthread_create(&p->threads[i], NULL, run, i ? &p->add : &p->remove);
		p->nr_threads += !err;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* One of each is enough. */
	return p->nr_threads >= 2 ? 0 : -err;
}

void fg_publisher_stop(struct fg_monitor *m)
{
	struct fg_publisher *p = m->publisher;

	if (!p)
		return;
	queue_stop(&p->add);
	queue_stop(&p->remove);
	while (p->nr_threads)
		pthread_join(p->threads[--p->nr_threads], NULL);
	m->publisher = NULL;
	close(p->room_fd);
	free(p);
}
