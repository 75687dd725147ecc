/* SPDX-License-Identifier: MIT */
/*
 * Threads: who I am, what I publish, and the queue nodes that serve all my locks.
 *
 * A thread has three pieces of memory, 318 bytes in all (and spinlocks, condition variables, things
 * done once, events and reader-writer locks keep 43 more in thread-local storage, spin.c, cond.c,
 * once.c, decide.c and visible.h, these 128 in a table as well):
 *
 *   fg_self    in its thread-local storage, as fg_sections: the truth about itself
 *   fg_slot    in the page that the monitor sees: a copy of what matters.  The
 *              thread only stores to it and believes nothing in it: the monitor
 *              may be a liar, and a child of a raw clone() shares the page
 *   fg_thread  in private memory that outlives the thread (neighbours in a
 *              queue may still look at it) and is copied by fork
 */
#ifndef FG_THREAD_H
#define FG_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/protocol.h"
#include "sys/atomic.h"

/* queue nodes a thread: one for each signal handler nested in a wait, and spares; not varied */
#define FG_NODES     3
#define FG_NODE_STEP 4u /* their numbers begin at so many times its index */

/*
 * More threads than this at once run without slot and nodes: they sleep instead of queueing.  The
 * id of an owner has room for no more (FG_GEN_BITS above it).
 */
#define FG_INDEX_BITS  16
#define FG_MAX_THREADS (1u << FG_INDEX_BITS)

/*
 * Ids are index | generation << 16.  The generation changes whenever an index
 * changes hands, so that a lock left behind by a dead thread does not look like
 * the property of a new one.  The first generation differs between processes,
 * so that a lock in shared memory shows its foreign owner (foreign_process.h).
 * Bit 27 marks a thread without index: tid | bit 27.
 */
#define FG_GEN_BITS   11
#define FG_GEN_MASK   ((1u << FG_GEN_BITS) - 1)
#define FG_ID_NO_SLOT 0x08000000u
#define FG_ID_NOBODYS 0xffffffffu /* no lock word has it */

/* In fg_thread.released; above them the generation of the index. */
#define FG_RELEASED_COUNT  0x07ffffu
#define FG_RELEASED_DEFERS 0x080000u /* the thread is between fg_thread_defers() and the next */
#define FG_RELEASED_WRITES 0x100000u /* it is between fg_thread_writes() and its end */

struct fg_node {
	uint32_t next;	/* 0, the successor's number, or FG_NODE_HANDED */
	uint32_t state; /* incarnation << 3 | enum fg_node_state */
	uint64_t aside; /* of a head: those that wait beside the queue (src/lock/near.c) */
};

/*
 * From an owner to the head behind it.  A hint: plain stores, by which a thread that waits
 * for another lock by now only looks at that one's word.
 */
enum fg_notice {
	FG_NOTICE_NONE = 0,
	FG_NOTICE_COMES = 1,   /* the standby is ahead: the word need not be looked at */
	FG_NOTICE_STANDBY = 2, /* that one has the lock, and will tell when it releases it */
	FG_NOTICE_FREE = 3,    /* it does */
};

/* fg_thread.offer: 0, or the address of a lock and one of these (src/lock/offer.h). */
enum {
	FG_OFFER_MADE = 1,
	FG_OFFER_GIVEN = 2,
	FG_OFFER_ENDS = 4,
	FG_OFFER_BITS = FG_OFFER_MADE | FG_OFFER_GIVEN | FG_OFFER_ENDS,
};

