// SPDX-License-Identifier: MIT
/* What the monitor asks its eBPF programs for, besides what they do at each switch. */
#include <errno.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"
#include "monitor/iterator.h"
#include "monitor_types.h"
#include "monitor.skel.h"

static int run_program(const struct bpf_program *prog, void *args, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = size);
	int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);

	if (err)
		return err < 0 ? err : -err;
	return opts.retval == FG_TICK_BLIND ? -ENOTSUP : opts.retval ? -EIO : 0;
}

int fg_monitor_reset(struct fg_monitor *m)
{
	return run_program(m->skel->progs.reset, NULL, 0);
}

/* Ticks between two looks how many CPUs there are: it reads a file.  Not varied. */
#define ONLINE_EVERY 16

int fg_monitor_tick(struct fg_monitor *m, uint64_t generation)
{
	struct fg_tick args = {.generation = generation};

	if (m->ticks++ % ONLINE_EVERY == 0)
		args.online_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);

	return run_program(m->skel->progs.tick, &args, sizeof(args));
}

int fg_monitor_look_at_vcpus(struct fg_monitor *m, bool tell, uint64_t *steal_ns)
{
	struct fg_vcpus args = {.tell = tell};
	int err = run_program(m->skel->progs.look_at_vcpus, &args, sizeof(args));

	*steal_ns = args.steal_ns;
	return err;
}

int fg_monitor_audit(struct fg_monitor *m)
{
	return fg_run_iterator(bpf_link__fd(m->skel->links.audit));
}

uid_t fg_monitor_account(struct fg_monitor *m, int sock, uid_t otherwise, bool *sees_all)
{
	m->skel->bss->peer_sock = (uint32_t)sock;
	*sees_all = false;
	if (run_program(m->skel->progs.identify, NULL, 0))
		return otherwise;
	*sees_all = m->skel->bss->peer_sees_all;
	return m->skel->bss->peer_account;
}

/* The part of union bpf_iter_link_info (linux/bpf.h, 6.1) that is for tasks. */
struct iter_task {
	uint32_t tid, pid, pid_fd;
};

/* An iterator over the peer's threads, or -errno. */
static int walk_threads(const struct bpf_program *program, const struct fg_peer *peer)
{
	struct iter_task threads = {.pid_fd = (uint32_t)peer->pidfd};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = (union bpf_iter_link_info *)&threads,
		    .iter_info_len = sizeof(threads));
	int fd, link = bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER, &opts);

	if (link < 0)
		return -errno;
	fd = bpf_iter_create(link);
	if (fd < 0)
		fd = -errno;
	close(link); /* the iterator holds it */
	return fd;
}

int fg_monitor_prove(struct fg_monitor *m, struct fg_peer *peer, bool write)
{
	char nothing[8];
	ssize_t n;

	if (peer->walk < 0) {
		peer->walk = walk_threads(m->skel->progs.prove, peer);
		if (peer->walk < 0)
			return peer->walk;
	}
	m->skel->bss->peer_sock = (uint32_t)peer->sock;
	m->skel->bss->prove_write = write;
	m->skel->bss->prove_left = write ? 1 : FG_PROVE_AT_ONCE;
	m->skel->bss->proved = 0;
	do
		n = read(peer->walk, nothing, sizeof(nothing));
	while (n < 0 && errno == EINTR);
	if (__atomic_load_n(&m->skel->bss->proved, __ATOMIC_ACQUIRE))
		return 0;
	return n >= 0 ? -EACCES : errno == EAGAIN ? -EINPROGRESS : -errno;
}

int fg_monitor_equip(struct fg_monitor *m, const struct fg_peer *peer)
{
	int fd = walk_threads(m->skel->progs.equip, peer);
	char nothing[8];
	ssize_t n;

	if (fd < 0)
		return fd;
	m->skel->bss->equip_left = FG_PROVE_AT_ONCE;
	do
		n = read(fd, nothing, sizeof(nothing));
	while (n < 0 && errno == EINTR);
	n = n < 0 && errno != EAGAIN ? -errno : 0;
	close(fd);
	return (int)n;
}
