// SPDX-License-Identifier: MIT
/*
 * What the monitor answers to questions (struct fg_report).
 *
 * The counts of a process come from its own slots.  Each is 32 bits wide and only
 * grows; what it has grown by since the last look is added up here, for the process
 * and for all of them together.  The last look at an array is at the process's end, so nothing
 * that was counted in one is lost.
 *
 * A process may scribble on its slots.  Then it lies about itself, and adds to the
 * sum of all at most what a process could have counted in its time (most()); nothing
 * that it writes makes a sum shrink or wrap.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"

/* A page of slots that nobody has. */
static bool is_untouched(const struct fg_slot *slot)
{
	for (uint32_t i = 0; i < FG_MIN_SLOTS; i++)
		if (__atomic_load_n(&slot[i].owner_id, __ATOMIC_RELAXED))
			return false;
	return true;
}

/* enum fg_state; UNKNOWN of a slot that no thread has, too. */
static uint32_t state_of(const struct fg_slot *slot)
{
	uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);

	return __atomic_load_n(&slot->bound, __ATOMIC_RELAXED) && state < FG_STATE_DEAD ?
		   state :
		   FG_STATE_UNKNOWN;
}

static uint64_t unit(int stat)
{
	return stat == FG_SLOT_BLOCKED_NS ? FG_SLOT_NS : 1;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a + b >= a ? a + b : UINT64_MAX;
}

/* The fastest measured, lock and unlock of a lock that nobody else wants: 9 (2-CPU VM). */
#define EVENT_NS 8u
/*
 * Threads that find no slot count, too, in slot 0: with all slots that a process may have, as many
 * as have a number of their own (65536, runtime/thread.h).
 */
#define THREADS_A_SLOT 16u

/*
 * What a process can have counted in its life, the time before it registered included (a child of
 * fork): events, each of which takes some ns of a CPU, and the time of its threads.  Those are as
 * many as it says to have, but not out of proportion to the slots that it was granted, which its
 * user pays for.
 */
static uint64_t most(const struct fg_process *p, int stat, uint64_t now)
{
	uint64_t born = p->born_ns && p->born_ns < p->since_ns ? p->born_ns : p->since_ns;
	uint64_t age_ns = now - born, slots = p->most_slots, threads = p->highest, result;

	if (stat != FG_SLOT_BLOCKED_NS)
		return age_ns / EVENT_NS * (uint64_t)libbpf_num_possible_cpus();
	threads = threads < slots * THREADS_A_SLOT ? threads : slots * THREADS_A_SLOT;
	threads = threads > slots ? threads : slots;
	return __builtin_mul_overflow(age_ns, threads, &result) ? UINT64_MAX : result;
}

/*
 * Where the array of counts seen last ends; more of it with each piece.  It is written here, not at
 * the first look: what is granted has its memory, and a look at it takes no more.
 */
bool fg_report_make_room(struct fg_process *p, uint32_t slots)
{
	uint32_t(*more)[FG_SLOT_STATS];

	if (slots <= p->nr_last)
		return true;
	more = realloc(p->last, slots * sizeof(*more));
	if (!more)
		return false;
	memset(&more[p->nr_last], 0, (slots - p->nr_last) * sizeof(*more));
	p->last = more;
	p->nr_last = slots;
	return true;
}

/* Grown by so much.  It shrinks where a liar wrote, or an older library that cleared slots. */
static uint64_t growth(uint32_t *last, uint32_t now)
{
	int32_t more = (int32_t)(now - *last);

	*last = now;
	return more > 0 ? (uint64_t)more : 0;
}

static void add_up(struct fg_monitor *m, struct fg_process *p, const uint64_t more[FG_SLOT_STATS],
		   uint64_t now)
{
	for (int k = 0; k < FG_SLOT_STATS; k++) {
		uint64_t limit = most(p, k, now), known;

		p->stats[k] = add_saturated(p->stats[k], more[k] * unit(k));
		known = p->stats[k] < limit ? p->stats[k] : limit;
		if (known > p->given[k]) {
			m->stats[k] = add_saturated(m->stats[k], known - p->given[k]);
			p->given[k] = known;
		}
	}
}

/* What is in slot 0: of threads that have no slot here, and how far the others go. */
static void sample_rest(struct fg_process *p, uint64_t more[FG_SLOT_STATS])
{
	const struct fg_slot_rest *rest = (const struct fg_slot_rest *)p->map;

	p->highest = __atomic_load_n(&rest->highest, __ATOMIC_RELAXED);
	for (int k = 0; k < FG_SLOT_STATS; k++) {
		uint64_t now = __atomic_load_n(&rest->stats[k], __ATOMIC_RELAXED);

		/* Up to a number that stays one in units of nanoseconds. */
		if (now > p->last_rest[k] && now < UINT64_MAX / 2 / FG_SLOT_NS)
			more[k] += now - p->last_rest[k];
		p->last_rest[k] = now;
	}
}

