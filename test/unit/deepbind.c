/* SPDX-License-Identifier: MIT */
/*
 * A plugin that was opened with RTLD_DEEPBIND shares a mutex, a condition variable and
 * a rwlock with the program, its constructor included.  The flag keeps its meaning, and the
 * plugin is searched for where the program says (RUNPATH).  Where libc's table cannot be
 * written to (here: by a filter), the flag is left out, and locks still exclude.
 */
#include "../tools/check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define THREADS 4
#define ROUNDS	20000

pthread_mutex_t host_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t host_cond = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t host_rwlock = PTHREAD_RWLOCK_INITIALIZER;
long host_sum, host_in;
static int stop;

const char *whose(void)
{
	return "host";
}

static long enter(void)
{
	long wrong = __atomic_exchange_n(&host_in, 1, __ATOMIC_RELAXED);

	host_sum++;
	__atomic_store_n(&host_in, 0, __ATOMIC_RELAXED);
	return wrong;
}

/* Under both locks: the plugin takes one of them at a time. */
static void *worker(void *arg)
{
	long wrong = 0;

	(void)arg;
	while (!LOAD(stop)) {
		lock(&host_mutex);
		CHECK_EQ(pthread_rwlock_wrlock(&host_rwlock), 0);
		wrong += enter();
		CHECK_EQ(pthread_rwlock_unlock(&host_rwlock), 0);
		unlock(&host_mutex);
	}
	return (void *)wrong;
}

static void *waiter(void *arg)
{
	lock(&host_mutex);
	while (!LOAD(stop))
		CHECK_EQ(pthread_cond_wait(&host_cond, &host_mutex), 0);
	unlock(&host_mutex);
	return arg;
}

static void refuse_writable(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * 2 +
						   4 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_READ | PROT_WRITE, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof code[0], code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		check_skip("no seccomp here");
}

static void once_more(char **argv)
{
	char *again[] = {argv[0], "refused", NULL};
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		execv(argv[0], again);
		_exit(CHECK_SETUP);
	}
	check_child(pid);
}

int main(int argc, char **argv)
{
	bool refused = argc > 1;
	const char *(*says)(void);
	long (*work)(int), *constructed;
	pthread_t t[THREADS], w;
	void *plugin;

	if (getenv("LD_LIBRARY_PATH")) { /* the program's own RUNPATH, and nothing else */
		unsetenv("LD_LIBRARY_PATH");
		execv(argv[0], argv);
	}
	check_begin(argv[0], 30);
	w = start(waiter, NULL);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(worker, NULL);
	if (refused)
		refuse_writable();
	plugin = dlopen("deep_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!plugin)
		check_say("%s", dlerror());
	CHECK(plugin);
	says = (const char *(*)(void))dlsym(plugin, "plugin_says");
	work = (long (*)(int))dlsym(plugin, "plugin_work");
	constructed = dlsym(plugin, "plugin_constructed");
	CHECK(says && work && constructed);
	CHECK_EQ(strcmp(says(), refused ? "host" : "plugin"), 0);
	CHECK_EQ(strcmp(whose(), "host"), 0);
	CHECK_EQ(*constructed, 0);
	CHECK_EQ(work(ROUNDS), 0);
	STORE(stop, 1);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(join(t[i]), 0);
	CHECK_EQ(work(10), 0); /* wakes the waiter */
	join(w);
	CHECK_EQ(pthread_mutex_destroy(&host_mutex), 0);
	CHECK(dlsym(RTLD_DEFAULT, "pthread_mutex_lock") == (void *)pthread_mutex_lock);
	CHECK_EQ(dlclose(plugin), 0);
	if (!refused && getenv("CHECK_PRELOAD"))
		once_more(argv);
	return 0;
}
