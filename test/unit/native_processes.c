/* SPDX-License-Identifier: MIT */
/*
 * Process-shared objects between two processes that map them at different
 * addresses, by mmap and by shmat; the other process runs on the same locks as
 * this one, or on glibc's alone.
 */
#include "../tools/check.h"
#include <sys/mman.h>
#include <sys/shm.h>

enum { ROUNDS = 3000, TURNS = 100, SIZE = 65536 };
enum kind { NORMAL, RECURSIVE, ERRORCHECK, ADAPTIVE, ROBUST, ROBUST_RECURSIVE, KINDS };
enum order { NONE, LOCK, TRYLOCK, TIMEDLOCK, CLOCKLOCK, UNLOCK, CONSISTENT, COUNT, TURN, END };

struct shared {
	/* of the other process; order is NONE again when result is there */
	int order, which, result;
	uintptr_t address; /* where the other process has this */
	struct {
		pthread_mutex_t m;
		long count;
	} lock[KINDS];
	pthread_cond_t turn_changed;
	int turn;
};

static const int types[KINDS] = {PTHREAD_MUTEX_NORMAL,	   PTHREAD_MUTEX_RECURSIVE,
				 PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP,
				 PTHREAD_MUTEX_NORMAL,	   PTHREAD_MUTEX_RECURSIVE};

static struct shared *s;

static void *count(void *which)
{
	long i = (long)which;

	for (int n = 0; n < ROUNDS; n++) {
		lock(&s->lock[i].m);
		*(volatile long *)&s->lock[i].count += 1;
		unlock(&s->lock[i].m);
	}
	return NULL;
}

static int count_by_two(long which)
{
	pthread_t t = start(count, (void *)which);

	count((void *)which);
	join(t);
	return 0;
}

/* Two processes take turns; each waits for its own. */
static int take_turns(int mine, pthread_mutex_t *m)
{
	for (int n = 0; n < TURNS; n++) {
		struct timespec ts = in_us(CLOCK_REALTIME, 60000000);

		lock(m);
		while (s->turn != 2 * n + mine)
			CHECK_EQ(n & 1 ? pthread_cond_wait(&s->turn_changed, m) :
					 pthread_cond_timedwait(&s->turn_changed, m, &ts),
				 0);
		s->turn++;
		CHECK_EQ(pthread_cond_broadcast(&s->turn_changed), 0);
		unlock(m);
	}
	return 0;
}

static int obey(int order, pthread_mutex_t *m)
{
	struct timespec real = in_us(CLOCK_REALTIME, 2000), mono = in_us(CLOCK_MONOTONIC, 2000);

	switch (order) {
	case LOCK: return pthread_mutex_lock(m);
	case TRYLOCK: return pthread_mutex_trylock(m);
	case TIMEDLOCK: return pthread_mutex_timedlock(m, &real);
	case CLOCKLOCK: return pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &mono);
	case UNLOCK: return pthread_mutex_unlock(m);
	case CONSISTENT: return pthread_mutex_consistent(m);
	case COUNT: return count_by_two(s->which);
	case TURN: return take_turns(1, m);
	default: return -1;
	}
}

static void *attach(int by_shm, int id)
{
	/*
	 * The same length once more below it, so that the addresses differ also where they are not
	 * random.
	 */
	void *filler = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p = by_shm ? shmat(id, NULL, 0) :
			   mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, id, 0);

	CHECK(filler != MAP_FAILED);
	CHECK(p != MAP_FAILED);
	return p;
}

__attribute__((noreturn)) static void other_process(int by_shm, int id, uintptr_t not_here)
{
	s = attach(by_shm, id);
	if ((uintptr_t)s == not_here)
		s = attach(by_shm, id);
	STORE(s->address, (uintptr_t)s);
	for (;;) {
		UNTIL(LOAD(s->order) != NONE);
		if (s->order == END)
			_exit(0);
		s->result = obey(s->order, &s->lock[s->which].m);
		STORE(s->order, NONE);
	}
}

/* ---- this process -------------------------------------------------------- */

static void begin(int order, int which)
{
	s->which = which;
	STORE(s->order, order);
}

static int result(void)
{
	UNTIL(LOAD(s->order) == NONE);
	return s->result;
}

static int there(int order, int which)
{
	begin(order, which);
	return result();
}

static void make(void)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;

	memset(s, 0, sizeof *s);
	for (int i = 0; i < KINDS; i++) {
		CHECK_EQ(pthread_mutexattr_init(&ma), 0);
		CHECK_EQ(pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED), 0);
		CHECK_EQ(pthread_mutexattr_settype(&ma, types[i]), 0);
		CHECK_EQ(pthread_mutexattr_setrobust(&ma, i >= ROBUST), 0);
		CHECK_EQ(pthread_mutex_init(&s->lock[i].m, &ma), 0);
	}
	CHECK_EQ(pthread_condattr_init(&ca), 0);
	CHECK_EQ(pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(&s->turn_changed, &ca), 0);
}

static pid_t start_other(char *self, int by_shm, int id, int preloaded)
{
	char kind[2] = {(char)('0' + by_shm), 0}, number[16], address[32];
	char *argv[] = {self, kind, number, address, NULL};
	pid_t pid;

	snprintf(number, sizeof number, "%d", id);
	snprintf(address, sizeof address, "%lu", (unsigned long)s);
	STORE(s->address, 0);
	pid = check_fork();
	if (!pid) {
		if (!preloaded) {
			unsetenv("LD_PRELOAD");
			unsetenv("CHECK_PRELOAD");
		}
		execv("/proc/self/exe", argv);
		_exit(CHECK_SETUP);
	}
	UNTIL(LOAD(s->address));
	CHECK(s->address != (uintptr_t)s);
	return pid;
}

