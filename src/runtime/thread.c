/* SPDX-License-Identifier: MIT */
/*
 * Giving threads an identity: an index (slot, nodes), an id, and both back at
 * the thread's end.  There is no hook at thread creation: a thread sets itself
 * up when it first takes a lock, and a destructor of thread-specific data
 * takes it down.  Nothing here allocates with malloc, since malloc may be what
 * is taking its first lock.
 */
#include "runtime/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/arch.h"
#include "runtime/count.h"
#include "runtime/monitor_client.h"
#include "sys/filter.h"
#include "sys/libc.h"

__thread struct fg_self fg_self_tls __attribute__((tls_model("initial-exec"), aligned(8))) = {
	.only = FG_ONLY_NOT_SET_UP
};
__thread uint32_t fg_sections __attribute__((tls_model("initial-exec")));
uint32_t fg_slots_seen = FG_SLOTS_UNSEEN;
uint32_t fg_epoch;

static struct fg_chunk first_chunk __attribute__((aligned(FG_PAGE_MAX)));
struct fg_chunk *fg_chunks[FG_CHUNKS] = { &first_chunk };
const struct fg_slot fg_no_slot;

/* Where threads without index publish; nobody reads it. */
static struct fg_slot nowhere;
static const uint32_t no_cpu = ~0u;

static uint64_t used[FG_MAX_THREADS / 64]; /* indices handed out; index 0 is never */
static uint32_t lowest_word;		   /* hint: no free index below this word of `used` */
static uint32_t highest_index;		   /* ever handed out */
static bool none_left;			   /* in a child of fork that may not have slots of its own */
static pthread_key_t exit_key;
static bool have_exit_key;

static bool failed(long result)
{
	return result < 0 && result > -4096;
}

