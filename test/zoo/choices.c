/* SPDX-License-Identifier: MIT */
/*
 * What a program may choose for a mutex of its own (src/zoo/choices.h).  FLEXGUARD_SPIN_NS is 20 s.
 */
#include "../tools/check.h"
#include <stdbool.h>

static int (*unlock_fairly)(pthread_mutex_t *);
static int (*spin)(pthread_mutex_t *, uint32_t);
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int tid, got;

static char state_of_waiter(void)
{
	char path[64], line[512] = "";
	FILE *f;
	int t;

	while (!(t = __atomic_load_n(&tid, __ATOMIC_SEQ_CST)))
		usleep(100);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", t);
	f = fopen(path, "r");
	CHECK(f && fgets(line, sizeof(line), f));
	fclose(f);
	return strrchr(line, ')')[2];
}

static void *waiter(void *arg)
{
	(void)arg;
	__atomic_store_n(&tid, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	__atomic_store_n(&got, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&got, __ATOMIC_SEQ_CST) != 2)
		usleep(100);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return NULL;
}

static pthread_t wait_for_it(void)
{
	pthread_t t;

	tid = got = 0;
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_create(&t, NULL, waiter, NULL), 0);
	return t;
}

static void let_it_go(pthread_t t)
{
	while (!__atomic_load_n(&got, __ATOMIC_SEQ_CST))
		usleep(100);
	__atomic_store_n(&got, 2, __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* Releases it with a sleeper; whether it can be had again at once. */
static int again_after(int (*give)(pthread_mutex_t *))
{
	pthread_t t = wait_for_it();
	int r;

	while (state_of_waiter() != 'S')
		usleep(100);
	CHECK_EQ(give(&m), 0);
	r = pthread_mutex_trylock(&m);
	CHECK(r == 0 || r == EBUSY);
	if (!r)
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	let_it_go(t);
	return !r;
}

static void each_release_chooses(void)
{
	int had = 0;

	for (int i = 0; i < 50; i++)
		CHECK_EQ(again_after(unlock_fairly), 0);
	/* The sleeper needs longer to wake up than I for two system calls, but for a bad moment. */
	while (!had)
		had = again_after(pthread_mutex_unlock);
	CHECK_EQ(again_after(unlock_fairly), 0);
}

static void errors(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t own;

	CHECK_EQ(pthread_mutexattr_init(&attr), 0);
	CHECK_EQ(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK), 0);
	CHECK_EQ(pthread_mutex_init(&own, &attr), 0);
	CHECK_EQ(unlock_fairly(&own), EPERM);
	CHECK_EQ(pthread_mutex_lock(&own), 0);
	CHECK_EQ(unlock_fairly(&own), 0);
	CHECK_EQ(pthread_mutex_trylock(&own), 0);
	CHECK_EQ(pthread_mutex_unlock(&own), 0);
}

static void own_spin_time(void)
{
	pthread_t t;

	/* As long as the process says: it does not sleep. */
	t = wait_for_it();
	for (int i = 0; i < 50; i++) {
		CHECK(state_of_waiter() != 'S');
		usleep(1000);
	}
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	let_it_go(t);

	CHECK_EQ(spin(&m, 0), 0);
	t = wait_for_it();
	while (state_of_waiter() != 'S')
		usleep(100);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	let_it_go(t);
}

int main(int argc, char **argv)
{
	bool either = argc > 1 && !strcmp(argv[1], "either"),
	     spins = argc > 1 && !strcmp(argv[1], "spins");

	check_begin(argv[0], 60);
	*(void **)&unlock_fairly = dlsym(RTLD_DEFAULT, "zoo_mutex_unlock_fairly");
	*(void **)&spin = dlsym(RTLD_DEFAULT, "zoo_mutex_spin");
	CHECK(unlock_fairly && spin);
	if (either) {
		each_release_chooses();
		errors();
	} else {
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		CHECK_EQ(unlock_fairly(&m), ENOTSUP);
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	}
	if (spins)
		own_spin_time();
	else
		CHECK_EQ(spin(&m, 1000), ENOTSUP);
	return 0;
}
