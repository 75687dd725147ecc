/* SPDX-License-Identifier: MIT */
/*
 * System V semaphores, the futex paper's baseline: every operation is a system call.
 *
 * A mutex gets a semaphore of one of the process's sets at its first use, and gives it back when it
 * is destroyed.  A child of fork() has sets of its own.  They are removed at exit, unless something
 * in them is held; a mutex of those that is used later, by a destructor of another library, gets a
 * semaphore of another set.  What is left then, and sets of processes that were killed, or still
 * had threads, are removed by the next one with this lock that starts or ends in the same pid
 * namespace: in another one, or without /proc, nobody knows who lives.  A
 * process-shared mutex may be used first by a process that ends before others: its set lives as
 * long as the process group.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/mutex.h"
#include "zoo/zoo.h"

/*
 * Semaphores of the process: 256 sets of 1018, which is what a key has room for, and far below
 * SEMMSL (32,000 in Linux).  Behind them the pid namespace of the owner, 15 bits each.
 */
#define SETS	256u
#define IN_SET	1018u
#define OF_NS	3u
#define NS_BITS 15
#define ALL	(IN_SET + OF_NS) /* no round number: with key and mode, the mark of a set of ours */

/* A key names its owner, a process or a group: a pid has 22 bits. */
#define KEY(pid, set) ((key_t)(0x40000000u | (uint32_t)(pid) << 8 | (set)))
#define KEY_PID(key)  ((pid_t)((uint32_t)(key) >> 8 & 0x3fffff))
#define KEY_OF_GROUP  ((key_t)0x80000000u)

/*
 * Each operation checks the process's present credentials.  Those of root's programs change, which
 * drop privileges, and a process-shared mutex may have several users.  So their sets are for
 * everybody, also for who would undo their exclusion; others' are not.
 */
#define FOR_ALL	   0666
#define FOR_MYSELF 0600

/* What a mutex has: id of the set + 1, number in the set. */
#define NAME(set, number) ((uint64_t)((set) + 1) << 32 | (number))

struct pool {
	uint32_t used; /* semaphores given out, but for those in `free` */
	uint32_t frees;
	int set[SETS];
	uint32_t free[SETS * IN_SET];
};
static struct pool own, shared;
static uint32_t guard;	   /* of both */
static uint64_t namespace; /* 0: unknown */
static bool ended;	   /* sets of `own` that nobody holds have been removed */

static void enter(void)
{
	while (fg_xchg_acquire(&guard, 1))
		zoo_yield();
}

static void leave(void)
{
	fg_store_release(&guard, 0);
}

static void remove_sets(struct pool *p)
{
	for (uint32_t i = 0; i * IN_SET < p->used; i++)
		semctl(p->set[i], 0, IPC_RMID);
	p->used = p->frees = 0;
}

static uint64_t pid_namespace(void)
{
	struct stat s;

	return stat("/proc/self/ns/pid", &s) ? 0 : s.st_ino;
}

static void child_of_fork(void)
{
	guard = own.used = own.frees = shared.used = shared.frees = 0;
	ended = false;
	namespace = pid_namespace(); /* a new one, after unshare() */
}

static int ns_part(uint32_t i)
{
	return (int)(namespace >> i * NS_BITS & ((1u << NS_BITS) - 1));
}

/* Only there does the pid in its key tell who has it. */
static bool is_of_my_namespace(int id)
{
	for (uint32_t i = 0; i < OF_NS; i++)
		if (semctl(id, (int)(IN_SET + i), GETVAL) != ns_part(i))
			return false;
	return namespace != 0;
}

static int create(key_t key, int mode)
{
	int id = semget(key, ALL, IPC_CREAT | IPC_EXCL | mode);

	for (uint32_t i = 0; id >= 0 && i < OF_NS; i++)
		semctl(id, (int)(IN_SET + i), SETVAL, ns_part(i));
	return id;
}

