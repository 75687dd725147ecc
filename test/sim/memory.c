/* SPDX-License-Identifier: MIT */
/*
 * The memory of the machine.  The compiler puts a call before each access of the
 * lock code and the eBPF program (-fsanitize=thread; this file takes the place
 * of its run-time library), so plain accesses count as much as atomics.
 *
 * A line is in one cache alone or in several; a transfer takes as long as the
 * distance, and transfers of one line queue up behind each other.  Caches are
 * unlimited.  A store does not wait for its line (store buffer), an atomic does,
 * and for all stores before it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "objects/objects.h"
#include "sim.h"

struct line {
	uint64_t at;   /* address >> 6; 0: unused */
	uint64_t busy; /* until its last transfer is over */
	int16_t owner; /* alone has it, and may write; -1: sharers */
	uint16_t class;
	uint64_t in[SIM_CPUS / 64];
};
static struct line *lines; /* a hash table, of 1 << lines_log */
static uint32_t lines_log = 18, lines_used;
static struct {
	uint64_t from, to, stride, width; /* of each stride the first `width` */
	int class;
} ranges[128];
static int nranges;
static uint64_t unseen_from, unseen_size;
struct mem_stats mem_stats;
const char *const class_name[C_CLASSES] = {"other", "lock", "data", "node", "slot", "counter"};

void mem_class_each(const void *at, uint64_t size, uint64_t stride, uint64_t n, int class)
{
	uint64_t from = (uint64_t)at;

	if (chaos || !n || nranges == (int)(sizeof(ranges) / sizeof(*ranges)))
		return;
	ranges[nranges].from = from >> 6;
	ranges[nranges].width = ((from + size + 63) >> 6) - (from >> 6);
	ranges[nranges].stride = stride >> 6;
	ranges[nranges].to = (from >> 6) + (n - 1) * (stride >> 6) + ranges[nranges].width;
	ranges[nranges++].class = class;
}

void mem_class(const void *at, uint64_t size, int class)
{
	mem_class_each(at, size, size + 128, 1, class);
}

static int class_of(uint64_t at)
{
	int class = C_OTHER;

	for (int r = 0; r < nranges; r++)
		if (at >= ranges[r].from && at < ranges[r].to &&
		    (at - ranges[r].from) % ranges[r].stride < ranges[r].width)
			class = ranges[r].class;
	return class;
}

void mem_unseen(const void *at, uint64_t size)
{
	unseen_from = (uint64_t)at;
	unseen_size = size;
}

static struct {
	uint64_t from, to;
	const char *what;
} retired[16];
static int nretired;

void mem_retire(const void *at, uint64_t size, const char *what)
{
	if (chaos && nretired < (int)(sizeof(retired) / sizeof(*retired))) {
		retired[nretired].from = (uint64_t)at;
		retired[nretired].to = (uint64_t)at + size;
		retired[nretired++].what = what;
	}
}

void mem_retired_are_new(void)
{
	nretired = 0;
}

static const void *pc; /* of the access */

static void look_at_retired(uint64_t at)
{
	static char text[100];

	for (int i = 0; i < nretired; i++)
		if (at >= retired[i].from && at < retired[i].to) {
			snprintf(text, sizeof(text), "thread %d touched %s", here->cur->id,
				 retired[i].what);
			if (!results.violations)
				results.where = pc;
			violation(text);
		}
}

static uint64_t stacks, stacks_size;

void mem_stacks(const void *at, uint64_t size)
{
	stacks = (uint64_t)at;
	stacks_size = size;
}

/* Of another thread, which does not run now: is it a function's that has returned? */
static void look_at_stack(uint64_t at)
{
	const struct thread *t = &threads[(at - stacks) / STACK];

	if (!t->sp || at >= (uint64_t)t->sp)
		return;
	if (!results.violations)
		results.where = pc;
	violation("a thread touched the stack of another one that it uses no longer");
}

