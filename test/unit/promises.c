/* SPDX-License-Identifier: MIT */
/*
 * An owner with a queue behind it promises the head that it will tell when it releases the lock,
 * and the head does not look at the lock meanwhile.  Not an owner of whom the monitor says nothing:
 * one beyond the slots that it granted.
 */
#include "../tools/check.h"

#include "arch/arch.h"
#include "lock/lock.h"
#include "runtime/decide.h"

/*
 * Three waiters and the owner have to have CPUs at once: one round in hundreds, on two.  So until
 * it has been seen so often, and no longer than this.
 */
#define ENOUGH	 4
#define LIMIT_NS 10000000000

/* Time for the head to look behind itself. */
#define LOOKS 2000

static struct fg_counters counters;
static struct fg_lock l;
static uint32_t head, second, third; /* ids */
static int promised;

static bool has_role(uint32_t id, enum fg_role role)
{
	return id && fg_load_relaxed(&fg_slot_look(fg_id_index(id))->role) == role;
}

/* Not for long: it may have lost its CPU, and sleep by now. */
static bool comes_to(uint32_t *id, enum fg_role role)
{
	for (int i = 0; i < 20000; i++) {
		if (has_role(LOAD(*id), role))
			return true;
		fg_pause();
	}
	return false;
}

static void *wait_for_it(void *id)
{
	__atomic_store_n((uint32_t *)id, fg_self()->id, __ATOMIC_RELEASE);
	_fg_lock(&l);
	/* What was granted was granted before. */
	if (id == &head)
		STORE(promised,
		      fg_thread_of(fg_id_index(LOAD(second)))->notice == FG_NOTICE_STANDBY);
	_fg_unlock(&l);
	return NULL;
}

/* With all in the queue: the first takes the lock, and grants its role. */
static bool round_promises(uint32_t seen)
{
	pthread_t t[3];

	head = second = third = 0;
	promised = 0;
	fg_slots_seen = FG_PIECE;
	counters.heartbeat_ns = fg_now_ns();
	_fg_lock(&l);
	t[0] = start(wait_for_it, &head);
	comes_to(&head, FG_ROLE_HEAD);
	t[1] = start(wait_for_it, &second);
	comes_to(&second, FG_ROLE_WAITING);
	t[2] = start(wait_for_it, &third);
	comes_to(&third, FG_ROLE_WAITING);
	for (int i = 0; i < LOOKS; i++)
		fg_pause();
	fg_slots_seen = seen;
	_fg_unlock(&l);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	return LOAD(promised);
}

int main(int argc, char **argv)
{
	uint64_t until = fg_now_ns() + LIMIT_NS;
	int watched = 0, beyond = 0;

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_DEFAULT);
	fg_policy_monitor(&counters, 1);
	while (watched < ENOUGH && fg_now_ns() < until) {
		watched += round_promises(FG_PIECE);
		beyond += round_promises(1);
	}
	printf("owners that promised: %d watched, %d beyond the slots\n", watched, beyond);
	CHECK_EQ(beyond, 0);
	if (!watched)
		check_skip("too busy a machine: no waiter kept its CPU");
	return 0;
}