struct fg_thread {
	/*
	 * A line that others write to while I wait in a queue, and read; what I note of myself is
	 * in the other one, which stays here.
	 */
	struct fg_node node[FG_NODES];
	uint8_t notice; /* to me as the head: enum fg_notice */
	/* to be given a lock; others write it, too */
	uint64_t offer __attribute__((aligned(FG_CACHE_LINE)));
	/* bit k: node k is in use by a frame of this thread; only the thread writes it */
	uint8_t nodes_used : FG_NODES;
	/* my pauses as the head of late, of whatever lock, while it lay free (lock_spin.c) */
	uint8_t in_vain : 2;
	/* 1 + the node in which I was given a lock, and am the head of its queue; 0: none */
	uint8_t kept : 2;
	uint8_t others_sleep : 1; /* at my latest look at the word of a lock that I was given */
	/*
	 * my turn with `kept_busy` is over, and the thread that I have woken comes first (lock.c)
	 */
	uint8_t yields : 1;
	/* counts locks got by spinning, to look at some whether I am a real-time thread (lock.c) */
	uint8_t spun : 7;
	/*
	 * low bits of fg_lock.wakes after my latest wake-up; once they differ, the thread that I
	 * woke has had the lock
	 */
	uint16_t woke;
	/* locks of this thread that others released for it: FG_RELEASED_*; atomic */
	uint32_t released;
	uint32_t tid; /* 0 = nobody has the index */
	uint16_t gen; /* generation of the index; only written while nobody has the index */
	/* generations that this process gave the index, up to a whole turn; 0 = new here */
	uint16_t gens;
	/* index of the head that my release tells; 0 = none (lock_spin.c) */
	uint16_t notifies;
	uint8_t slice : 2;	/* of mine: enum fg_slice (slice.h) */
	uint8_t barges : 4;	/* counts values taken past sleepers, to time some (sem.c) */
	uint8_t sleepers : 1;	/* others slept when I took the lock as the head (lock.c) */
	uint8_t leaves_cpu : 1; /* I am a real-time thread, and my turn is over (lock.c) */
	/* a timed round (rounds.h): since when, part of the address of its lock, is it released? */
	uint16_t round_since; /* in units of so many ns, low bits */
#define FG_ROUND_UNIT_NS 16u
	uint16_t round_of : 9;
	uint16_t round_is_released : 1;
	/* how long it was held, same units; before that, not 0: was short when a hand-over began */
	uint16_t round_section : 6;
	/* the lock that I keep busy (lock_release.c), low bits of its address */
	uint32_t kept_busy;
	/* of which lock: part of its address (held.h) */
	uint16_t notifies_of;
	/* a timed round of a native lock: since when, in the same units; 0 = none is timed */
	uint16_t native_since;
} __attribute__((aligned(FG_CACHE_LINE)));
_Static_assert(sizeof(struct fg_thread) == 2 * FG_CACHE_LINE, "two lines a thread");

struct fg_self {
	/* the eBPF program reads this once.  slot 0, check not: see fg_former_id() */
	struct fg_tls_bind bind;
	uint64_t only; /* address of the lock that this thread took or takes last, and FG_ONLY_* */
	struct fg_slot *slot;
	const uint32_t *cpu; /* cpu_id of the rseq area: the CPU that I run on */
	uint64_t first;	     /* of several: what `only` was before the second one (held.h) */
	uint32_t id;	     /* what lock words hold while this thread owns them; 0 = not set up */
	uint32_t turn_began_us; /* when I woke up, or my last turn ended; low bits of the clock */
	/* when I last released a lock that others sleep on, or, if I keep it busy, woke up; same */
	uint32_t released_us;
	uint16_t held;	       /* locks held or taken; valid iff `only` has FG_ONLY_SEVERAL */
	uint8_t role : 2;      /* what slot->role says */
	uint8_t turn_over : 1; /* sleep when I next have to wait (lock_paths.h) */
	/*
	 * locks were not released in reverse order, or one has another use for its `prev`
	 * (mutex.c): the chain is stale; or treated so, to have the releases come the long way
	 * (slice.h)
	 */
	uint8_t unordered : 1;
	uint8_t short_rounds : 2; /* of the timed ones, were most short? (rounds.h) */
	/* I often release `kept_busy` while others sleep for it (lock_release.c) */
	uint8_t keeps_busy : 1;
	uint8_t round_is_timed : 1; /* the one that has begun (rounds.h) */
	uint8_t times_head : 4;	    /* counts locks got as the head, to time some of their rounds */
	/* counts releases with sleepers since I woke up, to look at the clock at some of them */
	uint8_t busy_releases : 4;
};
_Static_assert(sizeof(struct fg_self) + sizeof(uint32_t) + sizeof(uint16_t) +
		       sizeof(struct fg_slot) + sizeof(struct fg_thread) <
		   320,
	       "README says how many");