/* Whoever comes first maps it.  False: no memory, or none that may be locked, or no call for it (sys/filter.h). */
static bool have_chunk(uint32_t n)
{
	struct fg_chunk *none = NULL;
	long mine;

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
	/* Release: who reads a node's number in a lock (acquire) finds the node. */
	if (!__atomic_compare_exchange_n(&fg_chunks[n], &none, (struct fg_chunk *)mine, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		fg_syscall6(SYS_munmap, mine, sizeof(struct fg_chunk), 0, 0, 0, 0);
	fg_call_ends(n);
	return true;
}

/*
 * Sequentially consistent, also where another thread has raised it already: who looks at all indices below (rwlock.c's
 * writers, after they have withdrawn the bias) must not miss a thread that has seen the bias after it had raised this.
 */
static void raise(uint32_t *p, uint32_t value)
{
	uint32_t have = fg_load_seq_cst(p);

	while (have < value &&
	       !__atomic_compare_exchange_n(p, &have, value, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static struct fg_slot_rest *rest(void)
{
	return (struct fg_slot_rest *)fg_chunks[0]->slot;
}

static void raise_highest(uint32_t index)
{
	raise(&highest_index, index);
	raise(&rest()->highest, index); /* behind the array too: the monitor knows how long that is */
}

uint32_t fg_threads_highest(void)
{
	return fg_load_seq_cst(&highest_index);
}

static uint32_t index_take(void)
{
	uint32_t word;

	if (fg_unlikely(none_left))
		return 0;
	for (word = fg_load_relaxed(&lowest_word); word < FG_MAX_THREADS / 64; word++) {
		uint64_t have = fg_load_relaxed(&used[word]) | (word == 0);

		if (~have && !have_chunk(word * 64 / FG_PIECE))
			return 0;
		while (~have) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~have);

			/* Acquire: pairs with the release in index_give_back; the node states are seen. */
			have = fg_or_acquire(&used[word], 1ull << bit) | (word == 0);
			if (!(have & (1ull << bit))) {
				fg_store_relaxed(&lowest_word, word);
				raise_highest(word * 64 + bit);
				return word * 64 + bit;
			}
		}
	}
	return 0;
}

static void index_give_back(uint32_t index)
{
	uint32_t word = index / 64;

	fg_and_release(&used[word], ~(1ull << (index % 64)));
	if (word < fg_load_relaxed(&lowest_word))
		fg_store_relaxed(&lowest_word, word);
}

/*
 * No index is to be had: some may belong to threads that ended without telling (see thread_exit).  Each
 * thread that finds it so asks for a few of them, the next one for the next few.
 */
#define SWEEP 64u

static void sweep(void)
{
	static uint32_t hand;
	uint32_t from = fg_add_relaxed(&hand, SWEEP), highest = fg_threads_highest(), i;
	long pid;

	if (!fg_call_begins(from))
		return;
	pid = fg_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0);

	for (i = 0; i < SWEEP && highest; i++) {
		uint32_t index = 1 + (from + i) % highest;
		struct fg_thread *th = fg_thread_of(index);
		uint32_t tid = fg_load_relaxed(&th->tid);

		if (tid && fg_syscall6(SYS_tgkill, pid, tid, 0, 0, 0, 0) == -ESRCH &&
		    fg_cas_relaxed(&th->tid, &tid, 0)) {
			th->gen++;
			index_give_back(index);
		}
	}
	fg_call_ends(from);
	fg_store_relaxed(&lowest_word, 0);
}

#define GEN_MASK ((1u << FG_GEN_BITS) - 1)

static uint32_t process; /* its id, from the start of the library on */

/*
 * Where this process begins to count generations; never 0.  4095 processes in a
 * row differ, and neighbours are far apart (2531: coprime, near the golden section).
 */
static uint32_t gen_of_process(void)
{
	uint32_t pid = fg_load_relaxed(&process);

	if (!pid) /* a lock that is taken before */
		pid = fg_tid();
	return 1 + pid % GEN_MASK * 2531 % GEN_MASK;
}

/* An index that this process has not used yet; its generation is not what a parent's thread had. */
static void first_use(struct fg_thread *th)
{
	uint32_t gen = gen_of_process();

	th->gen = gen + ((th->gen & GEN_MASK) == gen);
	fg_store_relaxed(&th->first_gen, th->gen);
}

/* Indices by tid, one for all tids that share a place: who came last is known. */
#define TIDS 1024u
static uint16_t by_tid[TIDS];

static uint32_t id_at(uint32_t index)
{
	return (fg_load_relaxed(&fg_thread_of(index)->gen) & GEN_MASK) << FG_INDEX_BITS | index;
}

/* fg_thread.foreign of a thread with this generation, none released. */
static uint32_t none_released(uint32_t gen)
{
	_Static_assert(FG_RELEASED_COUNT >> (32 - FG_GEN_BITS) == 0, "the generation fits above the count");
	return (gen & GEN_MASK) << (32 - FG_GEN_BITS);
}

void fg_thread_released_for(uint32_t id)
{
	uint32_t tag = none_released(id >> FG_INDEX_BITS), have, *foreign;

	if (!fg_thread_was(fg_id_index(id))) /* an id of another process */
		return;
	foreign = &fg_thread_of(fg_id_index(id))->foreign;
	have = fg_load_relaxed(foreign);
	/* At the largest count it stays: an owner that holds so many may look critical for ever. */
	while ((have & ~FG_RELEASED_COUNT) == tag && (have & FG_RELEASED_COUNT) != FG_RELEASED_COUNT)
		if (fg_cas_relaxed(foreign, &have, have + 1))
			break;
}

uint32_t fg_thread_released_by_others(const struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);

	/* Only the owner writes the generation, and resets the count. */
	return fg_xchg_acq_rel(&me->foreign, none_released(me->gen)) & FG_RELEASED_COUNT;
}

bool fg_id_is_foreign(uint32_t id)
{
	uint32_t index = fg_id_index(id), gen = id >> FG_INDEX_BITS & GEN_MASK, first, now;

	if (!fg_id_has_slot(id))
		return false;
	if (!fg_thread_was(index))
		return true;
	first = fg_load_relaxed(&fg_thread_of(index)->first_gen);
	now = fg_load_relaxed(&fg_thread_of(index)->gen);
	if (!first)
		return true;
	/* From the first to the present one it is, or was, ours; after a whole turn of the counter any may be. */
	return now - first <= GEN_MASK && ((gen - first) & GEN_MASK) > now - first;
}

uint32_t fg_id_of_tid(uint32_t tid)
{
	uint32_t index = fg_load_relaxed(&by_tid[tid % TIDS]);

	return index && fg_load_relaxed(&fg_thread_of(index)->tid) == tid ? id_at(index) : 0;
}

static struct fg_slot *slot_of(uint32_t index)
{
	return &fg_chunks[index / FG_PIECE]->slot[index % FG_PIECE];
}

static const uint32_t *rseq_cpu(void)
{
	const struct rseq *area;

	if (__rseq_size == 0) /* switched off by a tunable, or a kernel without */
		return &no_cpu;
	area = (const struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	return &area->cpu_id;
}

/* A slot that says: this thread holds nothing, waits for nothing.  What was counted in it stays (protocol.h). */
static void slot_clear(struct fg_slot *slot, uint32_t id)
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
	slot->owner_id = id;
}

void fg_thread_init(struct fg_self *t)
{
	bool again = fg_former_id(t) != 0;
	uint32_t tid, index;

	fg_filter_setup();
	tid = fg_tid();
	index = again ? 0 : index_take();
	if (!index && !again) {
		sweep();
		index = index_take();
	}
	t->role = FG_ROLE_NONE;
	/* What it knows of a lock, or of a round, another thread's line has by now. */
	t->busy = t->timing = t->turn_over = 0;
	t->cpu = rseq_cpu();
	if (!again)
		fg_sections = 0;
	if (index) {
		struct fg_thread *me = fg_thread_of(index);
		uint32_t id;

		if (!me->first_gen)
			first_use(me);
		id = id_at(index);
		fg_store_relaxed(&me->tid, tid);
		fg_store_relaxed(&by_tid[tid % TIDS], (uint16_t)index);
		me->busy = me->yields = 0;
		fg_store_relaxed(&me->foreign, none_released(me->gen));
		t->slot = slot_of(index);
		slot_clear(t->slot, id);
		fg_fence_local();
		t->bind.check = index ^ FG_TLS_MAGIC;
		fg_store_relaxed(&t->bind.slot, index);
		t->id = id;
	} else {
		t->slot = &nowhere;
		t->id = FG_ID_NO_SLOT | tid;
	}
	t->only = FG_ONLY_NONE;
	if (again)
		return;
	fg_count_thread(t);
	if (!fg_slot_is_own(t) && fg_load_relaxed(&fg_slots_seen) != FG_SLOTS_APART)
		fg_count(t, FG_STAT_UNMONITORED, 1);
	/* Keys below 32 need no memory; above, this may call malloc: a lock taken there is ready by now. */
	if (have_exit_key)
		fg_libc_pthread_setspecific()(exit_key, t);
	if (fg_unlikely(fg_load_relaxed(&fg_monitor_asleep)) && !__libc_single_threaded)
		fg_monitor_wake();
}

/*
 * Runs among the destructors of thread-specific data, and there is no later hook.  Others may come after it, in this
 * round and in further ones, that lock, and that release what the thread has held all the time.  So the thread keeps its id
 * in mind (fg_former_id), and is set up again without an index if it has to be.
 */
static void thread_exit(void *arg)
{
	struct fg_self *t = &fg_self_tls; /* not `arg`, which a program with a stray key may have set */
	uint32_t id = t->id, index = fg_id_index(id);

	(void)arg;
	if (!fg_id_has_slot(id)) /* the second time, or none was free: it has nothing to give back */
		return;
	/* In an order in which a signal handler may lock after each step. */
	t->bind.slot = 0;
	fg_fence_local();
	t->bind.check = id;
	slot_clear(t->slot, 0);
	t->slot = &nowhere;
	fg_fence_local();
	t->only = FG_ONLY_NOT_SET_UP;
	fg_fence_local();
	fg_cas_relaxed(&t->id, &id, 0);
	fg_thread_of(index)->gen++;
	fg_store_relaxed(&fg_thread_of(index)->tid, 0);
	index_give_back(index);
}

/*
 * Not key 0: a program that uses a key which it has not created (they are static and
 * zero) is told EINVAL without us, and shall be with us.
 */
static bool create_key(pthread_key_t *key)
{
	pthread_key_t zero;

	if (pthread_key_create(key, thread_exit))
		return false;
	if (*key)
		return true;
	zero = *key;
	if (pthread_key_create(key, thread_exit))
		return true; /* the last one of all */
	pthread_key_delete(zero);
	return true;
}

void fg_threads_setup(void)
{
	process = fg_is_filtered() ? fg_tid() : (uint32_t)fg_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	have_exit_key = create_key(&exit_key);
	/* The thread that runs the constructors may have locked before there was a key. */
	if (have_exit_key && fg_self_tls.id)
		fg_libc_pthread_setspecific()(exit_key, &fg_self_tls);
}

static long map_private(uint32_t chunk)
{
	return fg_syscall6(SYS_mmap, (long)fg_chunks[chunk]->slot, sizeof(fg_chunks[chunk]->slot),
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
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
			fg_store_relaxed(&slot_of(i)->owner_id, id_at(i));
}

int fg_slots_map(int fd, uint32_t from, uint32_t to)
{
	struct fg_self *t = &fg_self_tls;
	bool have_slot = fg_id_has_slot(t->id);
	struct fg_slot mine = have_slot ? *t->slot : (struct fg_slot){ 0 };
	uint32_t before = fg_slots_seen == FG_SLOTS_UNSEEN ? 0 : fg_slots_seen, chunk = from / FG_PIECE, i;
	long p = 0;

	if (fd >= 0 && (from % FG_PIECE || from >= to || to - from > FG_PIECE || !fg_chunks[chunk]))
		return -EINVAL;
	if (fd < 0)
		p = make_private(0, FG_MAX_THREADS);
	else if (!from) /* what an earlier monitor granted must not stay */
		p = make_private(to < before && to < FG_PIECE ? 0 : 1, before);
	if (failed(p))
		return (int)p;
	if (fd >= 0)
		p = fg_syscall6(SYS_mmap, (long)fg_chunks[chunk]->slot, (long)((to - from) * sizeof(struct fg_slot)),
				PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (failed(p))
		return (int)p;
	if (fd >= 0)
		restore_ids(from, from || to > before ? to : before);
	raise(&rest()->highest, fg_load_relaxed(&highest_index));
	__atomic_store_n(&fg_slots_seen, fd < 0 ? FG_SLOTS_UNSEEN : to, __ATOMIC_SEQ_CST);
	for (i = 0; fd >= 0 && i < FG_SLOT_STATS; i++)
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

	return seen && seen % FG_PIECE == 0 && fg_threads_highest() >= seen;
}

/*
 * Slots of this process alone, in a child of fork that may make no calls.  The monitor's array is its parent's, which
 * must not be written to: the thread that forked goes on with its slot and its nodes in a chunk of the library's data;
 * those that come have none, and sleep instead of queueing.
 */
static void slots_without_calls(struct fg_self *t, uint32_t mine)
{
	static struct fg_chunk own;
	uint32_t chunk = mine / FG_PIECE, i;

	none_left |= fg_slots_seen != FG_SLOTS_UNSEEN && fg_slots_seen != FG_SLOTS_APART;
	if (none_left && !mine)
		t->slot = &nowhere;
	if (none_left && mine && fg_chunks[chunk] != &own) {
		memcpy(own.thread, fg_chunks[chunk]->thread, sizeof(own.thread));
		own.slot[mine % FG_PIECE] = *t->slot;
		fg_chunks[chunk] = &own;
		t->slot = slot_of(mine); /* and fg_thread_mine() beside it */
	}
	for (i = 1; !none_left && i <= highest_index; i++)
		if (i != mine)
			slot_clear(slot_of(i), 0);
}

void fg_threads_after_fork(void)
{
	struct fg_self *t = &fg_self_tls;
	uint32_t i, mine = fg_id_has_slot(t->id) ? fg_id_index(t->id) : 0;
	bool counted = fg_slots_seen != FG_SLOTS_UNSEEN;

	fg_epoch++; /* queues of locks name nodes of threads that do not exist here */
	process = fg_tid();
	if (fg_is_filtered())
		slots_without_calls(t, mine);
	else
		fg_slots_map(-1, 0, 0); /* the parent's page is not ours */
	memset(apart, 0, sizeof(apart));
	fg_slots_seen = counted ? FG_SLOTS_APART : FG_SLOTS_UNSEEN;
	for (i = 1; i <= highest_index; i++) {
		struct fg_thread *th = fg_thread_of(i);

		memset(th->node, 0, sizeof(th->node));
		if (i == mine)
			continue;
		th->first_gen = 0;
		th->tid = 0;
	}
	memset(used, 0, sizeof(used));
	lowest_word = 0;
	if (!mine)
		return;
	/*
	 * The id stays if it holds something: POSIX lets the child release what the
	 * forking thread held.  A fork inside a wait comes from a signal handler; the wait's node is
	 * FREE now and its queue is of another epoch, so the wait starts over.
	 */
	used[mine / 64] = 1ull << (mine % 64);
	fg_thread_of(mine)->tid = process;
	by_tid[fg_thread_of(mine)->tid % TIDS] = (uint16_t)mine;
	if (t->only == FG_ONLY_NONE || (t->only == FG_ONLY_SEVERAL && !t->held)) {
		first_use(fg_thread_of(mine));
		fg_thread_of(mine)->foreign = none_released(fg_thread_of(mine)->gen);
		t->id = id_at(mine);
		fg_store_relaxed(&t->slot->owner_id, t->id);
	}
}
