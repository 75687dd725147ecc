/* SPDX-License-Identifier: MIT */
/*
 * A process with a monitor forks when its child can have no memory of its own in place of what the
 * parent shares with the monitor: there are as many mappings as the kernel allows, or there is a
 * seccomp filter.  The child writes nothing into that memory, and its own locks work.  Once by a
 * thread with a slot of the first piece, and once by one with a slot of the second.  In the child
 * a new thread has none; it forks as well, and what it holds it can release there.  Without a
 * monitor only the locks are tested.
 */
#include "../tools/check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "abi/protocol.h"

#define THREADS 4
#define ROUNDS	2000
#define PIECES	2
#define PARKED	(FG_PIECE + 40) /* so many threads have slots of both pieces */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, parking = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, gate = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long sum;
static int parked, leave, turns;

/* ---- the pieces, as the process has them mapped ---------------------------------- */

static struct piece {
	struct fg_slot *slot, before[FG_PIECE];
	size_t slots;
} piece[PIECES];

/* Writable, shared, and of the monitor: of fakemon's file, or of a BPF map. */
static int find_pieces(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	CHECK(maps);
	while (fgets(line, sizeof line, maps)) {
		unsigned long begin, end;

		if (!strstr(line, " rw-s ") ||
		    (!strstr(line, "memfd:slots") && !strstr(line, "bpf-map")))
			continue;
		CHECK_EQ(sscanf(line, "%lx-%lx", &begin, &end), 2);
		if (n < PIECES) {
			piece[n].slot = (struct fg_slot *)begin;
			piece[n].slots = (end - begin) / sizeof(struct fg_slot);
			CHECK(piece[n].slots <= FG_PIECE);
		}
		n++;
	}
	fclose(maps);
	return n < PIECES ? n : PIECES;
}

/* What the library writes; the rest is the monitor's. */
static struct fg_slot written(const struct fg_slot *s)
{
	struct fg_slot w = {.pending = s->pending,
			    .node = s->node,
			    .cs = s->cs,
			    .role = s->role,
			    .acq_cpu = s->acq_cpu,
			    .sections = s->sections,
			    .participant = s->participant,
			    .owner_id = s->owner_id};

	memcpy(w.stats, s->stats, sizeof w.stats);
	return w;
}

static void remember(int pieces)
{
	for (int p = 0; p < pieces; p++)
		for (size_t i = 0; i < piece[p].slots; i++)
			piece[p].before[i] = i || p ? written(&piece[p].slot[i]) : piece[p].slot[i];
}

static void check_untouched(int pieces)
{
	for (int p = 0; p < pieces; p++)
		for (size_t i = 0; i < piece[p].slots; i++) {
			struct fg_slot now = written(&piece[p].slot[i]);
			/*
			 * The first line of slot 0 is the process's, all of it (struct
			 * fg_slot_rest).
			 */
			size_t size = i || p ? sizeof now : sizeof(struct fg_slot_rest);
			const void *is = i || p ? (const void *)&now : &piece[p].slot[0];

			if (!memcmp(is, &piece[p].before[i], size))
				continue;
			for (size_t b = 0; b < size / 4; b++)
				if (((const uint32_t *)is)[b] !=
				    ((const uint32_t *)&piece[p].before[i])[b])
					check_say("slot %zu of piece %d: word %zu is %#x, was %#x",
						  i, p, b, ((const uint32_t *)is)[b],
						  ((const uint32_t *)&piece[p].before[i])[b]);
			check_end(CHECK_FAILED);
		}
}

/* ---- the locks --------------------------------------------------------------------- */

static void *contend(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&mutex);
		sum++;
		/* Held for long now and then, so that others queue and sleep. */
		for (volatile int k = 0; k < (i % 64 ? 50 : 20000); k++)
			;
		unlock(&mutex);
		CHECK_EQ(i % 4 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock),
			 0);
		CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	}
	return arg;
}

static void *take_turns(void *arg)
{
	int mine = arg != NULL;

	lock(&mutex);
	for (int i = 0; i < 50; i++) {
		while (turns % 2 != mine)
			CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
		turns++;
		CHECK_EQ(pthread_cond_signal(&cond), 0);
	}
	unlock(&mutex);
	return NULL;
}

