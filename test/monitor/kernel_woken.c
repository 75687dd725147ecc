// SPDX-License-Identifier: MIT
/*
 * A mutex of the kernel that another takes when its waiter has been woken: that one spins, or goes
 * to sleep, once more, which the kernel tells as if it were another wait.  It is counted as one,
 * from its beginning, also where the row of the table in which it would stand was another's.
 */
#include <sched.h>
#include <semaphore.h>
#include "held_page.h"

static int channel[2];

static void *write_page(void *arg)
{
	CHECK(write(channel[1], page, PAGE) == (ssize_t)PAGE);
	return NULL;
}

/* So many that two of them, each with another mutex, have the same row of `waiting`. */
#define CROWD 600

static struct member {
	pthread_t thread;
	pid_t tid;
	sem_t go;
	int fd; /* to write a byte to; -1: none */
} crowd[CROWD];

static void *run_member(void *arg)
{
	struct member *m = arg;

	__atomic_store_n(&m->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (sem_wait(&m->go))
		;
	if (m->fd >= 0)
		CHECK(write(m->fd, "", 1) == 1);
	return NULL;
}

static void let_member_go(struct member *m, int fd)
{
	m->fd = fd;
	CHECK(!sem_post(&m->go));
}

/* As in bpf/contention_tables.h. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static uint64_t waiting_key(uint64_t lock, pid_t tid)
{
	return mix(mix(lock) ^ (uint32_t)tid) | 1;
}

static uint32_t row_of(uint64_t lock, pid_t tid)
{
	return (uint32_t)waiting_key(lock, tid) % FG_WAITING_ROWS;
}

static bool is_waiting(const struct fg_contention_view *v, uint64_t lock, pid_t tid)
{
	for (uint32_t i = 0; i < FG_WAITING_ROWS; i++)
		if (v->waiting[i].key == waiting_key(lock, tid))
			return true;
	return false;
}

static bool sleeps(pid_t tid, long *times)
{
	char path_[64], line[200], state = 0;
	FILE *f;

	snprintf(path_, sizeof(path_), "/proc/self/task/%d/status", (int)tid);
	f = fopen(path_, "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %ld", times);
	}
	fclose(f);
	return state == 'D';
}

static void *write_page_twice(void *arg)
{
	char *from = arg;

	CHECK(write(channel[1], from, PAGE) == (ssize_t)PAGE);
	CHECK(!madvise(from, PAGE, MADV_DONTNEED));
	CHECK(write(channel[1], from, PAGE) == (ssize_t)PAGE);
	return NULL;
}

/* The address of a pipe's mutex: of the one that this thread waits for. */
static uint64_t mutex_of(const struct fg_contention_view *v, const int pipe_[2], struct member *m)
{
	uint64_t lock = 0, longest = 0;
	pthread_t holder;
	long times;

	memcpy(channel, pipe_, sizeof(channel));
	CHECK(!pthread_create(&holder, NULL, write_page, NULL));
	wait_for_fault();
	let_member_go(m, channel[1]);
	WAIT_FOR(sleeps(m->tid, &times));
	usleep(50000); /* the longest of its waits */
	let_page_go(page);
	CHECK(!pthread_join(holder, NULL) && !pthread_join(m->thread, NULL));
	CHECK(!madvise(page, PAGE, MADV_DONTNEED));
	for (uint32_t i = 0; i < FG_WAITER_ROWS; i++)
		for (uint32_t k = 0; k < FG_LOCK_ROWS; k++)
			if (v->waiters[i].id == (uint64_t)m->tid &&
			    v->waiters[i].w.max_ns > longest &&
			    v->locks[k].key == v->waiters[i].lock_key &&
			    v->locks[k].class == FG_CLASS_MUTEX) {
				longest = v->waiters[i].w.max_ns;
				lock = v->locks[k].lock;
			}
	return lock;
}

static bool find_two(const uint64_t lock[2], struct member *two[2])
{
	for (int i = 2; i < CROWD; i++)
		for (int k = 2; k < CROWD; k++)
			if (i != k &&
			    row_of(lock[0], crowd[i].tid) == row_of(lock[1], crowd[k].tid)) {
				two[0] = &crowd[i];
				two[1] = &crowd[k];
				return true;
			}
	return false;
}

static uint64_t longest_of(const struct fg_contention_view *v, pid_t tid)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < FG_WAITER_ROWS; i++)
		if (v->waiters[i].id == (uint64_t)tid && v->waiters[i].w.max_ns > longest)
			longest = v->waiters[i].w.max_ns;
	return longest;
}