/*
 * The fast paths serve a thread that holds one lock at a time, and know all that they need from
 * this one field.  No address is below 4096; the kernel sleeps on multiples of 4 only, so two bits
 * are free.  A signal handler between any two instructions finds a whole state: `only` is one
 * store, and `held` is what a handler leaves there (held.h).
 */
enum {
	FG_ONLY_NONE = 0,
	/*
	 * A bit: taken the slow way, and its release goes there at once; of several, has a standby
	 * to tell.  Alone: nothing is held, and the next lock goes there.
	 */
	FG_ONLY_SLOWLY = 1,
	/*
	 * A bit: the latest of several, which `held` counts, and `first` and `prev` chain.  Alone:
	 * which one is the latest is unknown.
	 */
	FG_ONLY_SEVERAL = 2,
	FG_ONLY_BITS = FG_ONLY_SLOWLY | FG_ONLY_SEVERAL,
	FG_ONLY_NOT_SET_UP = 4, /* initial value of thread-local storage */
};

extern struct fg_slot fg_slot_nowhere; /* where threads without index publish; nobody reads it */
extern __thread struct fg_self fg_self_tls;
extern __thread uint32_t fg_sections;  /* what slot->sections says; apart, to keep fg_self small */
extern __thread uint16_t fg_contended; /* waits of this thread for held locks */
extern uint32_t fg_epoch;	       /* counts forks, for queues copied from a parent */

/*
 * The slots and nodes of FG_PIECE threads.  The first chunk is part of the library.  Each
 * other is mapped when a thread needs it, and stays: nothing is reserved, since a
 * program that locks its memory (mlockall) pays for what is reserved, too.
 */
#define FG_CHUNKS (FG_MAX_THREADS / FG_PIECE)
struct fg_chunk {
	struct fg_slot slot[FG_PIECE]; /* whole pages: the monitor's piece takes its place */
	struct fg_thread thread[FG_PIECE];
};
extern struct fg_chunk *fg_chunks[FG_CHUNKS]; /* NULL: no thread has had one of these indices */
extern const struct fg_slot fg_no_slot;
extern uint32_t fg_slots_seen; /* the monitor sees the slots below this index, or one of these */
#define FG_SLOTS_UNSEEN UINT32_MAX /* no monitor */
#define FG_SLOTS_APART	0	   /* none yet, in a child of fork that will ask for one */

void fg_thread_init(struct fg_self *t);

static inline struct fg_self *fg_self(void)
{
	struct fg_self *t = &fg_self_tls;

	if (fg_unlikely(t->only == FG_ONLY_NOT_SET_UP))
		fg_thread_init(t);
	return t;
}

/*
 * The id that this thread had until the first round of destructors of its thread-specific data:
 * what it held then it may still release in a later one.  FG_ID_NOBODYS: it held nothing.  From
 * there on it has no index, so that none is lost with it.
 */
static inline uint32_t fg_former_id(const struct fg_self *t)
{
	return t->bind.slot ? 0 : t->bind.check;
}

/*
 * False in the child of a clone() that runs no fork handlers, where threads of the parent look as
 * if they waited; and where the kernel cannot tell.
 */
extern const uint32_t *fg_not_forked;

static inline bool fg_is_not_forked(void)
{
	return fg_load_relaxed(fg_not_forked) != 0;
}

/* Library life cycle (thread.c); the monitor's part is in monitor_client.c. */
/* `ends` is called by a thread that ends, as long as it has its index. */
void fg_threads_setup(void (*ends)(struct fg_self *));
void fg_threads_after_fork(void);  /* in the child, by its only thread */
uint32_t fg_threads_highest(void); /* index ever handed out; whoever has one has it from before */
uint32_t fg_threads_now(void);	   /* that have an index, nearly: a hint */

