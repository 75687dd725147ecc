// SPDX-License-Identifier: MIT
/*
 * Where the kernel does not take an array into the map of maps, its process is told so, and may
 * come again.  Where it does not take one out, that index, behind which it stays, is given to
 * nobody else.
 */
#include <bpf/bpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include "harness.h"

static struct monitor m;
static volatile struct {
	uint32_t fails;	 /* all updates do */
	uint32_t failed; /* so many have */
} *kernel;

/* In place of libbpf's, in the monitor. */
int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	static int (*real)(int, const void *, const void *, __u64);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "bpf_map_update_elem");
	if (kernel && kernel->fails && !bpf_obj_get_info_by_fd(fd, &info, &size) &&
	    info.type == BPF_MAP_TYPE_ARRAY_OF_MAPS) {
		kernel->failed++;
		errno = ENOMEM;
		return -ENOMEM;
	}
	return real(fd, key, value, flags);
}

int bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
			 const struct bpf_map_batch_opts *opts)
{
	(void)fd, (void)keys, (void)values, (void)count, (void)opts;
	errno = ENOTSUP;
	return -ENOTSUP;
}

static int hello(void)
{
	const struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	struct fg_welcome welcome = {0};
	int sock = client_connect(m.name), fds[2];

	CHECK(sock >= 0);
	CHECK(!client_exchange(sock, &hello, sizeof(hello), &welcome, fds));
	close(sock);
	if (!welcome.error) {
		close(fds[0]);
		close(fds[1]);
	}
	return welcome.error;
}

/* What a process of its own is answered, which then ends: from then on updates fail, perhaps. */
static int another(bool fails)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		status = -hello();
		if (fails && !status)
			kernel->fails = 1;
		_exit(status);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return -WEXITSTATUS(status);
}

int main(void)
{
	const struct fg_monitor_config cfg = {.max_processes = 1};

	test_begin();
	kernel = mmap(NULL, sizeof(*kernel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(kernel != MAP_FAILED);
	monitor_start(&m, &cfg);
	kernel->fails = 1;
	CHECK(another(false) == -EIO);
	kernel->fails = kernel->failed = 0;
	WAIT_FOR(!another(true)); /* when the index of the one above is free */
	WAIT_FOR(kernel->failed);
	for (int i = 0; i < 20; i++) {
		CHECK(another(false) == -EUSERS);
		usleep(10000);
	}
	monitor_stop(&m);
	return 0;
}
