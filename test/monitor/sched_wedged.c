// SPDX-License-Identifier: MIT
/*
 * A companion scheduler that loses all threads but the kernel's (FG_BROKEN_SCHED in
 * bpf/sched.bpf.c) is ejected by the kernel's watchdog, which says why in one line; everybody runs
 * again.
 */
#include <sched.h>
#include "sched_common.h"

int main(void)
{
	struct fg_sched_end end;
	struct fg_sched *s;
	struct actor hog[4];
	uint64_t rounds;

	test_begin();
	for (int i = 0; i < 4; i++)
		actor_start(&hog[i], NULL, 0, -1, SCHED_OTHER);
	s = sched_open_or_skip(0);
	for (int i = 0; i < 4; i++)
		actor_tell(&hog[i], ACT_BUSY);
	WAIT_FOR(calls->ended(s, &end));
	if (end.kind < FG_SCHED_END_ERROR || !strstr(end.reason, "stall") || !*end.message ||
	    strchr(end.message, '\n'))
		fail("ended: %llu: %s: %s", (unsigned long long)end.kind, end.reason, end.message);
	WAIT_FOR(sched_is("disabled"));
	for (int i = 0; i < 4; i++) {
		rounds = __atomic_load_n(&hog[i].rounds, __ATOMIC_RELAXED);
		WAIT_FOR(__atomic_load_n(&hog[i].rounds, __ATOMIC_RELAXED) > rounds + 1000);
		actor_join(&hog[i]);
	}
	calls->close(s);
	printf("%s: %s\n", end.reason, end.message);
	return 0;
}
