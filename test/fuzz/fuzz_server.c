/* SPDX-License-Identifier: MIT */
/*
 * What clients send to the monitor: any packets, from several connections.  The
 * kernel's part is played by process 0, which registers, or by a refusal.  Each
 * packet gets at most one answer, a whole one; all is closed at the end.
 *
 * Input: 32 bytes for process 0, then packets: a byte (length, 255: hang up), that many bytes.
 */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "monitor/internal.h"

/* monitor/client.c names this map only to pass its descriptor on. */
struct bpf_map;
int bpf_map__fd(const struct bpf_map *map);
int libbpf_num_possible_cpus(void);

static int map_fd = -1;

int bpf_map__fd(const struct bpf_map *map)
{
	(void)map;
	return map_fd;
}

int libbpf_num_possible_cpus(void)
{
	return 2;
}

int fg_watch(struct fg_monitor *m, int fd, enum fg_event kind, uint32_t index)
{
	(void)m, (void)fd, (void)kind, (void)index;
	return 0;
}

static bool refuse;

int fg_process_register(struct fg_monitor *m, struct fg_peer *peer, const struct fg_hello *hello,
			struct fg_welcome *welcome, int *slots_fd)
{
	(void)m;
	FUZZ_CHECK(peer->pid == getpid() && peer->pidfd >= 0);
	FUZZ_CHECK(hello->magic == FG_PROTO_MAGIC && hello->abi == FG_ABI_VERSION &&
		   hello->from % FG_PIECE == 0);
	if (refuse)
		return -EDQUOT;
	welcome->slots = 32;
	*slots_fd = dup(map_fd);
	return 0;
}

bool fg_process_is_leaving(const struct fg_monitor *m, uint32_t index)
{
	(void)m, (void)index;
	return false;
}

bool fg_publisher_has_room(struct fg_monitor *m)
{
	(void)m;
	return true;
}

uid_t fg_monitor_account(struct fg_monitor *m, int sock, uid_t otherwise, bool *sees_all)
{
	(void)m, (void)sock;
	*sees_all = false;
	return otherwise;
}

static void check_answer(int fd)
{
	static struct fg_report report;
	char control[256];
	struct iovec iov = {&report, sizeof(report)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	const struct fg_welcome *welcome = (const void *)&report;
	int fds[8], nr = 0;

	if (c) {
		nr = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), (size_t)nr * sizeof(int));
	}
	if (n > 0 && report.magic == FG_QUERY_MAGIC) {
		FUZZ_CHECK(!nr && report.count <= FG_REPORT_PROCESSES);
		FUZZ_CHECK((size_t)n == offsetof(struct fg_report, process[report.count]));
	} else if (n > 0) {
		FUZZ_CHECK(n == sizeof(*welcome) && welcome->magic == FG_PROTO_MAGIC);
		FUZZ_CHECK(nr == (welcome->error ? 0 : 2));
	}
	while (nr)
		close(fds[--nr]);
	FUZZ_CHECK(recv(fd, &report, sizeof(report), MSG_DONTWAIT) <= 0);
}

static void connection(struct fg_monitor *m, struct input *in)
{
	uint8_t length = input_byte(in), packet[255];
	int pair[2];

	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	m->clients[3] = (struct fg_client){.fd = pair[0],
					   .walk = -1,
					   .uid = length & 1 ? 0 : 12345,
					   .euid = length & 1 ? 0 : 12345,
					   .sees_all = length & 2};
	m->nr_clients = 1;
	fg_pass_credentials(pair[0]);
	input_take(in, packet, length);
	if (length != 255)
		send(pair[1], packet, length, 0);
	else
		shutdown(pair[1], SHUT_WR);
	fg_client_ready(m, 3);
	while (fg_client_serve(m))
		;
	FUZZ_CHECK(m->clients[3].fd < 0 && !m->nr_clients);
	FUZZ_CHECK(m->nr_unread <= 1);
	check_answer(pair[1]);
	fg_unread_tick(m); /* it has been read, whatever it was */
	FUZZ_CHECK(!m->nr_unread);
	close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fg_counters counters;
	static struct fg_slot slots[64];
	static struct fg_process processes[600];
	static struct fg_monitor m;
	struct input in = {data, size};
	uint8_t head[32];
	int before;

	if (map_fd < 0)
		map_fd = memfd_create("map", MFD_CLOEXEC);
	before = open_files();
	input_take(&in, head, sizeof(head));
	refuse = head[0] & 1;
	memset(&m, 0, sizeof(m));
	m.skel = (struct monitor_bpf *)slots; /* never looked into but for an address */
	m.counters = &counters;
	m.cfg.max_processes = head[1] * 2 + 1;
	m.epoll_fd = -1;
	if (head[4] & 1)
		memset(m.cfg.secret, head[5] | 1, FG_SECRET);
	m.max_unread = 1 + head[3] % 2;
	m.max_clients = FG_MAX_CLIENTS;
	m.processes = processes;
	for (uint32_t i = 0; i < m.cfg.max_processes; i++)
		processes[i] = (struct fg_process){
		    .pidfd = i % 3 ? -1 : 1, .uid = i & 4 ? 12345 : 0, .slots = 64, .map = slots};
	memcpy(slots, head, sizeof(head));
	memset(&slots[1], head[2], sizeof(slots[1]));
	for (uint32_t i = 0; i < FG_MAX_CLIENTS; i++)
		m.clients[i].fd = -1;
	while (in.left)
		connection(&m, &in);
	fg_client_expire(&m, ~0ull);
	for (uint32_t i = 0; i < m.cfg.max_processes; i++)
		free(processes[i].last);
	FUZZ_CHECK(open_files() == before);
	return 0;
}
