/* SPDX-License-Identifier: MIT */
/*
 * The release is the last access: the next owner may destroy the object, and free its memory (POSIX
 * says so of mutexes, and glibc does it for all of these).  After each instruction of a release
 * another thread tries to get the object; if it does, it releases it in turn, and takes its page
 * away.
 */
#include "../tools/readers.h"
#include "../tools/step.h"

#include <semaphore.h>
#include <stdbool.h>
#include <sys/mman.h>

#ifdef STEP_SUPPORTED
enum { POSITIONS = 400, PAGE = 4096 };

static union object {
	pthread_rwlock_t rwlock;
	pthread_mutex_t mutex;
	pthread_spinlock_t spin;
	sem_t sem;
} *o;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static int position, came;

/* ---- the objects --------------------------------------------------------------- */

static int make_rwlock(void)
{
	return pthread_rwlock_init(&o->rwlock, NULL);
}

static int write_lock(void)
{
	return pthread_rwlock_wrlock(&o->rwlock);
}

/* Its gate is had the slow way, and its readers waited for. */
static void *read_for_a_while(void *arg)
{
	CHECK_EQ(pthread_rwlock_rdlock(&o->rwlock), 0);
	STORE(*(uint32_t *)arg, 1);
	sleep_us(300);
	CHECK_EQ(pthread_rwlock_unlock(&o->rwlock), 0);
	return NULL;
}

static int write_after_reader(void)
{
	uint32_t begun = 0;
	pthread_t reader = start(read_for_a_while, &begun);
	int r;

	UNTIL(LOAD(begun));
	r = pthread_rwlock_wrlock(&o->rwlock);
	join(reader);
	return r;
}

static int read_lock(void)
{
	return pthread_rwlock_rdlock(&o->rwlock);
}

static int read_visibly(void)
{
	readers_begin(&o->rwlock);
	read_in_turn();
	readers_end();
	return read_lock();
}

static int try_read(void)
{
	return pthread_rwlock_tryrdlock(&o->rwlock);
}

static int try_write(void)
{
	return pthread_rwlock_trywrlock(&o->rwlock);
}

static int release_rwlock(void)
{
	return pthread_rwlock_unlock(&o->rwlock);
}

static int make_mutex(void)
{
	return pthread_mutex_init(&o->mutex, NULL);
}

static int lock_mutex(void)
{
	return pthread_mutex_lock(&o->mutex);
}

static int try_mutex(void)
{
	return pthread_mutex_trylock(&o->mutex);
}

static int release_mutex(void)
{
	return pthread_mutex_unlock(&o->mutex);
}

static int make_spin(void)
{
	return pthread_spin_init(&o->spin, 0);
}

static int lock_spin(void)
{
	return pthread_spin_lock(&o->spin);
}

static int try_spin(void)
{
	return pthread_spin_trylock(&o->spin);
}

static int release_spin(void)
{
	return pthread_spin_unlock(&o->spin);
}

static int make_sem(void)
{
	return sem_init(&o->sem, 0, 0);
}

static int nothing(void)
{
	return 0;
}

static int try_sem(void)
{
	return sem_trywait(&o->sem);
}

static int post(void)
{
	return sem_post(&o->sem);
}

static const struct kind {
	int (*make)(void), (*get)(void), (*release)(void), (*try)(void), (*release_again)(void);
} kinds[] = {
    {make_rwlock, write_lock, release_rwlock, try_read, release_rwlock},
    {make_rwlock, write_lock, release_rwlock, try_write, release_rwlock},
    {make_rwlock, write_after_reader, release_rwlock, try_read, release_rwlock},
    {make_rwlock, read_lock, release_rwlock, try_write, release_rwlock},
    {make_rwlock, read_visibly, release_rwlock, try_write, release_rwlock},
    {make_mutex, lock_mutex, release_mutex, try_mutex, release_mutex},
    {make_spin, lock_spin, release_spin, try_spin, release_spin},
    {make_sem, nothing, post, try_sem, nothing},
};

/* ---- the other thread -------------------------------------------------------------- */

static const struct kind *kind;
static uint32_t asked, answered; /* so many times */
static bool gone;

static void *next_owner(void *arg)
{
	for (uint32_t n = 0;; n++) {
		while (LOAD(asked) == n)
			futex_wait(&asked, n);
		if (!kind)
			return arg;
		if (!kind->try()) {
			CHECK_EQ(kind->release_again(), 0);
			CHECK_EQ(mprotect(o, PAGE, PROT_NONE), 0);
			gone = true;
		}
		STORE(answered, n + 1);
		futex_wake(&answered, 1);
	}
}

static void ask(void)
{
	uint32_t n = asked + 1;

	STORE(asked, n);
	futex_wake(&asked, 1);
	for (uint32_t now; (now = LOAD(answered)) != n;)
		futex_wait(&answered, now);
}

static void asks_here(void)
{
	if (step_count != position)
		return;
	came = step_ending = 1;
	ask();
}

/* ---- this one ------------------------------------------------------------------------ */

static void each(bool beside)
{
	bool any = false;

	for (position = came = 1; came && position <= POSITIONS; position++) {
		came = 0;
		gone = false;
		CHECK_EQ(kind->make(), 0);
		if (beside)
			lock(&other);
		CHECK_EQ(kind->get(), 0);
		step_begin(asks_here);
		CHECK_EQ(kind->release(), 0);
		step_end();
		if (beside)
			unlock(&other);
		any |= gone;
		CHECK_EQ(mprotect(o, PAGE, PROT_READ | PROT_WRITE), 0);
	}
	CHECK(any); /* in the last instructions at least */
}

int main(int argc, char **argv)
{
	pthread_t next;

	(void)argc;
	check_begin(argv[0], 100);
	o = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(o != MAP_FAILED);
	kind = kinds;
	next = start(next_owner, NULL);
	for (; kind < kinds + sizeof(kinds) / sizeof(*kinds); kind++) {
		each(false);
		each(true);
	}
	kind = NULL;
	STORE(asked, asked + 1);
	futex_wake(&asked, 1);
	join(next);
	return 0;
}
#endif
