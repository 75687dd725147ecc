/* SPDX-License-Identifier: MIT */
/*
 * The one use is the rseq area of a task, through a flavour of task_struct in which it is the first
 * member.
 */
/*
 * Of the kernels that there have been, one: all fields of vmlinux_min.h, but who may be read stands
 * in mm_struct, and the rseq area is a pointer of the task (by any spelling).
 */
#define bpf_core_field_exists(field) \
	(!__builtin_strstr(#field, "->exec_state") && !__builtin_strstr(#field, "->rseq.usrptr"))
#define bpf_core_field_offset(type, field)	__builtin_offsetof(type, field)
#define bpf_core_type_id_kernel(type)		0
#define BPF_CORE_READ_2(from, a)		((from)->a)
#define BPF_CORE_READ_3(from, a, b)		((from)->a->b)
#define BPF_CORE_READ_OF(from, a, b, name, ...) name
#define BPF_CORE_READ(...) \
	BPF_CORE_READ_OF(__VA_ARGS__, BPF_CORE_READ_3, BPF_CORE_READ_2)(__VA_ARGS__)
#define bpf_core_read(to, size, from) \
	(*(__u64 *)(to) = sim_rseq_area((struct task_struct *)(void *)(from)))
struct task_struct;
static __u64 sim_rseq_area(struct task_struct *task);
