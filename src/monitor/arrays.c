// SPDX-License-Identifier: MIT
/*
 * Slot arrays, and whose quota their memory counts against.  The kernel frees one when nobody has
 * it mapped, nor its descriptor, any more: that may be long after the process that it was made for,
 * since children of fork inherit the mapping and descriptors can be sent away.  So a user is
 * charged for an array until the kernel says that it is gone.  It says so by an iterator over all
 * maps (the program `arrays`); to look one up by its id would take CAP_SYS_ADMIN.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"
#include "monitor_types.h"
#include "monitor.skel.h"

/* An array that its process does not use any more, charged to its user still. */
struct fg_left {
	uint32_t id; /* of the map */
	uint32_t slots;
	uid_t uid; /* NOBODY: who has it is not known, it counts for all */
};
#define NOBODY ((uid_t) - 1)

int fg_array_create(uint32_t slots, struct fg_array *a)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	int err;

	a->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, FG_SLOTS_NAME, sizeof(uint32_t),
			       sizeof(struct fg_slot), slots, &opts);
	if (a->fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(a->fd, &info, &size)) {
		err = -errno;
		close(a->fd);
		a->fd = -1;
		return err;
	}
	a->id = info.id;
	a->slots = slots;
	return 0;
}

/* False: no memory. */
static bool room_for_one(struct fg_monitor *m)
{
	uint32_t max = m->max_left ? 2 * m->max_left : 64;
	struct fg_left *more;

	if (m->nr_left < m->max_left)
		return true;
	more = realloc(m->left, max * sizeof(*more));
	if (!more)
		return false;
	m->left = more;
	m->max_left = max;
	return true;
}

static void remember(struct fg_monitor *m, uint32_t id, uint32_t slots, uid_t uid)
{
	/* Without memory to remember it by, its user gets it for nothing. */
	if (!room_for_one(m))
		return;
	m->left[m->nr_left++] = (struct fg_left){.id = id, .slots = slots, .uid = uid};
	m->left_slots += slots;
}

void fg_array_leave(struct fg_monitor *m, struct fg_array *a, uid_t uid)
{
	if (!a->id)
		return;
	remember(m, a->id, a->slots, uid);
	close(a->fd);
	*a = (struct fg_array){.fd = -1};
}

static int compare(const void *a, const void *b)
{
	uint32_t x = ((const struct fg_found *)a)->id, y = ((const struct fg_found *)b)->id;

	return x < y ? -1 : x > y;
}

/* All arrays that are there, sorted by their ids; -errno, and then *found is NULL. */
static ssize_t read_all(struct fg_monitor *m, struct fg_found **found)
{
	size_t size = 0, max = 0;
	char *buf = NULL, *more;
	ssize_t n;
	int fd = bpf_iter_create(bpf_link__fd(m->skel->links.arrays));

	*found = NULL;
	if (fd < 0)
		return -errno;
	for (;;) {
		if (size == max) {
			max = max ? 2 * max : 16384;
			more = realloc(buf, max);
			if (!more) {
				n = -ENOMEM;
				break;
			}
			buf = more;
		}
		n = read(fd, buf + size, max - size);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			n = -errno;
		if (n <= 0)
			break;
		size += (size_t)n;
	}
	close(fd);
	if (n < 0) {
		free(buf);
		return n;
	}
	*found = (struct fg_found *)buf;
	qsort(*found, size / sizeof(**found), sizeof(**found), compare);
	return (ssize_t)(size / sizeof(**found));
}

/* At most 1 % of a CPU, however often it is asked for. */
void fg_arrays_collect(struct fg_monitor *m)
{
	uint64_t before = fg_now_ns();
	struct fg_found *found;
	uint32_t i, kept = 0;
	uint64_t slots = 0;
	ssize_t n;

	if (!m->nr_left || before < m->collect_next_ns)
		return;
	n = read_all(m, &found);
	for (i = 0; i < m->nr_left && n >= 0; i++) {
		struct fg_found key = {.id = m->left[i].id};

		if (!bsearch(&key, found, (size_t)n, sizeof(*found), compare))
			continue;
		slots += m->left[i].slots;
		m->left[kept++] = m->left[i];
	}
	if (n >= 0) {
		m->nr_left = kept;
		m->left_slots = slots;
	}
	free(found);
	m->collect_next_ns = before + 100 * (fg_now_ns() - before);
}

/*
 * What an earlier monitor gave away, and processes still have, is no cgroup's any more that has a
 * limit: it counts against this one's.  So do arrays of a `flexguard run` that is there now.
 */
void fg_arrays_find(struct fg_monitor *m)
{
	struct fg_found *found;
	ssize_t n = read_all(m, &found);

	for (ssize_t i = 0; i < n; i++)
		if (found[i].id != m->empty.id)
			remember(m, found[i].id, found[i].slots, NOBODY);
	free(found);
}

void fg_arrays_charge(const struct fg_monitor *m, uid_t uid, struct fg_usage *u)
{
	for (uint32_t i = 0; i < m->nr_left; i++)
		if (m->left[i].uid == uid) {
			u->left++;
			u->slots += m->left[i].slots;
		}
}
