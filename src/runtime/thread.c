/* SPDX-License-Identifier: MIT */
/*
 * The life of a thread: it is given an index (slot, nodes) and an id, and gives both back
 * at its end.  There is no hook at thread creation: a thread sets itself
 * up when it first takes a lock, and a destructor of thread-specific data
 * takes it down.  Nothing here allocates with malloc, since malloc may be what
 * is taking its first lock.
 */
#include "runtime/thread.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/count.h"
#include "runtime/policy.h"
#include "runtime/slots.h"
#include "runtime/thread_id.h"
#include "sys/filter.h"
#include "sys/libc.h"

static const uint32_t no_cpu = ~0u;
static pthread_key_t exit_key;
static bool have_exit_key;

static const uint32_t *rseq_cpu(void)
{
	const struct rseq *area;

	if (__rseq_size == 0) /* switched off by a tunable, or a kernel without */
		return &no_cpu;
	area = (const struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	return &area->cpu_id;
}

void fg_thread_init(struct fg_self *t)
{
	bool again = fg_former_id(t) != 0;
	uint32_t tid, index, epoch, no_id = 0;

	fg_filter_setup(fg_policy_clock_changed);
	tid = fg_tid_of_thread();
	if (fg_unlikely(t->only != FG_ONLY_NOT_SET_UP)) /* by a signal handler */
		return;
	/*
	 * At first without an index: a signal handler that locks finds its thread set up, and does
	 * not do so on top of this.  Two at once would leave the slot of one and the id of the
	 * other.
	 */
	t->cpu = rseq_cpu();
	fg_fence_local();
	if (again)
		t->id = FG_ID_NO_SLOT | tid;
	else if (!fg_cas_relaxed(&t->id, &no_id, FG_ID_NO_SLOT | tid))
		return; /* one has come by now, and done all of this */
	fg_fence_local();
	t->only = FG_ONLY_NONE;
	fg_fence_local();
	/*
	 * Again, if a signal handler has forked in between: the child does not know that this
	 * thread has the index, and would give it to another.
	 */
	do {
		epoch = fg_epoch;
		tid = fg_tid_of_thread();
		index = again ? 0 : fg_index_take();
		t->role = FG_ROLE_NONE;
		/* What it knows of a lock, or of a round, another thread's line has by now. */
		t->keeps_busy = t->round_is_timed = t->turn_over = 0;
		if (!again)
			fg_sections = 0;
		if (index) {
			struct fg_thread *me = fg_thread_of(index);
			uint32_t id = fg_id_begin(index, tid);

			me->nodes_used = me->in_vain = me->yields = me->leaves_cpu = 0;
			me->offer = me->notifies = me->kept = me->others_sleep = 0;
			me->native_since = 0;
			me->slice = me->barges = 0;
			t->id = FG_ID_NO_SLOT | tid; /* again: not that of the slot before */
			fg_fence_local();
			t->slot = fg_slot_of(index);
			fg_slot_clear(t->slot, id);
			fg_fence_local();
			t->bind.check = index ^ FG_TLS_MAGIC;
			fg_store_relaxed(&t->bind.slot, index);
			fg_fence_local();
			t->id = id;
		} else {
			t->slot = &fg_slot_nowhere;
			t->id = FG_ID_NO_SLOT | tid;
		}
		fg_fence_local();
	} while (fg_unlikely(epoch != fg_epoch));
	if (again)
		return;
	fg_count_thread(t);
	if (!fg_slot_is_own(t) && fg_load_relaxed(&fg_slots_seen) != FG_SLOTS_APART)
		fg_count(t, FG_STAT_UNMONITORED, 1);
	/*
	 * Keys below 32 need no memory; above, this may call malloc: a lock taken there is ready by
	 * now.
	 */
	if (have_exit_key)
		fg_libc_pthread_setspecific()(exit_key, t);
}

static void (*thread_ends)(struct fg_self *);

static const uint32_t unknown;
const uint32_t *fg_not_forked = &unknown;

/* A word that the kernel wipes in a child, in a page of its own: lengths are rounded up to one. */
static void know_forks(void)
{
	size_t page = sizeof(uint32_t);
	uint32_t *word;

	if (fg_is_filtered()) /* it may not know madvise() */
		return;
	word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED)
		return;
	if (fg_syscall6(SYS_madvise, (long)word, (long)page, MADV_WIPEONFORK, 0, 0, 0)) {
		munmap(word, page);
		return;
	}
	*word = 1;
	fg_not_forked = word;
}

/*
 * Runs among the destructors of thread-specific data, and there is no later hook.  Others may come
 * after it, in this round and in further ones, that lock, and that release what the thread has held
 * all the time.  So the thread keeps its id in mind (fg_former_id), and is set up again without an
 * index if it has to be.
 */
