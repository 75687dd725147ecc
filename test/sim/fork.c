/* SPDX-License-Identifier: MIT */
/*
 * fork(2), as the child sees it: the threads of the parent, wherever they were, are not there, and
 * what they had written is.  Then what start.c does in a child.
 */
#include "kernel.h"
#include "lock/cond.h"
#include "lock/epoch.h"
#include "lock/gate.h"
#include "lock/offer.h"
#include "lock/spin.h"
#include "runtime/policy.h"
#include "runtime/thread.h"
#include "sys/filter.h"

void sim_fork(void)
{
	bool has_by_word;

	sim_others_stop();
	sim_forked();
	mem_retired_are_new();
	monitor_on = false; /* it has not been asked for again */
	fg_filter_after_fork();
	has_by_word = _fg_offer_after_fork();
	fg_threads_after_fork();
	if (has_by_word)
		fg_set_cs(&fg_self_tls, 0);
	_fg_epoch_after_fork();
	_fg_cond_after_fork();
	_fg_spin_after_fork();
	_fg_gates_after_fork();
	fg_policy_monitor(NULL, 0);
}
