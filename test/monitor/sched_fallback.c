// SPDX-License-Identifier: MIT
/*
 * The end of the companion scheduler: whoever kills its process gives the kernel's own back, while
 * threads go on running; a second one is refused with the name of the first; the process that is
 * named as the monitor has to be one.
 */
#include <sched.h>
#include <signal.h>
#include "sched_common.h"

static int ready[2];

static void hold(void *arg)
{
	sched_open_or_skip(0);
	CHECK(write(ready[1], "", 1) == 1);
	for (;;)
		pause();
}

int main(void)
{
	struct fg_sched_config cfg = {.monitor = getpid()};
	struct actor hog[3];
	struct fg_sched *s;
	char byte, why[600];
	uint64_t rounds;
	pid_t pid;
	int err;

	test_begin();
	if (fg_sched_preflight(why, sizeof(why)))
		skip("%s", why);
	CHECK(sched_is("disabled"));
	for (int i = 0; i < 3; i++) {
		actor_start(&hog[i], NULL, 0, -1, SCHED_OTHER);
		actor_tell(&hog[i], ACT_BUSY);
	}
	CHECK(!pipe(ready));
	pid = spawn(hold, NULL);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		reap(pid), fail("no scheduler");
	CHECK(sched_is("enabled"));

	cfg.monitor = 0;
	err = calls->open(&s, &cfg, why, sizeof(why));
	CHECK(err == -EBUSY && !s && strstr(why, "flexguard") && !strchr(why, '\n'));
	CHECK(sched_is("enabled"));

	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	WAIT_FOR(sched_is("disabled"));
	for (int i = 0; i < 3; i++) {
		rounds = __atomic_load_n(&hog[i].rounds, __ATOMIC_RELAXED);
		WAIT_FOR(__atomic_load_n(&hog[i].rounds, __ATOMIC_RELAXED) > rounds + 1000);
	}

	cfg.monitor = getpid();
	err = calls->open(&s, &cfg, why, sizeof(why));
	CHECK(err == -ESRCH && !s && strstr(why, "no maps") && !strchr(why, '\n'));
	CHECK(sched_is("disabled"));

	for (int i = 0; i < 3; i++)
		actor_join(&hog[i]);
	return 0;
}