static void thread_exit(void *arg)
{
	/* not `arg`, which a program with a stray key may have set */
	struct fg_self *t = &fg_self_tls;
	uint32_t id = t->id, index = fg_id_index(id);
	bool holds_nothing = !(t->only & ~(uint64_t)FG_ONLY_SLOWLY);
	struct fg_slot *slot = t->slot;

	(void)arg;
	/* the second time, or none was free: it has nothing to give back */
	if (!fg_id_has_slot(id))
		return;
	if (thread_ends)
		thread_ends(t);
	/* Whoever it would have told looks for itself. */
	if (fg_thread_of(index)->notifies)
		fg_store_relaxed(&fg_thread_of(fg_thread_of(index)->notifies)->notice,
				 FG_NOTICE_FREE);
	/* In an order in which a signal handler may lock after each step. */
	t->bind.slot = 0;
	fg_fence_local();
	/* Of nothing it is the owner by that id, and the 2,048th thread after it has it, too. */
	t->bind.check = holds_nothing ? FG_ID_NOBODYS : id;
	fg_fence_local();
	t->only = FG_ONLY_NOT_SET_UP;
	fg_fence_local();
	/* Before the slot, in which fast ways that see an id look.  Not if it was set up again. */
	fg_cas_relaxed(&t->id, &id, 0);
	fg_fence_local();
	t->slot = &fg_slot_nowhere; /* which a handler has set as well then */
	fg_fence_local();
	/* Not before: a handler that locks by the id has to be found there by those who wait. */
	fg_slot_clear(slot, 0);
	fg_id_end(index);
}

/* Values of keys below need no memory in glibc: their place is in the thread's own. */
#define KEYS_IN_THREAD 32u

/*
 * The last of those whose values need no memory.  A program has its first keys as it would without
 * us; one that uses a key which it has not created (they are static and zero) is told EINVAL; and a
 * plugin in a namespace of its own (dlmopen(3)) has a libc of its own, whose table of keys knows
 * nothing of ours, while a thread has its values in one place for both: its first keys are not that
 * one.
 */
static bool create_key(pthread_key_t *key)
{
	uint32_t passed = 0; /* bits of keys, created on the way */
	bool have = false;
	pthread_key_t k;

	while ((!have || *key < KEYS_IN_THREAD - 1) && !pthread_key_create(&k, thread_exit)) {
		if (k >= KEYS_IN_THREAD && have && *key) {
			pthread_key_delete(k);
			break;
		}
		if (have)
			passed |= 1u << *key;
		*key = k;
		have = true;
	}
	for (k = 0; passed >> k; k++)
		if (passed >> k & 1)
			pthread_key_delete(k);
	return have;
}

void fg_threads_setup(void (*ends)(struct fg_self *))
{
	thread_ends = ends;
	know_forks();
	fg_ids_of_process(fg_is_filtered() ? fg_tid() :
					     (uint32_t)fg_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0));
	have_exit_key = create_key(&exit_key);
	/* The thread that runs the constructors may have locked before there was a key. */
	if (have_exit_key && fg_self_tls.id)
		fg_libc_pthread_setspecific()(exit_key, &fg_self_tls);
}

void fg_threads_after_fork(void)
{
	struct fg_self *t = &fg_self_tls;
	uint32_t i, mine = fg_id_has_slot(t->id) ? fg_id_index(t->id) : 0;

#ifndef FG_BROKEN_EPOCH /* a test proves that the tests notice */
	fg_epoch++;	/* queues of locks name nodes of threads that do not exist here */
#endif
	if (fg_not_forked != &unknown)
		*(uint32_t *)(uintptr_t)fg_not_forked = 1;
	fg_ids_of_process(fg_tid());
	fg_slots_after_fork(t, mine);
	for (i = 1; i <= fg_threads_highest(); i++) {
		memset(fg_thread_of(i)->node, 0, sizeof(fg_thread_of(i)->node));
		if (i != mine) /* what the forking thread has been given it has */
			fg_thread_of(i)->offer = 0;
	}
	fg_ids_after_fork(mine);
	if (mine)
		fg_thread_of(mine)->notifies = 0;
	/*
	 * The id stays if it holds something: POSIX lets the child release what the forking thread
	 * held.  A fork inside a wait comes from a signal handler; the wait's node is FREE now and
	 * its queue is of another epoch, so the wait starts over.
	 */
	if (mine && !(t->only & ~(uint64_t)FG_ONLY_SLOWLY)) {
		t->id = fg_id_renew(mine);
		fg_store_relaxed(&t->slot->owner_id, t->id);
	}
	/*
	 * The id of a thread without a slot is the kernel's, which is another one here.  Nobody
	 * knows what it holds, so what it may hold is what its former id says (fg_former_id): the
	 * first one that it had.
	 */
	if (!mine && t->id) {
		if (!t->bind.check || t->bind.check == FG_ID_NOBODYS)
			t->bind.check = t->id;
		t->id = FG_ID_NO_SLOT | fg_tid();
	}
}
