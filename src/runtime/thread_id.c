/* SPDX-License-Identifier: MIT */
/*
 * Indices and ids: which are taken, how often an index has changed hands, which id belongs
 * to which thread of the kernel.  Nothing here allocates with malloc, since malloc may be
 * what is taking its first lock.
 */
#include "runtime/thread_id.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/slots.h"
#include "sys/filter.h"
#include "sys/futex.h"
#include "sys/spread.h"

/*
 * Who has an index is said by its bit in `used`, and by nothing else; all the rest says where to
 * look.  Indices that nobody has had are handed out in turn (slots.c), so that a thousand threads
 * that begin at once do not ask for the same one: an atomic addition each.  Those that were given
 * back are searched for, lowest first; a thread that loses a race for one looks elsewhere.
 */
static uint64_t used[FG_MAX_THREADS / 64]; /* index 0 is nobody's */
static uint32_t lowest_word;		   /* hint: no free index below this word of `used` */
static int32_t spare; /* hint: indices that were given back; may be -1 for a moment */

/* Acquire: pairs with the release in index_give_back; the node states are seen. */
static bool take_bit(uint32_t index)
{
	uint64_t bit = 1ull << index % 64;

	return !(fg_or_acquire(&used[index / 64], bit) & bit);
}

/* The bits of a word that are free, of indices from 1 to `highest`. */
static uint64_t free_in(uint32_t word, uint32_t highest)
{
	uint64_t have = fg_load_relaxed(&used[word]) | (word == 0);

	if (word == highest / 64)
		have |= ~1ull << highest % 64;
	return ~have;
}

/* In any word, beginning with one of its own. */
static uint32_t find_anywhere(uint32_t highest)
{
	uint32_t words = highest / 64 + 1, at = fg_spread(), i;

	for (i = 0; i < words; i++) {
		uint32_t word = (at + i) % words, turn = at >> 16 & 63;
		uint64_t free = free_in(word, highest);

		if (free && !fg_chunk_map(word * 64 / FG_PIECE))
			return 0;
		for (; free; free = free_in(word, highest)) {
			uint64_t turned = free >> turn | free << (-turn & 63);
			uint32_t index = word * 64 +
					 (((uint32_t)__builtin_ctzll(turned) + turn) & 63);

			if (take_bit(index))
				return index;
		}
	}
	return 0;
}

/* One that a thread has had. */
static uint32_t find_free(void)
{
	uint32_t highest = fg_threads_highest(), from = fg_load_relaxed(&lowest_word), word, index;
	uint64_t free = 0;

	for (word = from; word <= highest / 64 && !(free = free_in(word, highest)); word++)
		;
	if (free && !fg_chunk_map(word * 64 / FG_PIECE))
		return 0;
	index = word * 64 + (free ? (uint32_t)__builtin_ctzll(free) : 0);
	if (!free || !take_bit(index))
		index = find_anywhere(highest);
	if (!index)
		return 0;
	if (word != from && index / 64 == word)
		fg_store_relaxed(&lowest_word, word);
	fg_add_relaxed((uint32_t *)&spare, -1u);
	return index;
}

/* One that no thread has had; 0: there is none, or no memory for it. */
static uint32_t find_fresh(void)
{
	uint32_t index;

	do
		index = fg_slots_next();
	while (index && !take_bit(index));
	return index;
}

/*
 * Release: pairs with fg_id_is_foreign(), which finds the count no smaller than it was for `gen`.
 */
static void next_generation(struct fg_thread *th)
{
	if (th->gens <= FG_GEN_MASK)
		fg_store_relaxed(&th->gens, (uint16_t)(th->gens + 1));
	fg_store_release(&th->gen, (uint16_t)(th->gen + 1));
}

static void index_give_back(uint32_t index)
{
	uint32_t word = index / 64;

	fg_and_release(&used[word], ~(1ull << (index % 64)));
	if (word < fg_load_relaxed(&lowest_word))
		fg_store_relaxed(&lowest_word, word);
	fg_add_relaxed((uint32_t *)&spare, 1);
}

static uint32_t process; /* its id, from the start of the library on */

void fg_ids_of_process(uint32_t pid)
{
	process = pid;
}

bool fg_is_in_process(void)
{
	uint32_t pid = fg_load_relaxed(&process);

	return !pid || fg_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0) == (long)pid;
}

