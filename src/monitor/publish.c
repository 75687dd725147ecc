// SPDX-License-Identifier: MIT
/*
 * Puts slot arrays into the map of maps.  The kernel ends each such update with
 * a wait for all programs that may still see the old entry (synchronize_rcu):
 * 5 to 20 ms (2-CPU VM, Linux 6.18).  No client should wait for that, nor for
 * the one before it, so a thread of its own does it, and takes all that has come
 * together meanwhile in one update.  The client has its answer by then; the
 * monitor sees its threads that little later.
 *
 * Requests are done in the order in which they came, so an index may be asked
 * for again while the removal of its last user is still waiting.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"
#include "monitor_types.h"
#include "monitor.skel.h"

#define BATCH 64

struct request {
	struct request *next;
	uint32_t index;
	int array_fd; /* -1: remove */
	int pidfd;    /* whose; -1: nobody's any more */
	struct fg_owner owner;
};

struct fg_publisher {
	pthread_t thread;
	pthread_mutex_t mutex; /* guards the rest */
	pthread_cond_t wake;
	struct request *head, **tail;
	bool stop;
};

/*
 * Removed means replaced by an empty array: an update can be one of many, and
 * this map type has no batched delete.
 */
static void update_arrays(struct fg_monitor *m, const uint32_t *index, const int *fd, uint32_t n)
{
	int map = bpf_map__fd(m->skel->maps.processes);
	uint32_t i, done = n;

	if (!bpf_map_update_batch(map, index, fd, &done, NULL))
		return;
	/* Not supported, or one of them failed: one by one, then the others still work. */
	for (i = 0; i < n; i++)
		bpf_map_update_elem(map, &index[i], &fd[i], BPF_ANY);
}

static void publish(struct fg_monitor *m, struct request *list)
{
	int owners = bpf_map__fd(m->skel->maps.owners);
	uint32_t index[BATCH], n;
	struct request *r, *first;
	int fd[BATCH];

	while (list) {
		first = list;
		for (n = 0; list && n < BATCH; list = list->next, n++) {
			index[n] = list->index;
			fd[n] = list->array_fd >= 0 ? list->array_fd : m->empty_fd;
		}
		update_arrays(m, index, fd, n);
		/* Only now: until then the index may still lead to the array of its last user. */
		while (first != list) {
			r = first;
			first = first->next;
			if (r->pidfd >= 0) {
				bpf_map_update_elem(owners, &r->pidfd, &r->owner, BPF_ANY);
				close(r->pidfd);
			}
			if (r->array_fd >= 0)
				close(r->array_fd);
			free(r);
		}
	}
}

static void *run(void *arg)
{
	struct fg_monitor *m = arg;
	struct fg_publisher *p = m->publisher;
	struct request *list;

	pthread_mutex_lock(&p->mutex);
	while (p->head || !p->stop) {
		if (!p->head) {
			pthread_cond_wait(&p->wake, &p->mutex);
			continue;
		}
		list = p->head;
		p->head = NULL;
		p->tail = &p->head;
		pthread_mutex_unlock(&p->mutex);
		publish(m, list);
		pthread_mutex_lock(&p->mutex);
	}
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

static int post(struct fg_monitor *m, struct request *r)
{
	struct fg_publisher *p = m->publisher;

	pthread_mutex_lock(&p->mutex);
	*p->tail = r;
	p->tail = &r->next;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->mutex);
	return 0;
}

int fg_publish(struct fg_monitor *m, uint32_t index, int array_fd, int pidfd, const struct fg_owner *owner)
{
	struct request *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	/* Descriptors of its own: the caller may close its at any time. */
	r->index = index;
	r->owner = *owner;
	r->array_fd = fcntl(array_fd, F_DUPFD_CLOEXEC, 3);
	r->pidfd = r->array_fd < 0 ? -1 : fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
	if (r->pidfd < 0) {
		err = -errno;
		if (r->array_fd >= 0)
			close(r->array_fd);
		free(r);
		return err;
	}
	return post(m, r);
}

int fg_unpublish(struct fg_monitor *m, uint32_t index)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->index = index;
	r->array_fd = r->pidfd = -1;
	return post(m, r);
}

int fg_publisher_start(struct fg_monitor *m)
{
	struct fg_publisher *p = calloc(1, sizeof(*p));
	sigset_t all, old;
	int err;

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->tail = &p->head;
	m->publisher = p;
	/* The host program's signals are not for this thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&p->thread, NULL, run, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		m->publisher = NULL;
		free(p);
	}
	return -err;
}

void fg_publisher_stop(struct fg_monitor *m)
{
	struct fg_publisher *p = m->publisher;

	if (!p)
		return;
	pthread_mutex_lock(&p->mutex);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->mutex);
	pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->mutex);
	pthread_cond_destroy(&p->wake);
	m->publisher = NULL;
	free(p);
}
