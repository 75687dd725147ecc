/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shipped eBPF program, compiled natively: bpf/monitor.bpf.c between a few kernel functions of
 * our own.
 */
#define thread	bpf_thread /* its names, beside ours */
#define threads bpf_threads
#define cpus	bpf_cpus
#include "bpf/monitor.bpf.c"
#undef thread
#undef threads
#undef cpus

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "sim.h"

#include "runtime/thread.h"
bool monitor_on;
static struct fg_counters page;
static struct kvm_steal_time vcpu[FG_MAX_CPUS];
static struct task_struct task[SIM_THREADS + 2];
static struct task_struct *const idle = &task[SIM_THREADS], *const kthread = &task[SIM_THREADS + 1];
static struct thread_storage {
	struct bpf_thread t;
	bool made;
} storage[SIM_THREADS];
static struct fg_owner owner = {.index = 0, .domain = 1};
static struct cred cred;
/* by_bitmap->flags has this place (who.h) */
static struct mm_struct mm = {.end_code = SUID_DUMP_USER};
static struct mm_struct other_mm = {.end_code = SUID_DUMP_USER};
static void *rseq[SIM_THREADS];
static int this_cpu;

void *bpf_map_lookup_elem(void *map, const void *key)
{
	if (map == &counters)
		return &page;
	if (map == &processes) /* the pieces of the one process */
		return *(const __u32 *)key < FG_PIECES ? fg_chunks[*(const __u32 *)key] : NULL;
	return &((struct fg_chunk *)map)->slot[*(const __u32 *)key];
}

void *bpf_task_storage_get(void *map, struct task_struct *t, void *value, __u64 flags)
{
	struct thread_storage *s = &storage[t - task];

	(void)value;
	if (map == &owners)
		return &owner;
	if (t - task >= SIM_THREADS || (!s->made && !(flags & BPF_LOCAL_STORAGE_GET_F_CREATE)))
		return NULL;
	s->made = true;
	return &s->t;
}

long bpf_task_storage_delete(void *map, struct task_struct *t)
{
	(void)map;
	storage[t - task].made = false;
	return 0;
}

long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	mem_access(from, A_READ);
	memcpy(to, from, size);
	return 0;
}

long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

long bpf_seq_write(void *seq, const void *data, __u32 size)
{
	(void)seq, (void)data, (void)size;
	return 0;
}

void *bpf_rdonly_cast(const void *object, __u32 type)
{
	(void)type;
	return (void *)object;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return NULL;
}
__u64 bpf_ktime_get_ns(void)
{
	return (here ? here->now / NS : 0) + 1000000000;
}
__u32 bpf_get_smp_processor_id(void)
{
	return (__u32)this_cpu;
}
struct task_struct *bpf_task_from_pid(__s32 pid)
{
	return &task[(pid - 1) % SIM_THREADS]; /* tid_of() */
}
void bpf_task_release(struct task_struct *p)
{
	(void)p;
}

long bpf_loop(__u32 n, void *f, void *arg, __u64 flags)
{
	(void)flags;
	for (__u32 i = 0; i < n; i++)
		((long (*)(__u32, void *))f)(i, arg);
	return n;
}

static __u64 sim_rseq_area(struct task_struct *t)
{
	return (__u64)(uintptr_t)rseq[t - task];
}

static struct task_struct *task_at(int id)
{
	return id >= 0 ? &task[id] : id == -1 ? idle : kthread;
}

void mon_setup(int nthreads, int ncpus, int64_t tls_offset)
{
	for (int i = 0; i < nthreads; i++) {
		task[i].pid = i + 1;
		task[i].tgid = 1;
		task[i].group_leader = &task[0];
		task[i].nr_cpus_allowed = ncpus;
		task[i].bpf_storage = (void *)1;
		task[i].real_cred = &cred;
		task[i].mm = &mm;
	}
	idle->flags = kthread->flags = PF_KTHREAD;
	idle->group_leader = idle;
	kthread->group_leader = kthread;
	owner.tls_offset = tls_offset;
	owner.who = (struct fg_who){
	    .mm = (__u64)&mm, .dumpable = SUID_DUMP_USER, .known = FG_KNOWN};
	active = monitor_on;
}

/* Where nobody has registered its process, it has no storage. */
void mon_neighbour(int id, int leader, bool registered)
{
	task[id] = (struct task_struct){.pid = id + 1,
					.tgid = leader + 1,
					.group_leader = &task[leader],
					.nr_cpus_allowed = task[0].nr_cpus_allowed,
					.bpf_storage = registered ? (void *)1 : NULL,
					.real_cred = &cred,
					.mm = registered ? &mm : &other_mm};
}

void mon_exit(int id)
{
	if (!monitor_on)
		return;
	on_exit(&task[id]);
	task[id].flags |= PF_EXITING;
}

void mon_new(int id, int tid)
{
	if (!monitor_on)
		return;
	storage[id] = (struct thread_storage){0};
	task[id].flags &= ~PF_EXITING;
	task[id].pid = tid;
}

void mon_reset(void)
{
	memset(&page, 0, sizeof(page));
}

void mon_machine(void)
{
	page.online_cpus = (uint64_t)M.cpus;
	for (int i = 0; i < M.cpus && i < FG_MAX_CPUS; i++)
		page.near[i] = (__u8)(cpus[i].socket << 5 | cpus[i].cluster % M.clusters % 32);
}
void mon_rseq(int id, void *area)
{
	rseq[id] = area;
}
void *mon_counters(uint64_t *size)
{
	*size = sizeof(page);
	return &page;
}

void mon_tick(void)
{
	struct fg_tick args = {0};

	if (tick(&args)) {
		fputs(
		    "fgsim: the eBPF program shows no heartbeat: it lacks something that the real kernel has\n",
		    stderr);
		__builtin_trap();
	}
}

void mon_vcpu(int cpu, bool off)
{
	if (cpu >= FG_MAX_CPUS)
		return;
	vcpu[cpu].preempted = off;
	vcpu_at[cpu] = (__u64)(uintptr_t)&vcpu[cpu];
}

void mon_look_at_vcpus(void)
{
	struct fg_vcpus args = {.tell = 1};

	vcpus = M.cpus < FG_MAX_CPUS ? (__u32)M.cpus : FG_MAX_CPUS;
	look_at_vcpus(&args);
}

void mon_switch(int cpu, int prev, bool prev_runnable, bool preempt, int next)
{
	if (!monitor_on)
		return;
	this_cpu = cpu;
	task_at(prev)->__state = !prev_runnable;
	task_at(prev)->on_cpu = 0;
	task_at(next)->on_cpu = 1;
	task_at(next)->thread_info.cpu = (__u32)cpu;
	task_at(next)->__state = 0;
	on_switch(preempt, task_at(prev), task_at(next));
}

void mon_wakeup(int id, int cpu)
{
	if (!monitor_on)
		return;
	task[id].thread_info.cpu = (__u32)cpu;
	on_wakeup(&task[id]);
}

void mon_migrate(int id, int to)
{
	if (!monitor_on)
		return;
	on_migrate(&task[id], to);
	task[id].thread_info.cpu = (__u32)to;
}
