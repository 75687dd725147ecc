/* SPDX-License-Identifier: MIT */
/*
 * The runtime's life in a process.  Nothing depends on the constructor having
 * run: locks taken before it work, on the fallback policy.
 *
 * A process has room for one runtime: a thread has one id, the monitor one
 * registration.  So the preload library has the API and the SONAME of
 * libflexguard.so, and whatever in the process asks for that gets the one that
 * is there.  The exception is a program that loads the library by its path: that copy finds
 * the marker of the other, and does not register.  It works, on the fallback policy; a child of
 * a fork forgets the parent's threads there too.
 */
#include "lock/start.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "lock/cond.h"
#include "lock/epoch.h"
#include "lock/gate.h"
#include "lock/offer.h"
#include "lock/once.h"
#include "lock/spin.h"
#include "lock/visible.h"
#include "runtime/cpus.h"
#include "runtime/environment.h"
#include "runtime/monitor_client.h"
#include "runtime/policy.h"
#include "runtime/thread.h"
#include "sys/asymmetric.h"
#include "sys/clock.h"
#include "sys/filter.h"
#include "sys/libc.h"

extern const char fg_runtime_marker, fg_own_marker;
__attribute__((visibility("default"))) const char fg_runtime_marker = 0;
extern const char fg_own_marker __attribute__((alias("fg_runtime_marker"), visibility("hidden")));

static bool another_runtime(void)
{
	const void *first = dlsym(RTLD_DEFAULT, "fg_runtime_marker");

	return first && first != &fg_own_marker;
}

static void child_of_fork_unregistered(void)
{
	bool has_by_word;

	fg_filter_after_fork();
	fg_asymmetric_after_fork();
	_fg_visible_after_fork(&fg_self_tls);
	has_by_word = _fg_offer_after_fork(); /* while it knows who the parent's threads were */
	fg_threads_after_fork();
	if (has_by_word) /* its slot is its own by now */
		fg_set_cs(&fg_self_tls, 0);
	_fg_epoch_after_fork();
	_fg_cond_after_fork();
	_fg_once_after_fork();
	_fg_spin_after_fork();
	_fg_gates_after_fork();
}

static void child_of_fork(void)
{
	child_of_fork_unregistered();
	fg_monitor_forget();
}

void _fg_register_at_fork(void)
{
	static uint32_t registered;

	if (!fg_xchg_acq_rel(&registered, 1))
		pthread_atfork(NULL, NULL, child_of_fork);
}

static void thread_ends(struct fg_self *t)
{
	_fg_gates_thread_ends(t);
	_fg_lock_thread_ends(t);
}

__attribute__((constructor)) static void start(void)
{
	int saved = errno;

	if (another_runtime()) {
		pthread_atfork(NULL, NULL, child_of_fork_unregistered);
		return;
	}
	fg_libc_setup();
	fg_clock_setup();
	fg_filter_setup(fg_policy_clock_changed);
	_fg_mutex_shows(fg_tid_place());
	fg_asymmetric_setup();
	fg_threads_setup(thread_ends);
	fg_cpus_setup();
	fg_env_read();
	fg_stats_open();
	_fg_register_at_fork();
	/*
	 * Here and not at the first contended lock: the program may give up the right to do so
	 * later.
	 */
	fg_monitor_register();
	errno = saved;
}
