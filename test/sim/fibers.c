/* SPDX-License-Identifier: MIT */
/*
 * Fibers in the place of threads.  Each borrows the thread-local storage and the rseq area of a
 * host thread that is asleep for ever: a switch of fibers switches the thread pointer as well, so
 * __thread variables and rseq's cpu_id work in the shipped code as they are.
 */
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"

static void *main_sp;
static uint64_t main_fs;

void fiber_switch(void **save, void *to);
__asm__(".globl fiber_switch\nfiber_switch:\n"
	"push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
	"mov %rsp, (%rdi); mov %rsi, %rsp\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret\n");

/* -mfsgsbase.  Nothing in between may use thread-local storage. */
__attribute__((noinline)) void fiber_run(struct thread *t)
{
	__builtin_ia32_wrfsbase64(t->fs);
	fiber_switch(&main_sp, t->sp);
	__builtin_ia32_wrfsbase64(main_fs);
}

void sim_yield(void)
{
	kernel_stats.fibers++;
	fiber_switch(&here->cur->sp, main_sp);
}

static void fiber_main(void)
{
	struct thread *t = here->cur;

	t->body(t);
	t->state = T_DONE;
	sim_yield();
}

static sem_t parked;

static void *lender(void *arg)
{
	struct thread *t = arg;
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);

	/* The kernel shall not write to it any more. */
	syscall(SYS_rseq, area, 32, 1 /* unregister */, 0x53053053);
	t->fs = __builtin_ia32_rdfsbase64();
	t->rseq_cpu = &area->cpu_id;
	mon_rseq(t->id, area);
	sem_post(&parked);
	for (;;)
		pause();
	return NULL;
}

void fibers_setup(int n)
{
	pthread_attr_t attr;
	char *stacks = mmap(NULL, (size_t)n * STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (stacks == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	mem_stacks(stacks, (uint64_t)n * STACK);
	main_fs = __builtin_ia32_rdfsbase64();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	sem_init(&parked, 0, 0);
	for (int i = 0; i < n; i++) {
		pthread_t p;

		threads[i].id = i;
		threads[i].stack = stacks + (size_t)i * STACK;
		if (pthread_create(&p, &attr, lender, &threads[i])) {
			perror("pthread_create");
			exit(1);
		}
		sem_wait(&parked);
	}
}

/* The program's thread-local storage: its image, and how far below the thread pointer it is. */
static struct {
	const void *image;
	size_t filled, size, below;
} tls;

static int find_tls(struct dl_phdr_info *o, size_t size, void *arg)
{
	(void)size, (void)arg;
	for (int i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];

		if (p->p_type != PT_TLS)
			continue;
		tls.image = (const void *)(o->dlpi_addr + p->p_vaddr);
		tls.filled = p->p_filesz;
		tls.size = p->p_memsz;
		tls.below = (p->p_memsz + p->p_align - 1) & -p->p_align;
	}
	return 1; /* the first one is the program itself */
}

void fiber_new_tls(struct thread *t)
{
	char *mine;

	if (!tls.size)
		dl_iterate_phdr(find_tls, NULL);
	mine = (char *)t->fs - tls.below;
	memcpy(mine, tls.image, tls.filled);
	memset(mine + tls.filled, 0, tls.size - tls.filled);
}

void fiber_begin(struct thread *t, void (*body)(struct thread *))
{
	uint64_t *sp = (uint64_t *)((char *)t->stack + STACK - 64);

	t->body = body;
	*--sp = 0;
	*--sp = (uint64_t)fiber_main;
	sp -= 6;
	t->sp = sp;
}