void mem_reset(void)
{
	nretired = 0;
	weak_reset();
	if (chaos)
		return;
	free(lines);
	lines = calloc(1ull << lines_log, sizeof(*lines));
	lines_used = 0;
	memset(&mem_stats, 0, sizeof(mem_stats));
}

/* Where it is, or is to be. */
static struct line *place_of(uint64_t at)
{
	uint32_t i = (uint32_t)(at * 0x9E3779B97F4A7C15ull >> (64 - lines_log));

	while (lines[i].at != at && lines[i].at)
		i = (i + 1) & ((1u << lines_log) - 1);
	return &lines[i];
}

static void more_lines(void)
{
	struct line *old = lines;
	uint64_t n = 1ull << lines_log++;

	lines = calloc(1ull << lines_log, sizeof(*lines));
	if (!lines)
		abort();
	for (uint64_t i = 0; i < n; i++)
		if (old[i].at)
			*place_of(old[i].at) = old[i];
	free(old);
}

static struct line *line_of(uint64_t at)
{
	struct line *l = place_of(at);

	if (l->at == at)
		return l;
	if (lines_used++ >> (lines_log - 1)) {
		more_lines();
		l = place_of(at);
	}
	l->at = at;
	l->owner = (int16_t)here->id; /* first touch: as if it had been there */
	l->class = (uint16_t)class_of(at);
	return l;
}

uint64_t cpu_distance(const struct cpu *a, const struct cpu *b)
{
	if (a == b)
		return 0;
	if (a->socket != b->socket)
		return M.remote;
	if (a->cluster != b->cluster)
		return M.socket;
	return a->core == b->core ? M.sibling : M.cluster;
}

/* From the nearest of the caches that have it. */
static uint64_t nearest(const struct line *l, const struct cpu *c, uint64_t *farthest)
{
	uint64_t best = ~0ull, worst = 0;

	for (int w = 0; w < (M.cpus + 63) / 64; w++)
		for (uint64_t m = l->in[w]; m; m &= m - 1) {
			const struct cpu *o = &cpus[w * 64 + __builtin_ctzll(m)];
			uint64_t d;

			if (o == c)
				continue;
			d = cpu_distance(o, c);
			best = d < best ? d : best;
			worst = d > worst ? d : worst;
			if (worst == M.remote && best <= M.cluster)
				goto out;
		}
out:
	*farthest = worst;
	return best == ~0ull ? M.cluster : best;
}

static bool in(const struct line *l, int cpu)
{
	return l->in[cpu / 64] >> (cpu % 64) & 1;
}

/* Which place in the code asked for how many lines. */
struct site sites[SITES];

static void count_site(int class)
{
	uint32_t i = (uint32_t)((uint64_t)pc * 0x9E3779B97F4A7C15ull >> 52);

	for (; sites[i].n && (sites[i].pc != pc || sites[i].class != class); i = (i + 1) % SITES)
		;
	sites[i].pc = pc;
	sites[i].class = class;
	sites[i].n++;
}

static void transfer(struct line *l, enum access kind)
{
	struct cpu *c = here;
	uint64_t cost, far, near, start = c->now > l->busy ? c->now : l->busy;

	if (l->owner >= 0) {
		cost = far = cpu_distance(&cpus[l->owner], c);
	} else {
		cost = nearest(l, c, &far);
		if (kind != A_READ) /* all others have to give it up */
			cost = far ? far : M.hit;
	}
	near = cost;
	count_site(l->class);
	/* no two are alike: without, machines run in lock-step */
	cost = cost * 3 / 4 + rng() % (cost / 2 + 1);
	if (c->cur && c->cur->neighbour)
		; /* of another process */
	else if (far == M.remote && (kind != A_READ || near == M.remote))
		mem_stats.remote[l->class]++;
	else
		mem_stats.local[l->class]++;
	if (kind == A_READ) {
		if (l->owner >= 0) {
			memset(l->in, 0, sizeof(l->in));
			l->in[l->owner / 64] |= 1ull << (l->owner % 64);
			l->owner = -1;
			l->busy = start + cost;
		} else {
			l->busy = start + cost / 8; /* one of many readers: these overlap */
		}
		l->in[c->id / 64] |= 1ull << (c->id % 64);
		c->now = start + cost;
	} else {
		l->owner = (int16_t)c->id;
		l->busy = start + cost;
		if (kind == A_RMW)
			c->now = start + cost;
		else if (c->stores_done < start + cost)
			c->stores_done = start + cost;
	}
}