/*
 * Moves the piece of the shared array that is mapped at `piece` to the place of the private
 * slots from..to-1.  From 0: all others become private; with NULL, these as well.
 */
int fg_slots_map(void *piece, uint32_t from, uint32_t to);
/* more threads than slots that the monitor sees, and it may have another piece */
bool fg_slots_short(void);

/* Of an index that a thread of this process has, or had. */
static inline struct fg_thread *fg_thread_of(uint32_t index)
{
	return &fg_chunks[index / FG_PIECE]->thread[index % FG_PIECE];
}

/* Of whoever has the index now. */
static inline uint32_t fg_id_at(uint32_t index)
{
	uint32_t gen = fg_load_relaxed(&fg_thread_of(index)->gen) & FG_GEN_MASK;

	return gen << FG_INDEX_BITS | index;
}

/* Of any index that stands in somebody's lock: a thread that never was has a slot of zeroes. */
static inline bool fg_thread_was(uint32_t index)
{
	return fg_load_relaxed(&fg_chunks[index / FG_PIECE]) != NULL;
}

static inline const struct fg_slot *fg_slot_look(uint32_t index)
{
	const struct fg_chunk *chunk = fg_load_relaxed(&fg_chunks[index / FG_PIECE]);

	return chunk ? &chunk->slot[index % FG_PIECE] : &fg_no_slot;
}

/* It is neither 0, nor does it have the bit; those above that are not set. */
static inline bool fg_id_has_slot(uint32_t id)
{
	return id - 1 < FG_ID_NO_SLOT - 1;
}

static inline uint32_t fg_id_index(uint32_t id)
{
	return id & (FG_MAX_THREADS - 1);
}

/* Of a thread that is set up. */
static inline bool fg_has_slot(const struct fg_self *t)
{
	return !(t->id & FG_ID_NO_SLOT);
}

/* Of a thread with a slot: in the same chunk, so that its own paths need not look for that. */
static inline struct fg_thread *fg_thread_mine(const struct fg_self *t)
{
	return (struct fg_thread *)((char *)t->slot + offsetof(struct fg_chunk, thread) -
				    t->id % FG_PIECE *
					(sizeof(struct fg_slot) - sizeof(struct fg_thread)));
}

/* False for threads behind the monitor's array, or before there is one: they count together. */
static inline bool fg_slot_is_own(const struct fg_self *t)
{
	return (t->id & (FG_ID_NO_SLOT | (FG_MAX_THREADS - 1))) < fg_load_relaxed(&fg_slots_seen);
}

void fg_count_apart(uint32_t stat, uint64_t n); /* enum fg_slot_stat; in units of slots */
void fg_slots_not_seen(void);			/* no monitor has answered the child of fork */

/*
 * A lock of the thread with this id is about to be released for it.  Not if another thread
 * has the index by now: it may be gone, and has left the lock behind.  After it that thread defers
 * nothing to the release of such a lock, and what it has deferred is seen.
 */
void fg_thread_released_for(uint32_t id);
/*
 * How many locks of the calling thread, which has a slot, others have released since it last asked.
 */
uint32_t fg_thread_released_by_others(const struct fg_self *t);

/*
 * Three steps of a thread with a slot, which leaves something to do to the release of a lock that
 * it holds.  First it says that it might.  False: somebody may have released it, or it is here
 * already and a signal handler has come in between.
 */
static inline void fg_thread_has_deferred(struct fg_thread *me)
{
	/* Release: who releases it now sees what was left to do. */
	fg_and_release(&me->released, ~(FG_RELEASED_DEFERS | FG_RELEASED_WRITES));
}

static inline bool fg_thread_defers(struct fg_thread *me)
{
	uint32_t had = fg_or_acquire(&me->released, FG_RELEASED_DEFERS);

	if (!(had & (FG_RELEASED_COUNT | FG_RELEASED_DEFERS | FG_RELEASED_WRITES)))
		return true;
	if (!(had & (FG_RELEASED_DEFERS | FG_RELEASED_WRITES)))
		fg_thread_has_deferred(me);
	return false;
}

