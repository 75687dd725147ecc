// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where an object of the kernel lies: of a process, by its number, or of a file that this process
 * has opened; and from there along pointers.  The loader says which members these are, by the
 * kernel's type information; a pointer that leads nowhere ends it.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "object.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct task_struct___object {
	int pid, tgid;
} __attribute__((preserve_access_index));

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fg_object_way);
} way SEC(".maps");

static __always_inline void follow(struct fg_object_way *w, __u64 at)
{
	w->met = 1;
	for (__u32 i = 0; i < FG_OBJECT_STEPS; i++) {
		__u64 next = 0;

		if (i >= w->steps)
			break;
		if (bpf_probe_read_kernel(&next, sizeof(next), (void *)(at + w->offset[i])))
			next = 0;
		if (!next) {
			at = 0;
			break;
		}
		at = next;
	}
	w->at = at;
}

/* The iterator shows the threads of one process; its first one is the process. */
SEC("iter/task")
int of_task(struct bpf_iter__task *ctx)
{
	struct task_struct___object *task = (void *)ctx->task;
	__u32 zero = 0;
	struct fg_object_way *w = bpf_map_lookup_elem(&way, &zero);

	if (task && w && BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid))
		follow(w, (__u64)task);
	return 0;
}

SEC("iter/task_file")
int of_file(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	__u32 zero = 0, fd = ctx->fd;
	struct fg_object_way *w = bpf_map_lookup_elem(&way, &zero);

	if (file && w && fd == w->fd)
		follow(w, (__u64)file);
	return 0;
}