static bool has(const struct line *l, const struct cpu *c, enum access kind)
{
	return l->owner == c->id || (kind == A_READ && l->owner < 0 && in(l, c->id));
}

/*
 * With random_lines: until it is free again, and then it is that CPU's which is there first.
 * Stores are in a buffer, and the kernel does not stop: these queue.
 */
#define ARBITRATION (10 * NS) /* not varied */

static void wait_for_line(struct cpu *c, const struct line *l)
{
	const void *mine = pc;

	c->now = l->busy + rng() % ARBITRATION;
	sim_yield(); /* may come back on another CPU */
	pc = mine;
}

void mem_access(const void *p, enum access kind)
{
	struct cpu *c = here;
	uint64_t at = (uint64_t)p;
	struct line *l;

	if (!c || at - unseen_from < unseen_size)
		return;
	kernel_stats.hooks++;
	if (!c->in_kernel) {
		c->cur->place = pc;
		if (at - (uint64_t)c->cur->stack < STACK) {
			c->now += at_pace(c, M.hit / 4);
			return;
		}
		if ((chaos && schedule_step(c->cur, pc, c->now)) || c->now >= horizon) {
			const void *mine = pc;

			sim_yield(); /* may come back on another CPU */
			pc = mine;
		}
		c = here;
		if (c->cur->interrupt && !c->cur->blocks_signals && !--c->cur->interrupt) {
			const void *mine = pc;

			load_interrupt(c->cur);
			pc = mine;
			c = here;
		}
	}
	if (chaos) {
		if (weak && kind != A_RMW)
			weak_plain(at, kind == A_WRITE, pc);
		if (at - stacks < stacks_size && !c->in_kernel)
			look_at_stack(at);
		if (nretired && !c->in_kernel) /* the monitor may look at any address */
			look_at_retired(at);
		c->now += rng() % 16 ? rng() % (60 * NS) : rng() % (2 * US);
		return;
	}
	if (kind == A_RMW && c->now < c->stores_done)
		c->now = c->stores_done;
	l = line_of(at >> 6);
	while (random_lines && kind != A_WRITE && !c->in_kernel && c->now < l->busy &&
	       !has(l, c, kind)) {
		wait_for_line(c, l);
		c = here;
		l = line_of(at >> 6);
	}
	if (!has(l, c, kind))
		transfer(l, kind);
	c->now += at_pace(c, kind == A_READ ? M.hit : kind == A_WRITE ? M.store : M.rmw);
}

/* ---- what the compiler calls ------------------------------------------------------ */

#define from(at, kind)                                         \
	do {                                                   \
		const void *me_ = __builtin_return_address(0); \
		pc = me_;                                      \
		mem_access(at, kind);                          \
	} while (0)