uint32_t fg_tid_of_thread(void)
{
	uint32_t whose = fg_spread();

	if (fg_load_relaxed(&process) && fg_call_begins(whose)) {
		bool same = fg_is_in_process();

		fg_call_ends(whose);
		if (!same)
			return fg_tid_of_libc();
	}
	return fg_tid();
}

/*
 * No index is to be had: some may belong to threads that ended without telling (thread.c,
 * thread_exit).  Each thread that finds it so asks for a few of them, the next one for the next
 * few.  Not varied.
 */
#define SWEEP 64u

static void sweep(void)
{
	static uint32_t hand;
	uint32_t from = fg_add_relaxed(&hand, SWEEP), highest = fg_threads_highest(), i;
	uint32_t pid = fg_load_relaxed(&process); /* also in a child of vfork, for which all end */

	if (!pid || !fg_call_begins(from))
		return;

	for (i = 0; i < SWEEP && highest; i++) {
		uint32_t index = 1 + (from + i) % highest;
		struct fg_thread *th = fg_thread_of(index);
		uint32_t tid = fg_load_relaxed(&th->tid);

		if (tid && fg_syscall6(SYS_tgkill, pid, tid, 0, 0, 0, 0) == -ESRCH &&
		    fg_cas_relaxed(&th->tid, &tid, 0)) {
			next_generation(th);
			index_give_back(index);
		}
	}
	fg_call_ends(from);
	fg_store_relaxed(&lowest_word, 0);
}

uint32_t fg_threads_now(void)
{
	uint32_t highest = fg_threads_highest();
	int32_t gone = fg_load_relaxed(&spare);

	return gone > 0 && (uint32_t)gone < highest ? highest - (uint32_t)gone : highest;
}

uint32_t fg_index_take(void)
{
	uint32_t index = fg_load_relaxed(&spare) > 0 ? find_free() : 0;

	if (!index)
		index = find_fresh();
	if (fg_unlikely(!index)) /* whatever the hint says */
		index = find_free();
	if (fg_unlikely(!index)) {
		sweep();
		index = find_free();
	}
	if (index)
		fg_slots_used_up_to(index);
	return index;
}

/*
 * Where this process begins to count generations; never 0.  2047 processes in a
 * row differ, and neighbours are far apart (1267: coprime, near the golden section).
 */
static uint32_t gen_of_process(void)
{
	uint32_t pid = fg_load_relaxed(&process);

	if (!pid) /* a lock that is taken before */
		pid = fg_tid();
	return 1 + pid % FG_GEN_MASK * 1267 % FG_GEN_MASK;
}

/* An index that this process has not used yet; its generation is not what a parent's thread had. */
static void first_use(struct fg_thread *th)
{
	uint32_t gen = gen_of_process();

	fg_store_relaxed(&th->gen, (uint16_t)(gen + ((th->gen & FG_GEN_MASK) == gen)));
	fg_store_relaxed(&th->gens, 1);
}

/* Indices by tid, one for all tids that share a place: the latest is known.  Not varied. */
#define TIDS 1024u
static uint16_t by_tid[TIDS];

#define NOT_TAG (FG_RELEASED_COUNT | FG_RELEASED_DEFERS | FG_RELEASED_WRITES)

/* fg_thread.released of a thread with this generation, none released. */
static uint32_t none_released(uint32_t gen)
{
	_Static_assert(NOT_TAG >> (32 - FG_GEN_BITS) == 0, "the generation fits above them");
	return (gen & FG_GEN_MASK) << (32 - FG_GEN_BITS);
}

uint32_t fg_any_released_for;

/*
 * To defer takes some hundred instructions.  A thread that is longer about it is off its CPU, or in
 * a signal handler that may wait for the thread that waits here.  Not varied.
 */
#define DEFERS_LOOKS	64u
#define DEFERS_SLEEPS	10u
#define DEFERS_SLEEP_NS 20000u