/*
 * What a question is answered with may be so old: 500 us for each slot that was looked at, which
 * took some 27 ns (2-CPU VM), and half a second at most.  With all slots that a user may have, his
 * questions take two looks at them a second, 6 % of a CPU; of a program with 32 threads they tell
 * what was 16 ms ago.  Less than a second, since `flexguard top` asks once in a second.
 */
#define SLOT_REST_NS 500000ull
#define MAX_REST_NS  500000000ull

/* Looks at the slots of a process; returns how many they are. */
static uint32_t sample(struct fg_monitor *m, struct fg_process *p, uint64_t now)
{
	struct fg_seen seen = {.preempted = p->preempted, .blocked = p->blocked};
	uint64_t more[FG_SLOT_STATS] = {0}, rest_ns;
	uint32_t i, state;

	p->most_slots = p->slots > p->most_slots ? p->slots : p->most_slots;

	if (p->map)
		sample_rest(p, more);
	for (i = 1; p->map && i < p->slots && i < p->nr_last; i++) {
		const struct fg_slot *slot = &p->map[i];

		if (i > p->highest && i % FG_MIN_SLOTS == 0 && is_untouched(slot))
			break;
		state = state_of(slot);
		seen.threads += state != FG_STATE_UNKNOWN;
		seen.runnable += state == FG_STATE_ON || state == FG_STATE_RUNNABLE;
		seen.preempted += __atomic_load_n(&slot->preempted, __ATOMIC_RELAXED);
		seen.blocked += __atomic_load_n(&slot->blocked, __ATOMIC_RELAXED);
		for (int k = 0; k < FG_SLOT_STATS; k++)
			more[k] += growth(&p->last[i][k],
					  __atomic_load_n(&slot->stats[k], __ATOMIC_RELAXED));
	}
	add_up(m, p, more, now);
	rest_ns = i * SLOT_REST_NS;
	p->seen = seen;
	p->look_ns = now + (rest_ns < MAX_REST_NS ? rest_ns : MAX_REST_NS);
	return i;
}

/* Not for each question of somebody who may ask as often as he likes. */
static uint32_t sample_if_due(struct fg_monitor *m, struct fg_process *p, uint64_t now)
{
	return now < p->look_ns ? 0 : sample(m, p, now);
}

static void tell(const struct fg_monitor *m, const struct fg_process *p,
		 struct fg_report_process *r)
{
	*r = (struct fg_report_process){
	    .pid = p->pid,
	    .uid = p->uid,
	    .domain = p->domain,
	    .slots = p->slots,
	    .threads = p->seen.threads,
	    .runnable = p->seen.runnable,
	    .since_ns = p->since_ns - m->started_ns,
	    .preempted = p->seen.preempted,
	    .blocked = p->seen.blocked,
	};
	memcpy(r->stats, p->stats, sizeof(r->stats));
}

/*
 * All pieces of an array lie one behind the other; where there is none yet, nothing is mapped that
 * can be read.
 */
#define MAP_BYTES (FG_PIECES * FG_PIECE * sizeof(struct fg_slot))

/* The last look at an array: what it said is kept. */
void fg_report_leave(struct fg_monitor *m, struct fg_process *p)
{
	if (!p->map)
		return;
	sample(m, p, fg_now_ns());
	p->preempted = p->seen.preempted;
	p->blocked = p->seen.blocked;
	p->look_ns = 0; /* what comes next is another array */
	munmap((void *)p->map, MAP_BYTES);
	p->map = NULL;
	free(p->last);
	p->last = NULL;
	p->nr_last = 0;
	memset(p->last_rest, 0, sizeof(p->last_rest));
}

/* It has died. */
void fg_report_forget(struct fg_monitor *m, struct fg_process *p)
{
	fg_report_leave(m, p);
	p->preempted = p->blocked = 0;
	p->most_slots = 0;
	memset(p->given, 0, sizeof(p->given));
}

