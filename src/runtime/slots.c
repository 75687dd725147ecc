/* SPDX-License-Identifier: MIT */
/*
 * The memory of slots and nodes: chunks of FG_PIECE threads, mapped when they are needed,
 * in which the monitor's pieces take the place of our own pages.  Nothing here allocates
 * with malloc, since malloc may be what is taking its first lock.
 */
#include "runtime/slots.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "sys/filter.h"

uint32_t fg_slots_seen = FG_SLOTS_UNSEEN;

static struct fg_chunk first_chunk __attribute__((aligned(FG_PAGE_MAX)));
struct fg_chunk *fg_chunks[FG_CHUNKS] = {&first_chunk};
const struct fg_slot fg_no_slot;

static bool none_left; /* in a child of fork that may not have slots of its own */

static bool failed(long result)
{
	return result < 0 && result > -4096;
}

/* Whoever comes first maps it. */
bool fg_chunk_map(uint32_t n)
{
	struct fg_chunk *none = NULL;
	long mine;

	if (fg_unlikely(none_left))
		return false;
	if (fg_likely(fg_load_relaxed(&fg_chunks[n]) != NULL))
		return true;
	if (!fg_call_begins(n))
		return false;
	mine = fg_syscall6(SYS_mmap, 0, sizeof(struct fg_chunk), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (failed(mine)) {
		fg_call_ends(n);
		return false;
	}
	/* Release: a thread that reads a node's number in a lock (acquire) finds the node. */
	if (!__atomic_compare_exchange_n(&fg_chunks[n], &none, (struct fg_chunk *)mine, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		fg_syscall6(SYS_munmap, mine, sizeof(struct fg_chunk), 0, 0, 0, 0);
	fg_call_ends(n);
	return true;
}

static struct fg_slot_rest *rest(void)
{
	return (struct fg_slot_rest *)fg_chunks[0]->slot;
}

/*
 * How many indices of each chunk have been handed out; a few more may have been asked for.  The
 * highest ever is that of the last chunk in use.  All of it is sequentially consistent: a writer of
 * rwlock_write.c, which looks at all indices below after it has withdrawn the bias, must not miss a
 * thread that has seen the bias after it had been counted here.
 */
static uint32_t handed_out[FG_CHUNKS];
static uint32_t last_chunk;

/* Index 0 is nobody's. */
static uint32_t first_of(uint32_t chunk)
{
	return chunk ? chunk * FG_PIECE : 1;
}

uint32_t fg_threads_highest(void)
{
	uint32_t chunk = fg_load_seq_cst(&last_chunk);
	uint32_t next = first_of(chunk) + fg_load_seq_cst(&handed_out[chunk]);

	return (next < (chunk + 1) * FG_PIECE ? next : (chunk + 1) * FG_PIECE) - 1;
}

/* Raises *p to `value`; sequentially consistent, also where another thread has done so. */
static void raise_to(uint32_t *p, uint32_t value)
{
	uint32_t have = fg_load_seq_cst(p);

	while (have < value && !__atomic_compare_exchange_n(p, &have, value, true, __ATOMIC_SEQ_CST,
							    __ATOMIC_SEQ_CST))
		;
}

uint32_t fg_slots_next(void)
{
	uint32_t chunk = fg_load_seq_cst(&last_chunk), index;

	for (; chunk < FG_CHUNKS; chunk++) {
		uint32_t end = (chunk + 1) * FG_PIECE, *count = &handed_out[chunk];

		if (!fg_chunk_map(chunk))
			return 0;
		if (first_of(chunk) + fg_load_relaxed(count) >= end)
			continue;
		index = first_of(chunk) + __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
		if (index >= end)
			continue;
		raise_to(&last_chunk, chunk);
		return index;
	}
	return 0;
}

/*
 * The monitor looks at a few slots more than there are threads, so that not each thread that comes
 * writes here.  Not varied.
 */
#define HIGHEST_STEP 32u
_Static_assert(FG_PIECE % HIGHEST_STEP == 0, "of slots that are there");

void fg_slots_used_up_to(uint32_t index)
{
	/* behind the array too: the monitor knows how long that is */
	raise_to(&rest()->highest, index | (HIGHEST_STEP - 1));
}

void fg_slot_clear(struct fg_slot *slot, uint32_t id)
{
	slot->pending = 0;
	slot->node = 0;
	slot->cs = 0;
	slot->role = FG_ROLE_NONE;
	slot->acq_cpu = 0;
	slot->sections = 0;
	slot->participant = 0;
	slot->state = FG_STATE_UNKNOWN;
	slot->cpu = 0;
	slot->bound = 0;
	slot->displaces = 0;
	slot->shares_since = slot->turn = 0;
	slot->owner_id = id;
}

static long map_private(uint32_t chunk)
{
	return fg_syscall6(SYS_mmap, (long)fg_chunks[chunk]->slot, sizeof(fg_chunks[chunk]->slot),
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/*
 * Counts of threads whose slots no monitor looks at.  With a monitor they go to slot 0.
 * A child of fork is registered a little later (monitor_client.c); what it counts
 * before, `apart` keeps for slot 0.  Add and look here, publish and take in
 * fg_slots_map, all sequentially consistent: one of the two finds what the other has done.
 */
static uint64_t apart[FG_SLOT_STATS];

static void hand_over(uint32_t stat)
{
	uint64_t n = __atomic_exchange_n(&apart[stat], 0, __ATOMIC_SEQ_CST);

	if (n)
		fg_add_relaxed(&rest()->stats[stat], n);
}

void fg_count_apart(uint32_t stat, uint64_t n)
{
	if (fg_load_relaxed(&fg_slots_seen)) {
		fg_add_relaxed(&rest()->stats[stat], n);
		return;
	}
	__atomic_fetch_add(&apart[stat], n, __ATOMIC_SEQ_CST);
	if (fg_load_seq_cst(&fg_slots_seen) - 1 < FG_SLOTS_UNSEEN - 1)
		hand_over(stat);
}

void fg_slots_not_seen(void)
{
	uint32_t none = FG_SLOTS_APART;

	fg_cas_relaxed(&fg_slots_seen, &none, FG_SLOTS_UNSEEN);
}

/* Of the chunks from this one on, and of none behind the last that any thread has. */
static int make_private(uint32_t chunk, uint32_t end)
{
	long p;

	for (; chunk * FG_PIECE < end && fg_chunks[chunk]; chunk++) {
		p = map_private(chunk);
		if (failed(p))
			return (int)p;
	}
	return 0;
}

/*
 * What other threads had published is gone from a new page.  Each of them publishes again
 * at its next lock operation; only their ids are written once, and so are restored here.
 */
static void restore_ids(uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = from ? from : 1; i < to && i <= fg_threads_highest(); i++)
		if (fg_load_relaxed(&fg_thread_of(i)->tid))
			fg_store_relaxed(&fg_slot_of(i)->owner_id, fg_id_at(i));
}

int fg_slots_map(void *piece, uint32_t from, uint32_t to)
{
	struct fg_self *t = &fg_self_tls;
	bool have_slot = fg_id_has_slot(t->id);
	struct fg_slot mine = have_slot ? *t->slot : (struct fg_slot){0};
	uint32_t before = fg_slots_seen == FG_SLOTS_UNSEEN ? 0 : fg_slots_seen,
		 chunk = from / FG_PIECE, i;
	long size = (long)((to - from) * sizeof(struct fg_slot)), p = 0;

	if (piece && (from % FG_PIECE || from >= to || to - from > FG_PIECE || !fg_chunks[chunk]))
		return -EINVAL;
	if (!piece)
		p = make_private(0, FG_MAX_THREADS);
	else if (!from) /* what an earlier monitor granted must not stay */
		p = make_private(to < before && to < FG_PIECE ? 0 : 1, before);
	if (failed(p))
		return (int)p;
	if (piece)
		p = fg_syscall6(SYS_mremap, (long)piece, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
				(long)fg_chunks[chunk]->slot, 0);
	if (failed(p))
		return (int)p;
	if (piece)
		restore_ids(from, from || to > before ? to : before);
	raise_to(&rest()->highest, fg_threads_highest());
	__atomic_store_n(&fg_slots_seen, !piece ? FG_SLOTS_UNSEEN : to, __ATOMIC_SEQ_CST);
	for (i = 0; piece && i < FG_SLOT_STATS; i++)
		hand_over(i);
	if (have_slot) {
		t->slot->owner_id = t->id;
		t->slot->pending = mine.pending;
		t->slot->cs = mine.cs;
		t->slot->sections = fg_sections;
		t->slot->node = mine.node;
		t->slot->role = mine.role;
	}
	return 0;
}

bool fg_slots_short(void)
{
	uint32_t seen = fg_load_relaxed(&fg_slots_seen);

	return seen && seen % FG_PIECE == 0 && seen < FG_PIECES * FG_PIECE &&
	       fg_threads_highest() >= seen;
}

/*
 * Slots of this process alone, in a child of fork that may make no calls, or gets no pages: there
 * are too many mappings, perhaps.  The monitor's array is its parent's, which must not be written
 * to: the thread that forked goes on with its slot and its nodes in a chunk of the library's data;
 * those that come have none, and sleep instead of queueing.
 */
static void slots_without_pages(struct fg_self *t, uint32_t mine)
{
	static struct fg_chunk own;
	uint32_t chunk = mine / FG_PIECE, i;

	none_left |= fg_slots_seen != FG_SLOTS_UNSEEN && fg_slots_seen != FG_SLOTS_APART;
	if (none_left && !mine)
		t->slot = &fg_slot_nowhere;
	if (none_left && mine && fg_chunks[chunk] != &own) {
		memcpy(own.thread, fg_chunks[chunk]->thread, sizeof(own.thread));
		own.slot[mine % FG_PIECE] = *t->slot;
		fg_chunks[chunk] = &own;
		t->slot = fg_slot_of(mine); /* and fg_thread_mine() beside it */
	}
	for (i = 1; !none_left && i <= fg_threads_highest(); i++)
		if (i != mine)
			fg_slot_clear(fg_slot_of(i), 0);
}

void fg_slots_after_fork(struct fg_self *t, uint32_t mine)
{
	bool counted = fg_slots_seen != FG_SLOTS_UNSEEN;

	/* The parent's pages are not ours, also where there is no memory in their place. */
	if (fg_is_filtered() || fg_slots_map(NULL, 0, 0))
		slots_without_pages(t, mine);
	memset(apart, 0, sizeof(apart));
	fg_slots_seen = counted ? FG_SLOTS_APART : FG_SLOTS_UNSEEN;
}