/*
 * The first of two waits in the row that the second would have, and ends before that one.  Whoever
 * holds the second's mutex runs in front of it, on the one CPU that both may use: so he has it once
 * more before the second, whom he has woken, comes to look.  Returns how long that one has waited
 * at least.
 */
static uint64_t wait_behind(const struct fg_contention_view *v, const uint64_t lock[2],
			    int pipes[2][2], struct member *two[2])
{
	const struct sched_param first = {.sched_priority = 1};
	pthread_t holder[2];
	uint64_t since, least;
	long slept, times;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	memcpy(channel, pipes[0], sizeof(channel));
	CHECK(!pthread_create(&holder[0], NULL, write_page, NULL));
	wait_for_fault();
	let_member_go(two[0], channel[1]);
	WAIT_FOR(is_waiting(v, lock[0], two[0]->tid) && sleeps(two[0]->tid, &times));

	memcpy(channel, pipes[1], sizeof(channel));
	CHECK(!pthread_create(&holder[1], NULL, write_page_twice, page + PAGE));
	wait_for_fault();
	CHECK(!pthread_setaffinity_np(holder[1], sizeof(one), &one));
	CHECK(!pthread_setaffinity_np(two[1]->thread, sizeof(one), &one));
	CHECK(!pthread_setschedparam(holder[1], SCHED_FIFO, &first));
	let_member_go(two[1], channel[1]);
	WAIT_FOR(is_waiting(v, lock[1], two[1]->tid) && sleeps(two[1]->tid, &slept));

	let_page_go(page);
	CHECK(!pthread_join(holder[0], NULL) && !pthread_join(two[0]->thread, NULL));
	since = fg_now_ns();
	usleep(50000); /* what is to be seen in its wait */
	let_page_go(page + PAGE);
	wait_for_fault();
	WAIT_FOR(sleeps(two[1]->tid, &times) && times > slept);
	least = fg_now_ns() - since;
	let_page_go(page + PAGE);
	CHECK(!pthread_join(holder[1], NULL) && !pthread_join(two[1]->thread, NULL));
	return least;
}

static bool may_run_first(void)
{
	const struct sched_param first = {.sched_priority = 1}, ordinary = {0};

	return !sched_setscheduler(0, SCHED_FIFO, &first) &&
	       !sched_setscheduler(0, SCHED_OTHER, &ordinary);
}

/* False: no two have the same row, or the kernel kept events from the program.  Then, once more. */
static bool taken_from_woken(void)
{
	const struct fg_contention_view *v;
	struct member *two[2] = {NULL};
	struct fg_contention *c;
	uint64_t lock[2], least = 0, longest;
	int pipes[2][2];
	bool done;

	v = open_or_skip(&c, FG_BY_TASK, false);
	hold_page();
	for (int i = 0; i < CROWD; i++) {
		crowd[i].fd = -1;
		crowd[i].tid = 0;
		CHECK(!sem_init(&crowd[i].go, 0, 0));
		CHECK(!pthread_create(&crowd[i].thread, NULL, run_member, &crowd[i]));
	}
	for (int i = 0; i < CROWD; i++)
		WAIT_FOR(__atomic_load_n(&crowd[i].tid, __ATOMIC_ACQUIRE));
	for (int i = 0; i < 2; i++) {
		CHECK(!pipe2(pipes[i], O_CLOEXEC));
		lock[i] = mutex_of(v, pipes[i], &crowd[i]);
	}
	done = lock[0] && lock[1] && find_two(lock, two);
	if (done)
		least = wait_behind(v, lock, pipes, two);
	for (int i = 2; i < CROWD; i++)
		if (&crowd[i] != two[0] && &crowd[i] != two[1]) {
			let_member_go(&crowd[i], -1);
			CHECK(!pthread_join(crowd[i].thread, NULL));
		}
	drop_page();
	for (int i = 0; i < 2; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	fg_contention_stop(c);
	done = done && !fg_contention_missed(c);
	if (done) {
		longest = longest_of(v, two[1]->tid);
		if (longest < least)
			fail("a wait of %llu ns was counted as one of %llu",
			     (unsigned long long)least, (unsigned long long)longest);
		CHECK(!is_waiting(v, lock[0], two[0]->tid));
		CHECK(!is_waiting(v, lock[1], two[1]->tid));
	}
	fg_contention_close(c);
	return done;
}

int main(void)
{
	test_begin();
	if (!may_run_first())
		skip("SCHED_FIFO is refused");
	for (int i = 0; !taken_from_woken(); i++)
		CHECK(i < 20);
	return 0;
}