static bool is_left_behind(int id, const struct semid_ds *ds)
{
	key_t key = ds->sem_perm.__key, of_group = key & KEY_OF_GROUP;
	int mode = ds->sem_perm.mode & 0777;
	pid_t pid = KEY_PID(key);

	return key == (KEY(pid, key & 0xff) | of_group) && ds->sem_nsems == ALL &&
	       (mode == FOR_ALL || mode == FOR_MYSELF) && ds->sem_perm.uid == geteuid() &&
	       is_of_my_namespace(id) && pid != getpid() && kill(of_group ? -pid : pid, 0) &&
	       errno == ESRCH;
}

static void sweep(void)
{
	struct semid_ds ds;
	struct seminfo info;
	int highest = semctl(0, 0, SEM_INFO, &info), id;

	for (int i = 0; i <= highest; i++) {
		id = semctl(i, 0, SEM_STAT, &ds);
		if (id >= 0 && is_left_behind(id, &ds))
			semctl(id, 0, IPC_RMID);
	}
}

static bool has_other_threads(void)
{
	struct stat s;

	if (stat("/proc/self/task", &s))
		return !__libc_single_threaded; /* or has had them */
	return s.st_nlink > 3;			/* two are `.` and `..` */
}

/* Of the first `n` semaphores of a set. */
static bool is_held(int id, uint32_t n)
{
	unsigned short value[ALL];

	if (semctl(id, 0, GETALL, value))
		return false;
	while (n)
		if (!value[--n])
			return true;
	return false;
}

/* Destructors of other libraries come later, and may lock: they find what has been left here. */
static void remove_free_sets(struct pool *p)
{
	uint32_t left = p->used;

	for (uint32_t i = 0; left; i++) {
		uint32_t n = left < IN_SET ? left : IN_SET;

		left -= n;
		if (is_held(p->set[i], n))
			continue;
		semctl(p->set[i], 0, IPC_RMID);
		p->set[i] = -1;
	}
	/* No more of these: the next mutex begins a set. */
	p->used += (IN_SET - p->used % IN_SET) % IN_SET;
	p->frees = 0;
	ended = true;
}

/* A thread that goes on while the process ends would find that its lock has gone. */
__attribute__((destructor)) static void at_exit(void)
{
	if ((!own.used && !shared.used) || has_other_threads())
		return;
	remove_free_sets(&own);
	if (shared.frees == shared.used) /* all destroyed */
		remove_sets(&shared);
	sweep();
}

static const char *start(void)
{
	static bool started;
	int id = semget(IPC_PRIVATE, 1, 0600);

	if (id < 0)
		return "this system gives out no semaphore sets (semget(2); see "
		       "/proc/sys/kernel/sem)";
	semctl(id, 0, IPC_RMID);
	if (!started) {
		started = true;
		namespace = pid_namespace();
		sweep();
		pthread_atfork(NULL, NULL, child_of_fork);
	}
	return NULL;
}

#define REMOVED "somebody has removed the semaphores (ipcrm?)"

static void fail(const char *why)
{
	dprintf(STDERR_FILENO, "flexguard: --lock sysv: %s\n", why);
	_exit(125);
}

/* Of the sets of the first `used` semaphores. */
static bool is_own(int id, uint32_t used)
{
	for (uint32_t i = 0; i * IN_SET < used; i++)
		if (own.set[i] == id)
			return true;
	return false;
}

static bool may_change_user(void)
{
	uid_t real = 0, effective = 0, saved = 0;

	fg_syscall6(SYS_getresuid, (long)&real, (long)&effective, (long)&saved, 0, 0, 0);
	return !real || !effective || !saved;
}

static int new_set(void)
{
	int id = -1, old, mode = may_change_user() ? FOR_ALL : FOR_MYSELF;

	for (uint32_t i = 0; i < SETS && id < 0; i++) {
		key_t key = KEY(getpid(), i);

		id = create(key, mode);
		if (id >= 0 || errno != EEXIST)
			break;
		/* mine, before I called exec, or of one whose pid I have now */
		old = semget(key, ALL, FOR_MYSELF);
		if (old >= 0 && !is_own(old, own.used - 1) && is_of_my_namespace(old)) {
			semctl(old, 0, IPC_RMID);
			id = create(key, mode);
		}
	}
	return id;
}

