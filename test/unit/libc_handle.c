/* SPDX-License-Identifier: MIT */
/*
 * Locks that are looked up in a handle of libc, as a foreign function interface does, exclude those
 * that are called by name; and they are the same ones before and after a plugin is opened with
 * RTLD_DEEPBIND, with a mutex locked in between.  What a library behind ours has of the other names
 * goes on to be called, and calls libc's.  And to open libc takes no call that a filter of the
 * program's own need not know.
 */
#include "../tools/check.h"
#include "../tools/no_call.h"

enum { ROUNDS = 100000, THREADS = 4 };
enum { BY_NAME, BY_DLMOPEN, PLUGIN_AT_ONCE, PLUGIN_IN_BETWEEN, MODES };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int (*lock_it)(pthread_mutex_t *), (*unlock_it)(pthread_mutex_t *);
static long sum;

static void *by_handle(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(lock_it(&m), 0);
		*(volatile long *)&sum += 1;
		CHECK_EQ(unlock_it(&m), 0);
	}
	return arg;
}

static void *by_name(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&m);
		*(volatile long *)&sum += 1;
		unlock(&m);
	}
	return arg;
}

static void open_plugin(const char *path, int flags)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	pthread_t *thread;

	if (!plugin)
		check_say("%s", dlerror());
	CHECK(plugin);
	thread = dlsym(plugin, "plugin_thread");
	CHECK(thread);
	join(*thread);
}

static void use(int mode, const char *file, const char *plugin)
{
	long (*call)(long nr, ...);
	pthread_t t[THREADS];
	void *libc;

	if (mode == PLUGIN_AT_ONCE)
		open_plugin(plugin, 0);
	libc = mode == BY_DLMOPEN ? dlmopen(LM_ID_BASE, file, RTLD_NOW) : dlopen(file, RTLD_NOW);
	if (!libc)
		check_say("%s", dlerror());
	CHECK(libc);
	CHECK(!dlerror());
	lock_it = (int (*)(pthread_mutex_t *))dlsym(libc, "pthread_mutex_lock");
	CHECK(lock_it);
	CHECK_EQ(lock_it(&m), 0);
	if (mode == PLUGIN_IN_BETWEEN)
		open_plugin(plugin, RTLD_DEEPBIND);
	unlock_it = (int (*)(pthread_mutex_t *))dlsym(libc, "pthread_mutex_unlock");
	CHECK(unlock_it);
	CHECK_EQ(try_elsewhere(&m), EBUSY);
	CHECK_EQ(unlock_it(&m), 0);
	CHECK_EQ(try_elsewhere(&m), 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(i % 2 ? by_name : by_handle, NULL);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(sum, THREADS * ROUNDS);

	call = (long (*)(long, ...))dlsym(libc, "syscall");
	CHECK(call);
	CHECK_EQ(call(SYS_getpid), getpid());
	CHECK_EQ(syscall(SYS_getpid), getpid());
	_exit(0);
}

static void behind_filter(const char *file, int flags)
{
	long (*call)(long nr, ...);
	void *libc;

	no_call(SYS_mprotect);
	libc = dlopen(file, RTLD_NOW | flags);
	CHECK(libc);
	call = (long (*)(long, ...))dlsym(libc, "syscall");
	CHECK(call);
	CHECK_EQ(call(SYS_getpid), getpid());
	_exit(0);
}

int main(int argc, char **argv)
{
	static const char *const files[] = {"libc.so.6", "libpthread.so.0"};
	pid_t pid;

	CHECK_EQ(argc, 2);
	check_begin(argv[0], 30);
	for (int i = 0; i < 2; i++) {
		pid = check_fork();
		if (!pid)
			behind_filter(files[0], i ? RTLD_DEEPBIND : 0);
		check_child(pid);
	}
	for (int mode = 0; mode < MODES; mode++)
		for (int i = 0; i < 2; i++) {
			pid = check_fork();
			if (!pid)
				use(mode, files[i], argv[1]);
			check_child(pid);
		}
	return 0;
}