/* Until the owner of `released` defers nothing, or is not to any more. */
static void wait_for_deferral(uint32_t *released, uint32_t tag)
{
	/* Acquire: pairs with fg_thread_has_deferred(). */
	uint32_t have = fg_load_acquire(released), nobody = 0;
	struct fg_deadline soon;

	for (uint32_t n = 1; (have & ~NOT_TAG) == tag; n++) {
		if (!(have & (FG_RELEASED_DEFERS | FG_RELEASED_WRITES)))
			return;
		/* With both a signal handler has come in between, and asked in vain. */
		if (!(have & FG_RELEASED_WRITES) && n > DEFERS_LOOKS + DEFERS_SLEEPS &&
		    fg_cas_acquire(released, &have, have & ~FG_RELEASED_DEFERS))
			return;
		fg_pause();
		/* On this CPU, perhaps: to yield would not do between priorities. */
		if (n > DEFERS_LOOKS) {
			fg_deadline_in(&soon, DEFERS_SLEEP_NS);
			fg_futex_wait(&nobody, 0, FG_FUTEX_ANY, &soon);
		}
		have = fg_load_acquire(released);
	}
}

void fg_thread_released_for(uint32_t id)
{
	uint32_t tag = none_released(id >> FG_INDEX_BITS), have, *released;

	if (!fg_thread_was(fg_id_index(id))) /* an id of another process */
		return;
	fg_store_relaxed(&fg_any_released_for, 1);
	released = &fg_thread_of(fg_id_index(id))->released;
	have = fg_load_relaxed(released);
	/* At the largest count it stays: an owner that holds so many may look critical for ever. */
	while ((have & ~NOT_TAG) == tag && (have & FG_RELEASED_COUNT) != FG_RELEASED_COUNT)
		if (fg_cas_acq_rel(released, &have, have + 1))
			break;
	/* Not for what a signal handler of its own has interrupted. */
	if (id != fg_self_tls.id)
		wait_for_deferral(released, tag);
}

uint32_t fg_thread_released_by_others(const struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);

	/* Only the owner resets the count. */
	return fg_and_acq_rel(&me->released, ~FG_RELEASED_COUNT) & FG_RELEASED_COUNT;
}

bool fg_id_is_foreign(uint32_t id)
{
	uint32_t index = fg_id_index(id), gen = id >> FG_INDEX_BITS & FG_GEN_MASK, gens, now;

	if (!fg_id_has_slot(id))
		return false;
	if (!fg_thread_was(index))
		return true;
	now = fg_load_acquire(&fg_thread_of(index)->gen);
	gens = fg_load_relaxed(&fg_thread_of(index)->gens);
	/* The last so many are, or were, ours; after a whole turn of the counter any may be. */
	return ((now - gen) & FG_GEN_MASK) >= gens;
}

uint32_t fg_id_of_tid(uint32_t tid)
{
	uint32_t index = fg_load_relaxed(&by_tid[tid % TIDS]);

	return index && fg_load_relaxed(&fg_thread_of(index)->tid) == tid ? fg_id_at(index) : 0;
}

uint32_t fg_id_begin(uint32_t index, uint32_t tid)
{
	struct fg_thread *th = fg_thread_of(index);

	if (!th->gens)
		first_use(th);
	fg_store_relaxed(&th->tid, tid);
	fg_store_relaxed(&by_tid[tid % TIDS], (uint16_t)index);
	fg_store_relaxed(&th->released, none_released(th->gen));
	return fg_id_at(index);
}

void fg_id_end(uint32_t index)
{
	next_generation(fg_thread_of(index));
	fg_store_relaxed(&fg_thread_of(index)->tid, 0);
	index_give_back(index);
}

void fg_ids_after_fork(uint32_t mine)
{
	uint32_t i;

	for (i = 1; i <= fg_threads_highest(); i++) {
		if (i == mine)
			continue;
		fg_thread_of(i)->gens = 0;
		fg_thread_of(i)->tid = 0;
		/* It does not go on here, and nobody waits for it. */
		fg_thread_of(i)->released &= ~(FG_RELEASED_DEFERS | FG_RELEASED_WRITES);
	}
	memset(used, 0, sizeof(used));
	lowest_word = 0;
	spare = (int32_t)fg_threads_highest() - (mine != 0);
	if (!mine)
		return;
	used[mine / 64] = 1ull << (mine % 64);
	fg_thread_of(mine)->tid = process;
	by_tid[process % TIDS] = (uint16_t)mine;
}

uint32_t fg_id_renew(uint32_t index)
{
	struct fg_thread *th = fg_thread_of(index);

	first_use(th);
	th->released = none_released(th->gen);
	return fg_id_at(index);
}
