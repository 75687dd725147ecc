/* SPDX-License-Identifier: MIT */
/*
 * Every combination of type, robustness, protocol and sharing: each operation
 * returns what glibc's own functions return on a mutex of their own.
 */
#include "../tools/check.h"

struct functions {
	int (*init)(pthread_mutex_t *, const pthread_mutexattr_t *);
	int (*destroy)(pthread_mutex_t *);
	int (*lock)(pthread_mutex_t *);
	int (*trylock)(pthread_mutex_t *);
	int (*timedlock)(pthread_mutex_t *, const struct timespec *);
	int (*unlock)(pthread_mutex_t *);
	int (*consistent)(pthread_mutex_t *);
	int (*getprioceiling)(const pthread_mutex_t *, int *);
};

static const struct functions ours = {pthread_mutex_init,	pthread_mutex_destroy,
				      pthread_mutex_lock,	pthread_mutex_trylock,
				      pthread_mutex_timedlock,	pthread_mutex_unlock,
				      pthread_mutex_consistent, pthread_mutex_getprioceiling};

static struct functions glibcs(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct functions f;

	CHECK(libc);
#define FIND(name)                                               \
	*(void **)&f.name = dlsym(libc, "pthread_mutex_" #name); \
	CHECK(f.name)
	FIND(init);
	FIND(destroy);
	FIND(lock);
	FIND(trylock);
	FIND(timedlock);
	FIND(unlock);
	FIND(consistent);
	FIND(getprioceiling);
	return f;
}

static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
			    PTHREAD_MUTEX_ADAPTIVE_NP};
static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT};

enum { STEPS = 32 };

struct record {
	int n, result[STEPS];
	const char *what[STEPS];
};

struct run {
	const struct functions *f;
	pthread_mutex_t m;
	int owned; /* the type knows its owner */
	struct record r;
};

static int note(struct run *run, const char *what, int result)
{
	CHECK(run->r.n < STEPS);
	run->r.what[run->r.n] = what;
	run->r.result[run->r.n++] = result;
	return result;
}
#define STEP(call) note(run, #call, run->f->call)

static void *elsewhere(void *arg)
{
	struct run *run = arg;
	struct timespec ts = in_us(CLOCK_REALTIME, 1000);

	if (!STEP(trylock(&run->m)))
		STEP(unlock(&run->m));
	if (!STEP(timedlock(&run->m, &ts)))
		STEP(unlock(&run->m));
	if (run->owned)
		STEP(unlock(&run->m));
	return NULL;
}

static void *die_holding(void *arg)
{
	struct run *run = arg;

	STEP(lock(&run->m));
	return NULL;
}

static void *live(void *arg)
{
	struct run *run = arg;
	struct timespec ts = in_us(CLOCK_REALTIME, 1000), bad = {.tv_nsec = -1};
	int ceiling = -1;

	note(run, "ceiling", run->f->getprioceiling(&run->m, &ceiling) * 1000 + ceiling);
	if (STEP(lock(&run->m)))
		return NULL;
	if (run->owned && !STEP(lock(&run->m)))
		STEP(unlock(&run->m));
	if (!STEP(trylock(&run->m)))
		STEP(unlock(&run->m));
	if (!STEP(timedlock(&run->m, &ts)))
		STEP(unlock(&run->m));
	if (!STEP(timedlock(&run->m, &bad)))
		STEP(unlock(&run->m));
	STEP(consistent(&run->m));
	join(start(elsewhere, run));
	STEP(destroy(&run->m)); /* EBUSY */
	STEP(unlock(&run->m));
	if (run->owned)
		STEP(unlock(&run->m));
	join(start(elsewhere, run));
	return NULL;
}

static void *owner_dies(void *arg)
{
	struct run *run = arg;

	join(start(die_holding, run));
	STEP(trylock(&run->m));
	STEP(consistent(&run->m));
	STEP(unlock(&run->m));
	join(start(die_holding, run));
	STEP(lock(&run->m));
	STEP(unlock(&run->m));
	STEP(lock(&run->m));
	return NULL;
}

static void compare(const struct record *a, const struct record *b, const char *name)
{
	for (int i = 0; i < a->n && i < b->n; i++)
		if (a->result[i] != b->result[i]) {
			check_say("%s, step %d: %s is %d, glibc says %d", name, i, a->what[i],
				  a->result[i], b->result[i]);
			check_end(CHECK_FAILED);
		}
	CHECK_EQ(a->n, b->n);
}

static void one(const struct functions *native, int type, int robust, int protocol, int shared)
{
	struct run run[2] = {{.f = &ours}, {.f = native}};
	char name[64];

	snprintf(name, sizeof name, "type %d robust %d protocol %d shared %d", type, robust,
		 protocol, shared);
	for (int i = 0; i < 2; i++) {
		pthread_mutexattr_t a;

		CHECK_EQ(pthread_mutexattr_init(&a), 0);
		CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
		CHECK_EQ(pthread_mutexattr_setrobust(&a, robust), 0);
		CHECK_EQ(pthread_mutexattr_setprotocol(&a, protocol), 0);
		CHECK_EQ(pthread_mutexattr_setpshared(&a, shared), 0);
		run[i].owned = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
		if (note(&run[i], "init", run[i].f->init(&run[i].m, &a)))
			continue;
		/* A thread of its own each: glibc keeps a count of ceilings for each thread. */
		join(start(live, &run[i]));
		if (robust && protocol != PTHREAD_PRIO_PROTECT)
			join(start(owner_dies, &run[i]));
		note(&run[i], "destroy", run[i].f->destroy(&run[i].m));
	}
	compare(&run[0].r, &run[1].r, name);
}

int main(int argc, char **argv)
{
	struct functions native = glibcs();

	check_begin(argv[0], 60);
	for (unsigned t = 0; t < 4; t++)
		for (int robust = 0; robust < 2; robust++)
			for (unsigned p = 0; p < 3; p++)
				for (int shared = 0; shared < 2; shared++)
					one(&native, types[t], robust, protocols[p], shared);
	return 0;
}