static void each_kind(void)
{
	for (int i = 0; i < KINDS; i++) {
		int knows_owner = i != NORMAL && i != ADAPTIVE,
		    recursive = types[i] == PTHREAD_MUTEX_RECURSIVE;
		pthread_mutex_t *m = &s->lock[i].m;
		struct timespec ts = in_us(CLOCK_REALTIME, 2000);

		lock(m);
		CHECK_EQ(there(TRYLOCK, i), EBUSY);
		CHECK_EQ(there(TIMEDLOCK, i), ETIMEDOUT);
		CHECK_EQ(there(CLOCKLOCK, i), ETIMEDOUT);
		if (knows_owner)
			CHECK_EQ(there(UNLOCK, i), EPERM);
		if (i == ERRORCHECK) {
			CHECK_EQ(pthread_mutex_lock(m), EDEADLK);
			CHECK_EQ(pthread_mutex_timedlock(m, &ts), EDEADLK);
		}
		if (recursive) {
			lock(m);
			unlock(m);
			CHECK_EQ(there(TRYLOCK, i), EBUSY);
		}
		begin(LOCK, i); /* waits */
		sleep_us(3000);
		CHECK_EQ(LOAD(s->order), LOCK);
		unlock(m);
		CHECK_EQ(result(), 0);
		if (recursive)
			CHECK_EQ(there(LOCK, i), 0);
		CHECK_EQ(pthread_mutex_trylock(m), EBUSY);
		ts = in_us(CLOCK_REALTIME, 2000);
		CHECK_EQ(pthread_mutex_timedlock(m, &ts), ETIMEDOUT);
		CHECK_EQ(there(UNLOCK, i), 0);
		if (recursive) {
			CHECK_EQ(pthread_mutex_trylock(m), EBUSY);
			CHECK_EQ(there(UNLOCK, i), 0);
		}
		begin(COUNT, i);
		count_by_two(i);
		CHECK_EQ(result(), 0);
		CHECK_EQ(s->lock[i].count, 4 * ROUNDS);
		s->turn = 0;
		begin(TURN, i);
		take_turns(0, m);
		CHECK_EQ(result(), 0);
	}
}

static void *lock_it(void *m)
{
	long r = pthread_mutex_lock(m);

	if (r == EOWNERDEAD) {
		CHECK_EQ(pthread_mutex_consistent(m), 0);
		unlock(m);
	}
	return (void *)r;
}

/*
 * The other process is killed while it holds both robust ones and a thread of ours waits for one.
 */
static void owner_dies(pid_t *pid, char *self, int by_shm, int id, int preloaded)
{
	pthread_mutex_t *m = &s->lock[ROBUST].m;
	pthread_t t;

	CHECK_EQ(there(LOCK, ROBUST), 0);
	CHECK_EQ(there(LOCK, ROBUST_RECURSIVE), 0);
	t = start(lock_it, m);
	sleep_us(3000);
	kill(*pid, SIGKILL);
	CHECK_EQ((long)join(t), EOWNERDEAD);
	CHECK_EQ(waitpid(*pid, NULL, 0), *pid);
	lock(m);
	unlock(m);
	CHECK_EQ(pthread_mutex_lock(&s->lock[ROBUST_RECURSIVE].m), EOWNERDEAD);
	*pid = start_other(self, by_shm, id, preloaded);
	CHECK_EQ(there(TRYLOCK, ROBUST_RECURSIVE), EBUSY);
	begin(LOCK, ROBUST_RECURSIVE); /* waits, and is told that it waited in vain */
	sleep_us(3000);
	unlock(&s->lock[ROBUST_RECURSIVE].m); /* not made consistent */
	CHECK_EQ(result(), ENOTRECOVERABLE);
	CHECK_EQ(pthread_mutex_lock(&s->lock[ROBUST_RECURSIVE].m), ENOTRECOVERABLE);
	CHECK_EQ(there(TIMEDLOCK, ROBUST_RECURSIVE), ENOTRECOVERABLE);
	CHECK_EQ(there(LOCK, ROBUST), 0);
	CHECK_EQ(there(UNLOCK, ROBUST), 0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	if (argc == 4)
		other_process(atoi(argv[1]), atoi(argv[2]), strtoul(argv[3], NULL, 10));
	for (int by_shm = 0; by_shm < 2; by_shm++) {
		int id = by_shm ? shmget(IPC_PRIVATE, SIZE, 0600) : memfd_create("shared", 0);

		CHECK(id >= 0);
		CHECK(by_shm || !ftruncate(id, SIZE));
		s = attach(by_shm, id);
		for (int preloaded = 0; preloaded < 2; preloaded++) {
			pid_t pid;

			make();
			pid = start_other(argv[0], by_shm, id, preloaded);
			each_kind();
			owner_dies(&pid, argv[0], by_shm, id, preloaded);
			begin(END, 0);
			check_child(pid);
			STORE(s->order, NONE);
		}
		if (by_shm)
			CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
	}
	return 0;
}