/*
 * Second, for a few instructions, in which whoever releases the lock for it waits: until
 * fg_thread_has_deferred(), the third, it may write to the lock.  False: one would not wait any
 * longer, and the lock may be gone.
 */
static inline bool fg_thread_writes(struct fg_thread *me)
{
	uint32_t have = fg_load_relaxed(&me->released);

	while (have & FG_RELEASED_DEFERS)
		if (fg_cas_acquire(&me->released, &have,
				   have + FG_RELEASED_WRITES - FG_RELEASED_DEFERS))
			return true;
	return false;
}

/*
 * Has that happened in this process?  Few programs do it, and to ask a thread takes seven
 * instructions more.
 */
extern uint32_t fg_any_released_for __attribute__((visibility("hidden")));

static inline bool fg_thread_has_released_by_others(const struct fg_self *t)
{
	return fg_unlikely(fg_load_relaxed(&fg_any_released_for) != 0) &&
	       fg_load_relaxed(&fg_thread_mine(t)->released) & FG_RELEASED_COUNT;
}

/*
 * True if this thread, when it came on last, took its CPU from another thread
 * of this process: more of them are awake than have room.
 */
static inline bool fg_displaces(const struct fg_self *t)
{
	return fg_load_relaxed(&t->slot->displaces) != 0;
}

/*
 * True if this thread, when it came on last, had waited for its CPU and took it from another
 * process that wanted to go on: it shares it.  Until it has made use of that (fg_give_way).
 */
static inline bool fg_shares_cpu(const struct fg_self *t)
{
	return fg_load_relaxed(&t->slot->shares_since) != 0;
}

/* The kernel's id of this thread. */
static inline uint32_t fg_thread_tid(const struct fg_self *t)
{
	return fg_id_has_slot(t->id) ? fg_thread_mine(t)->tid : t->id & ~FG_ID_NO_SLOT;
}

/* The id of the thread of this process with this tid; 0: none, or not known.  A look at a table. */
uint32_t fg_id_of_tid(uint32_t tid);

/* True if no thread of this process has, or had, this id.  Errs on the side of false. */
bool fg_id_is_foreign(uint32_t id);

/* ---- publication.  Plain stores; the eBPF program runs on this CPU, in program order. ---- */

static inline void fg_set_pending(struct fg_self *t, uint64_t addr)
{
	fg_store_relaxed(&t->slot->pending, addr);
	fg_fence_local();
}

static inline void fg_set_cs(struct fg_self *t, uint32_t cs)
{
	fg_store_relaxed(&t->slot->cs, cs);
	fg_fence_local();
}

/*
 * Sections that others wait for and that have no lock word with an owner in it:
 * read locks, spinlocks.  One preempted inside is on the critical path.
 */
static inline void fg_section_enter(struct fg_self *t)
{
	fg_store_relaxed(&t->slot->sections, ++fg_sections);
	fg_fence_local();
}

static inline void fg_section_leave(struct fg_self *t)
{
	/* One that another thread entered: what POSIX leaves open, and programs do. */
	if (fg_sections)
		fg_store_relaxed(&t->slot->sections, --fg_sections);
	fg_fence_local();
}

/*
 * Between two waits at a barrier: all the others that are at it wait for this
 * thread.  fg_decide() looks for those that are kept off the CPUs.
 */
static inline void fg_participant_leaves(struct fg_self *t)
{
	fg_store_relaxed(&t->slot->participant, 1);
}

static inline void fg_participant_arrives(struct fg_self *t)
{
	fg_store_relaxed(&t->slot->participant, 0);
}

static inline void fg_set_role(struct fg_self *t, enum fg_role role)
{
	t->role = (uint8_t)role & 3;
	fg_store_relaxed(&t->slot->role, role);
	fg_fence_local();
}

#endif