/* The calling thread is one of those that contend. */
static void all_locks(void)
{
	pthread_t t[THREADS];
	long before = sum;

	for (int i = 1; i < THREADS; i++)
		t[i] = start(contend, NULL);
	contend(NULL);
	for (int i = 1; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(sum, before + (long)THREADS * ROUNDS);
	turns = 0;
	t[0] = start(take_turns, &cond);
	take_turns(NULL);
	join(t[0]);
}

/* ---- the process --------------------------------------------------------------------- */

/* Lets all calls pass; the library does not know that. */
static void install_filter(void)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {1, code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		check_skip("no seccomp here");
}

#define MOST_MAPPINGS 200000 /* as many as are tried; 65,530 are usual */
#define PAGE	      4096

static void **mapping; /* NULL: not now */
static int mappings;

/* One page each, no two of which become one mapping. */
static void use_up_mappings(void)
{
	CHECK(mapping = malloc(MOST_MAPPINGS * sizeof(*mapping)));
	for (mappings = 0; mappings < MOST_MAPPINGS; mappings++) {
		void *p = mmap(NULL, PAGE, mappings % 2 ? PROT_READ : PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			break;
		mapping[mappings] = p;
	}
	if (mappings == MOST_MAPPINGS)
		check_say("more than %d mappings are allowed here: they are not used up",
			  MOST_MAPPINGS);
}

static void give_mappings_back(void)
{
	if (!mapping)
		return;
	while (mappings--)
		CHECK(!munmap(mapping[mappings], PAGE));
	free(mapping);
	mapping = NULL;
}

/* ---- a thread without a slot that forks ---------------------------------------------- */

static pthread_mutex_t again, inheriting;
static int waits;

static void make_mutexes(void)
{
	pthread_mutexattr_t a;

	mutex_of_type(&again, PTHREAD_MUTEX_RECURSIVE);
	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT), 0);
	CHECK_EQ(pthread_mutex_init(&inheriting, &a), 0);
}

/* The wait is counted by the kernel's number of the thread. */
static void *destroy_beside_waiter(void *arg)
{
	lock(&inheriting);
	CHECK_EQ(waits, 1);
	unlock(&inheriting);
	CHECK_EQ(pthread_mutex_destroy(&inheriting), EBUSY);
	lock(&inheriting);
	waits = 0;
	CHECK_EQ(pthread_cond_signal(&cond), 0);
	unlock(&inheriting);
	return arg;
}

static void *fork_beside(void *arg)
{
	pid_t pid;

	lock(&again);
	pid = check_fork();
	if (!pid) {
		pthread_t t;

		if (getenv("CHECK_PRELOAD")) { /* glibc's knows its owner no more */
			lock(&again);
			unlock(&again);
			CHECK_EQ(try_elsewhere(&again), EBUSY);
			unlock(&again);
			CHECK_EQ(try_elsewhere(&again), 0);
		}
		lock(&inheriting);
		waits = 1;
		t = start(destroy_beside_waiter, NULL);
		while (waits)
			CHECK_EQ(pthread_cond_wait(&cond, &inheriting), 0);
		unlock(&inheriting);
		join(t);
		_exit(0);
	}
	check_child(pid);
	unlock(&again);
	return arg;
}

/* The parent's other threads sleep meanwhile, and it waits: nobody else writes either. */
static void *fork_once(void *pieces)
{
	pid_t pid, grandchild;

	lock(&mutex); /* it has its slot before the look */
	unlock(&mutex);
	remember(*(int *)pieces);
	pid = check_fork();
	if (!pid) {
		give_mappings_back();
		all_locks();
		grandchild = check_fork();
		if (!grandchild) {
			all_locks();
			_exit(0);
		}
		check_child(grandchild);
		join(start(fork_beside, NULL));
		all_locks();
		_exit(0);
	}
	check_child(pid);
	check_untouched(*(int *)pieces);
	return NULL;
}

static void *fork_when_full(void *pieces)
{
	use_up_mappings();
	fork_once(pieces);
	give_mappings_back();
	return NULL;
}

static void *park(void *arg)
{
	lock(&parking);
	parked++;
	while (!leave)
		CHECK_EQ(pthread_cond_wait(&gate, &parking), 0);
	unlock(&parking);
	return arg;
}

/* The library asks for a monitor, and for more slots, when somebody waits for a lock. */
static int wait_for_pieces(int want)
{
	const char *socket = getenv(FG_SOCKET_ENV);
	struct timespec until = in_us(CLOCK_MONOTONIC, 15000000);
	int have;

	if (!socket || !*socket || !strcmp(socket, "@flexguard-test-none"))
		return 0;
	while ((have = find_pieces()) < want && !is_past(CLOCK_MONOTONIC, until))
		all_locks();
	return have;
}

int main(int argc, char **argv)
{
	static pthread_t t[PARKED];
	pthread_attr_t small;
	int pieces;

	check_begin(argv[0], 60);
	pieces = wait_for_pieces(1);
	if (argc > 1 && !pieces)
		check_skip("no monitor has answered");
	CHECK_EQ(pthread_attr_init(&small), 0);
	CHECK_EQ(pthread_attr_setstacksize(&small, 128 << 10), 0);
	for (unsigned i = 0; i < PARKED; i++)
		CHECK_EQ(pthread_create(&t[i], &small, park, NULL), 0);
	UNTIL(LOAD(parked) == (int)PARKED);
	lock(&parking); /* the last of them has begun to wait */
	unlock(&parking);
	if (pieces)
		pieces = wait_for_pieces(PIECES);
	make_mutexes();
	fork_when_full(&pieces);
	join(start(fork_when_full, &pieces));
	install_filter();
	fork_once(&pieces);
	join(start(fork_once, &pieces));
	all_locks();
	lock(&parking);
	leave = 1;
	CHECK_EQ(pthread_cond_broadcast(&gate), 0);
	unlock(&parking);
	for (unsigned i = 0; i < PARKED; i++)
		join(t[i]);
	return 0;
}
