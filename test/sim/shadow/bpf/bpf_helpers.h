/* SPDX-License-Identifier: MIT */
/*
 * What bpf/monitor.bpf.c needs of libbpf and of the kernel, natively; the functions are in
 * monitor.c.
 */
#ifndef SIM_BPF_HELPERS_H
#define SIM_BPF_HELPERS_H

#define SEC(name)
#define __ksym
#define __always_inline	   inline __attribute__((always_inline))
#define __noinline	   __attribute__((noinline))
#define __uint(name, val)  int(*name)[val]
#define __type(name, val)  typeof(val) *name
#define __array(name, val) typeof(val) *name[]
#define barrier_var(v)	   __asm__ volatile("" : "+r"(v))

void *bpf_map_lookup_elem(void *map, const void *key);
void *bpf_task_storage_get(void *map, struct task_struct *task, void *value, __u64 flags);
long bpf_task_storage_delete(void *map, struct task_struct *task);
long bpf_probe_read_user(void *to, __u32 size, const void *from);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_seq_write(void *seq, const void *data, __u32 size);
long bpf_probe_read_kernel(void *to, __u32 size, const void *from);
__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_smp_processor_id(void);
long bpf_loop(__u32 n, void *f, void *arg, __u64 flags);

#endif
