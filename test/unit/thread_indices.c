/* SPDX-License-Identifier: MIT */
/*
 * Indices of threads, seen from inside: none is lost with a thread that ends with a lock, or whose
 * destructors lock until the last; a thread that finds none free asks the kernel for a few of the
 * others, not for all; an id says whether it is of this process; and a child of vfork, which is in
 * its parent's memory, is taken neither for the thread that it runs in nor for a process without
 * threads.
 */
#include "../tools/check.h"

#include <flexguard.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "runtime/thread.h"

enum { THREADS = 300, MORE = 20, DEAD_TID = 0x3ffffff };
static fg_mutex_t shared;
static fg_mutex_t left[THREADS];
static pthread_key_t key;
static long asked, asked_elsewhere;

static void destroy(void *rounds)
{
	fg_mutex_lock(&shared);
	fg_mutex_unlock(&shared);
	if ((intptr_t)rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(key, (void *)((intptr_t)rounds + 1));
}

static void *end_holding(void *mutex)
{
	CHECK_EQ(fg_mutex_lock(mutex), 0);
	CHECK_EQ(pthread_setspecific(key, (void *)1), 0);
	return NULL;
}

/* Its first lock is one of its child of vfork. */
static void *begin_in_child(void *mutex)
{
	pid_t pid = vfork();

	if (!pid) {
		fg_mutex_lock(mutex);
		fg_mutex_unlock(mutex);
		_exit(0);
	}
	check_child(pid);
	CHECK(fg_id_has_slot(fg_self_tls.id));
	CHECK_EQ(fg_thread_tid(&fg_self_tls), syscall(SYS_gettid));
	return NULL;
}

#ifdef __x86_64__
static pid_t parent;

/* In the place of tgkill: only DEAD_TID is dead. */
static void on_tgkill(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	asked++;
	asked_elsewhere += uc->uc_mcontext.gregs[REG_RDI] != parent;
	uc->uc_mcontext.gregs[REG_RAX] = uc->uc_mcontext.gregs[REG_RSI] == DEAD_TID ? -ESRCH : 0;
}

static void count_tgkill(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof code[0], code};
	struct sigaction sa = {.sa_sigaction = on_tgkill, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &sa, NULL);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		check_skip("no seccomp filters");
}

/* As another thread would be set up. */
static uint32_t id_of_another(void)
{
	struct fg_self t = {.only = FG_ONLY_NOT_SET_UP};

	fg_thread_init(&t);
	return t.id;
}

static void exhaust(void)
{
	uint32_t id = 0, dead[3] = {7, 30000, FG_MAX_THREADS - 1};
	pid_t pid;

	parent = getpid();
	count_tgkill();
	while (fg_id_has_slot(id = id_of_another()))
		;
	CHECK_EQ(fg_threads_highest(), FG_MAX_THREADS - 1);
	asked = 0;
	for (int i = 0; i < MORE; i++)
		CHECK(!fg_id_has_slot(id_of_another()));
	CHECK(asked > 0 && asked <= MORE * 256);
	pid = vfork();
	if (!pid) {
		id = id_of_another();
		_exit(fg_id_has_slot(id));
	}
	check_child(pid);
	CHECK_EQ(asked_elsewhere, 0);
	/* They are found in the end. */
	for (int i = 0; i < 3; i++)
		fg_thread_of(dead[i])->tid = DEAD_TID;
	for (int found = 0, tries = 0; found < 3; tries++) {
		CHECK(tries < 2 * (int)FG_MAX_THREADS);
		found += fg_id_has_slot(id_of_another());
	}
}
#else
static void exhaust(void)
{
}
#endif

/* As many generations of an index as it has had here, the last ones; the one before is foreign. */
static void are_of_this_process(void)
{
	for (uint32_t index = 1; index <= fg_threads_highest(); index++) {
		uint32_t gens = fg_thread_of(index)->gens, gen = fg_thread_of(index)->gen;

		CHECK(gens && gens < FG_GEN_MASK);
		for (uint32_t back = 0; back < gens + 2; back++)
			CHECK_EQ(fg_id_is_foreign(((gen - back) & FG_GEN_MASK) << FG_INDEX_BITS |
						  index),
				 back >= gens);
	}
}

static void *say_id(void *arg)
{
	*(uint32_t *)arg = fg_self()->id;
	return NULL;
}

/* In a child of fork those of the parent's threads are foreign, of the one that has forked, too. */
static void none_is_the_parents(void)
{
	uint32_t mine = fg_self()->id, gone;
	pid_t child;

	join(start(say_id, &gone));
	CHECK(!fg_id_is_foreign(gone));
	child = check_fork();
	if (!child) {
		CHECK(fg_self()->id != mine);
		CHECK_EQ(fg_self()->slot->owner_id, fg_self()->id);
		CHECK(!fg_id_is_foreign(fg_self()->id));
		CHECK(fg_id_is_foreign(mine));
		CHECK(fg_id_is_foreign(gone));
		_exit(0);
	}
	check_child(child);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	fg_mutex_init(&shared, FG_MUTEX_NORMAL);
	late_key(&key, destroy);
	for (int i = 0; i < THREADS; i++) {
		fg_mutex_init(&left[i], i % 3);
		join(start(end_holding, &left[i]));
	}
	CHECK(fg_threads_highest() < 20);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(fg_mutex_trylock(&left[i]), EBUSY);
	are_of_this_process();
	none_is_the_parents();
	join(start(begin_in_child, &shared));
	exhaust();
	return 0;
}