void fg_report_map(struct fg_monitor *m, struct fg_process *p, int fd, uint32_t from, uint32_t to)
{
	if (!from) {
		void *map = mmap(NULL, MAP_BYTES, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		p->map = map == MAP_FAILED ? NULL : map;
	}
	/* If not, no report has it; its locks work all the same. */
	if (p->map && mmap((void *)&p->map[from], (to - from) * sizeof(struct fg_slot), PROT_READ,
			   MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		fg_report_leave(m, p);
}

/*
 * A count of a slot grows by 2^31 in 17 s at the least (EVENT_NS), and in 36 minutes if
 * it is one of microseconds; each process is looked at within 15 s, a few at a time.
 */
#define SAMPLE_NS 15000000000ull

void fg_report_tick(struct fg_monitor *m)
{
	uint32_t n = m->cfg.max_processes / (uint32_t)(SAMPLE_NS / FG_HEARTBEAT_NS) + 1;
	uint64_t now = fg_now_ns();

	for (; n && m->nr_processes; n--) {
		m->next_sample = (m->next_sample + 1) % m->cfg.max_processes;
		if (m->processes[m->next_sample].pidfd >= 0)
			sample(m, &m->processes[m->next_sample], now);
	}
}

/* Of all domains, and of all CPUs: a domain's `preempted` leaves out threads with an affinity. */
static void add_counts(const struct fg_counters *c, struct fg_report *r)
{
	for (uint32_t i = 1; i < FG_MAX_DOMAINS; i++)
		r->blocked += __atomic_load_n(&c->dom[i].blocked, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < FG_MAX_CPUS; i++) {
		r->preempted += __atomic_load_n(&c->cpu[i].preempted, __ATOMIC_RELAXED);
		r->total_preempted += __atomic_load_n(&c->cpu[i].total_preempted, __ATOMIC_RELAXED);
		r->total_blocked += __atomic_load_n(&c->cpu[i].total_blocked, __ATOMIC_RELAXED);
	}
}

static void add_summary(const struct fg_monitor *m, uint64_t now, struct fg_report *r)
{
	const struct fg_counters *c = m->counters;

	strncpy(r->version, FG_VERSION, sizeof(r->version) - 1);
	r->uid = geteuid();
	r->unattached = m->unattached;
	r->generation = c->generation;
	r->up_ns = now - m->started_ns;
	r->processes = m->nr_processes;
	r->max_processes = m->cfg.max_processes;
	r->registered = m->registered;
	r->refused = m->refused;
	r->dropped = m->dropped;
	add_counts(c, r);
	r->missed = __atomic_load_n(&c->missed, __ATOMIC_RELAXED);
	r->cost_ns = __atomic_load_n(&c->cost_ns, __ATOMIC_RELAXED);
	r->cost_samples = __atomic_load_n(&c->cost_samples, __ATOMIC_RELAXED);
	memcpy(r->stats, m->stats, sizeof(r->stats));
}

static int check(const struct fg_query *q, ssize_t size)
{
	if (size < (ssize_t)(2 * sizeof(uint32_t)))
		return -EPROTO;
	if (q->abi != FG_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (size != sizeof(*q))
		return -EPROTO;
	return q->flags ? -EINVAL : 0;
}

/*
 * A question has so many slots looked at, some 0.45 ms, for the processes that it is about, and as
 * many for the sums; where there are more, the answer names fewer processes.  Not varied.
 */
#define LOOK_AT_ONCE 16384u

/*
 * The sum of all is what all have counted up to now, also for users that are not told of
 * each process: a scraper has no privileges.  Not at each question, though, and where they have too
 * many slots for one question, the next ones go on.  Not varied.
 */
#define ALL_NS 1000000000ull

static void sample_all(struct fg_monitor *m, uint64_t now)
{
	uint32_t i = m->all_next, looked = 0;

	if (!i && now - m->all_ns < ALL_NS)
		return;
	if (!i)
		m->all_ns = now;
	for (; i < m->cfg.max_processes && looked < LOOK_AT_ONCE; i++)
		if (m->processes[i].pidfd >= 0)
			looked += sample_if_due(m, &m->processes[i], now);
	m->all_next = i < m->cfg.max_processes ? i : 0;
}

void fg_report_answer(struct fg_monitor *m, int fd, const struct fg_query *q, ssize_t size,
		      bool all, uid_t uid)
{
	static struct fg_report r; /* 30 KB; the loop is one thread */
	uint64_t now = fg_now_ns();
	uint32_t i, looked = 0;

	memset(&r, 0, offsetof(struct fg_report, process));
	r.magic = FG_QUERY_MAGIC;
	r.abi = FG_ABI_VERSION;
	r.error = check(q, size);
	if (!r.error) {
		for (i = q->from; i < m->cfg.max_processes && r.count < FG_REPORT_PROCESSES &&
				  looked < LOOK_AT_ONCE;
		     i++) {
			struct fg_process *p = &m->processes[i];

			if (p->pidfd < 0 || (!all && p->uid != uid))
				continue;
			looked += all ? sample(m, p, now) : sample_if_due(m, p, now);
			tell(m, p, &r.process[r.count++]);
		}
		if (!all)
			sample_all(m, now);
		r.next = i < m->cfg.max_processes ? i : 0;
		add_summary(m, now, &r);
	}
	/* One that does not read its answer does not get one. */
	send(fd, &r, offsetof(struct fg_report, process[r.count]), MSG_NOSIGNAL | MSG_DONTWAIT);
}