void __tsan_init(void)
{
}
#define PLAIN(n)                                \
	void __tsan_read##n(void *a)            \
	{                                       \
		from(a, A_READ);                \
	}                                       \
	void __tsan_write##n(void *a)           \
	{                                       \
		from(a, A_WRITE);               \
	}                                       \
	void __tsan_unaligned_read##n(void *a)  \
	{                                       \
		from(a, A_READ);                \
	}                                       \
	void __tsan_unaligned_write##n(void *a) \
	{                                       \
		from(a, A_WRITE);               \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
#define RANGE(name, kind)                                    \
	void __tsan_##name##_range(void *a, unsigned long n) \
	{                                                    \
		for (unsigned long i = 0; i < n; i += 64)    \
			from((char *)a + i, kind);           \
	}
RANGE(read, A_READ)
RANGE(write, A_WRITE)

void __tsan_atomic_signal_fence(int o)
{
	(void)o;
}

struct orders *orders;
const void *relaxed_at;

/* The order that the access here has: weak memory only. */
static int order_of(int order)
{
	uint32_t i;

	if (order == __ATOMIC_RELAXED)
		return order;
	if (pc == relaxed_at)
		return __ATOMIC_RELAXED;
	if (!orders || !here || here->in_kernel)
		return order;
	for (i = 0; i < orders->n && orders->at[i].pc != pc; i++)
		;
	if (i == ORDERS)
		return order;
	orders->n += i == orders->n;
	orders->at[i].pc = pc;
	orders->at[i].order = order;
	orders->at[i].times++;
	return order;
}

/* One host thread: what happens between two calls is atomic. */
#define RMW(n, T, name, expr)                                       \
	T __tsan_atomic##n##_##name(volatile T *a, T v, int o)      \
	{                                                           \
		from((void *)a, A_RMW);                             \
		T x = *a;                                           \
		*a = (T)(expr);                                     \
		if (weak)                                           \
			weak_rmw(a, sizeof(T), order_of(o), x, *a); \
		return x;                                           \
	}
#define ATOMIC(n, T)                                                                           \
	T __tsan_atomic##n##_load(const volatile T *a, int o)                                  \
	{                                                                                      \
		from((void *)a, A_READ);                                                       \
		return weak ? (T)weak_load(a, sizeof(T), order_of(o), *a) : *a;                \
	}                                                                                      \
	void __tsan_atomic##n##_store(volatile T *a, T v, int o)                               \
	{                                                                                      \
		from((void *)a, o == __ATOMIC_SEQ_CST ? A_RMW : A_WRITE);                      \
		if (weak)                                                                      \
			weak_store(a, sizeof(T), order_of(o), *a, v);                          \
		*a = v;                                                                        \
	}                                                                                      \
	RMW(n, T, exchange, v)                                                                 \
	RMW(n, T, fetch_add, x + v)                                                            \
	RMW(n, T, fetch_sub, x - v)                                                            \
	RMW(n, T, fetch_and, x &v)                                                             \
	RMW(n, T, fetch_or, x | v)                                                             \
	RMW(n, T, fetch_xor, x ^ v)                                                            \
	static inline int cas##n(volatile T *a, T *e, T v, int o, int f)                       \
	{                                                                                      \
		T x = *a;                                                                      \
		bool done = x == *e;                                                           \
		if (done)                                                                      \
			*a = v;                                                                \
		else                                                                           \
			*e = x;                                                                \
		if (weak && done)                                                              \
			weak_rmw(a, sizeof(T), order_of(o), x, v);                             \
		else if (weak)                                                                 \
			weak_look(a, sizeof(T), order_of(f), x);                               \
		return done;                                                                   \
	}                                                                                      \
	int __tsan_atomic##n##_compare_exchange_strong(volatile T *a, T *e, T v, int o, int f) \
	{                                                                                      \
		from((void *)a, A_RMW);                                                        \
		return cas##n(a, e, v, o, f);                                                  \
	}                                                                                      \
	int __tsan_atomic##n##_compare_exchange_weak(volatile T *a, T *e, T v, int o, int f)   \
	{                                                                                      \
		from((void *)a, A_RMW);                                                        \
		return cas##n(a, e, v, o, f);                                                  \
	}                                                                                      \
	T __tsan_atomic##n##_compare_exchange_val(volatile T *a, T e, T v, int o, int f)       \
	{                                                                                      \
		from((void *)a, A_RMW);                                                        \
		cas##n(a, &e, v, o, f);                                                        \
		return e;                                                                      \
	}
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int o)
{
	if (o == __ATOMIC_SEQ_CST && here && here->now < here->stores_done)
		here->now = here->stores_done;
	pc = __builtin_return_address(0);
	if (weak)
		weak_fence(order_of(o));
}