/* Other processes of the group have some of these keys. */
static int new_shared_set(void)
{
	int id = -1;

	for (uint32_t i = 0; i < SETS && id < 0; i++) {
		id = create(KEY(getpgrp(), i) | KEY_OF_GROUP, FOR_ALL);
		if (id < 0 && errno != EEXIST)
			break;
	}
	return id;
}

static uint64_t get(struct pool *p)
{
	uint32_t n;
	int *set;

	enter();
	n = p->frees ? p->free[--p->frees] : p->used++;
	set = &p->set[n / IN_SET];
	if (n >= SETS * IN_SET)
		fail("a process has no more than 260,608 mutexes with this lock");
	if (n % IN_SET == 0 && n + 1 == p->used)
		*set = p == &shared ? new_shared_set() : new_set();
	if (*set < 0)
		fail("no more semaphores (/proc/sys/kernel/sem)");
	semctl(*set, (int)(n % IN_SET), SETVAL, 1);
	leave();
	return NAME(*set, n % IN_SET);
}

/* One that another process gave out stays lost until its set goes. */
static void put(struct pool *p, uint64_t name)
{
	uint32_t number = name & 0xffff;
	int set = (int)(name >> 32) - 1;

	enter();
	for (uint32_t i = 0; i * IN_SET < p->used; i++)
		if (p->set[i] == set && p->frees < SETS * IN_SET)
			p->free[p->frees++] = i * IN_SET + number;
	leave();
}

static struct pool *pool_of(const struct zoo_mutex *m)
{
	return fg_load_relaxed(&m->kind) & FG_KIND_ZOO_SHARED ? &shared : &own;
}

static uint64_t name_of(struct zoo_mutex *m)
{
	uint64_t name = __atomic_load_n(&m->s.u64[0], __ATOMIC_ACQUIRE), fresh;

	if (fg_likely(name))
		return name;
	fresh = get(pool_of(m));
	if (__atomic_compare_exchange_n(&m->s.u64[0], &name, fresh, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fresh;
	put(pool_of(m), fresh);
	return name;
}

/* Whether its semaphore has gone with the sets at the end, free: it gets another one. */
static bool begins_again(struct zoo_mutex *m, uint64_t name)
{
	if (!ended || pool_of(m) != &own || is_own((int)(name >> 32) - 1, own.used))
		return false;
	__atomic_compare_exchange_n(&m->s.u64[0], &name, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	return true;
}

/* 0 or -errno. */
static int operate(struct zoo_mutex *m, short by, short flags, const struct timespec *timeout)
{
	uint64_t name;
	int r;

	do {
		struct sembuf op = {.sem_op = by, .sem_flg = flags};

		name = name_of(m);
		op.sem_num = (unsigned short)(name & 0xffff);
		r = (int)fg_syscall6(SYS_semtimedop, (long)(name >> 32) - 1, (long)&op, 1,
				     (long)timeout, 0, 0);
	} while ((r == -EINVAL || r == -EIDRM) && begins_again(m, name));
	return r;
}

static bool trylock(struct zoo_mutex *m)
{
	int r = operate(m, -1, IPC_NOWAIT, NULL);

	if (r && r != -EAGAIN)
		fail(REMOVED);
	return !r;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct timespec left;
	uint64_t ns;
	int r;

	do {
		ns = fg_deadline_left(deadline);
		left = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
		r = operate(m, -1, 0, deadline ? &left : NULL);
		if (r == -EAGAIN)
			return false;
	} while (r == -EINTR);
	if (r)
		fail(REMOVED);
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	operate(m, 1, 0, NULL);
}

static void end(struct zoo_mutex *m)
{
	if (m->s.u64[0])
		put(pool_of(m), m->s.u64[0]);
	m->s.u64[0] = 0;
}

const struct zoo_lock zoo_sysv = {.lock = lock,
				  .trylock = trylock,
				  .unlock = unlock,
				  .untried = true,
				  .start = start,
				  .end = end};
