/* SPDX-License-Identifier: MIT */
/*
 * A thread of SCHED_DEADLINE that waits for a semaphore, a condition variable, a barrier, or
 * something done once never yields: it would lose the rest of its period.  A filter that nobody
 * sees come traps the yields.
 */
#include "../tools/asleep.h"
#include "../tools/deadline.h"
#include "../tools/unseen_filter.h"

#include <semaphore.h>

#ifdef __x86_64__
enum { ROUNDS = 3, KINDS = 4 };

static sem_t sem;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once[ROUNDS];
static int tid, waits, goes, begun, ended, yields;

static void trapped(int sig)
{
	(void)sig;
	ADD(yields, 1);
}

static void trap_yields(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sigaction sa;

	memset(&sa, 0, sizeof sa);
	sa.sa_handler = trapped;
	CHECK_EQ(sigaction(SIGSYS, &sa, NULL), 0);
	install_unseen(code, sizeof(code) / sizeof(code[0]), 0);
}

static __thread int round_of_routine;

static void routine(void)
{
	ADD(begun, 1);
	UNTIL(LOAD(ended) > round_of_routine);
}

static void wait_for(int kind, int round)
{
	switch (kind) {
	case 0: CHECK_EQ(sem_wait(&sem), 0); break;
	case 1:
		lock(&m);
		while (!goes)
			CHECK_EQ(pthread_cond_wait(&c, &m), 0);
		goes = 0;
		unlock(&m);
		break;
	case 2: pthread_barrier_wait(&barrier); break;
	default: CHECK_EQ(pthread_once(&once[round], routine), 0);
	}
}

static void *waiter(void *deadline)
{
	STORE(tid, (int)syscall(SYS_gettid));
	if (deadline && !become_deadline())
		check_skip("no right to SCHED_DEADLINE");
	for (int i = 0; i < ROUNDS * KINDS; i++) {
		STORE(waits, LOAD(waits) + 1);
		wait_for(i % KINDS, i / KINDS);
	}
	return NULL;
}

static void *does_it(void *round)
{
	round_of_routine = (int)(intptr_t)round;
	CHECK_EQ(pthread_once(&once[round_of_routine], routine), 0);
	return NULL;
}

static void let_go(int kind)
{
	switch (kind) {
	case 0: CHECK_EQ(sem_post(&sem), 0); break;
	case 1:
		lock(&m);
		goes = 1;
		CHECK_EQ(pthread_cond_signal(&c), 0);
		unlock(&m);
		break;
	case 2: pthread_barrier_wait(&barrier); break;
	default: ADD(ended, 1);
	}
}

static int yields_of(void *deadline)
{
	pthread_t t, other[ROUNDS];
	int before = LOAD(yields);

	STORE(begun, 0);
	STORE(ended, 0);
	STORE(waits, 0);
	for (int i = 0; i < ROUNDS; i++) {
		once[i] = PTHREAD_ONCE_INIT;
		other[i] = start(does_it, (void *)(intptr_t)i);
	}
	UNTIL(LOAD(begun) == ROUNDS);
	t = start(waiter, deadline);
	for (int i = 0; i < ROUNDS * KINDS; i++) {
		UNTIL(LOAD(waits) == i + 1);
		UNTIL(is_asleep(LOAD(tid)));
		let_go(i % KINDS);
	}
	join(t);
	for (int i = 0; i < ROUNDS; i++)
		join(other[i]);
	return LOAD(yields) - before;
}

int main(int argc, char **argv)
{
	static int deadline;

	(void)argc;
	check_begin(argv[0], 60);
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
	trap_yields();
	CHECK_EQ(yields_of(&deadline), 0);
	if (getenv("CHECK_PRELOAD") && !yields_of(NULL))
		check_say("no other thread yields here either");
	return 0;
}
#else
int main(void)
{
	check_skip("a system call that nobody sees: not on this CPU");
}
#endif
