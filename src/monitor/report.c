// SPDX-License-Identifier: MIT
/*
 * What the monitor tells those who ask (struct fg_report).  The counts of a process
 * come from its own slots, which it may scribble on: it lies about itself only.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "monitor/internal.h"

/* Slots are handed out from the first one on: a page of slots that nobody ever had is the end. */
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

	return __atomic_load_n(&slot->bound, __ATOMIC_RELAXED) && state < FG_STATE_DEAD ? state : FG_STATE_UNKNOWN;
}

static uint64_t unit(int stat)
{
	return stat == FG_SLOT_BLOCKED_NS ? FG_SLOT_NS : 1;
}

void fg_report_sample(struct fg_monitor *m, struct fg_process *p, struct fg_report_process *r)
{
	uint32_t sum[FG_SLOT_STATS] = {0}, threads = 0, runnable = 0, state;
	uint64_t preempted = 0, blocked = 0;

	for (uint32_t i = 0; p->map && i < p->slots; i++) {
		const struct fg_slot *slot = &p->map[i];

		if (i % FG_MIN_SLOTS == 0 && is_untouched(slot))
			break;
		state = state_of(slot);
		threads += state != FG_STATE_UNKNOWN;
		runnable += state == FG_STATE_ON || state == FG_STATE_RUNNABLE;
		preempted += __atomic_load_n(&slot->preempted, __ATOMIC_RELAXED);
		blocked += __atomic_load_n(&slot->blocked, __ATOMIC_RELAXED);
		for (int k = 0; k < FG_SLOT_STATS; k++)
			sum[k] += __atomic_load_n(&slot->stats[k], __ATOMIC_RELAXED);
	}
	for (int k = 0; k < FG_SLOT_STATS; k++) {
		uint64_t more = (uint32_t)(sum[k] - p->last[k]) * unit(k);

		p->last[k] = sum[k];
		p->stats[k] += more;
		m->stats[k] += more;
	}
	if (!r)
		return;
	*r = (struct fg_report_process){
	    .pid = p->pid,
	    .uid = p->uid,
	    .domain = p->domain,
	    .slots = p->slots,
	    .threads = threads,
	    .runnable = runnable,
	    .since_ns = p->since_ns,
	    .preempted = preempted,
	    .blocked = blocked,
	};
	memcpy(r->stats, p->stats, sizeof(r->stats));
}

/* The slot array of its next hello, or NULL: it has died. */
void fg_report_map(struct fg_monitor *m, struct fg_process *p, int fd, uint32_t slots)
{
	if (p->map) {
		fg_report_sample(m, p, NULL);
		munmap((void *)p->map, p->slots * sizeof(struct fg_slot));
		memset(p->last, 0, sizeof(p->last));
	}
	p->map = fd < 0 ? NULL : mmap(NULL, slots * sizeof(struct fg_slot), PROT_READ, MAP_SHARED, fd, 0);
	if (p->map == MAP_FAILED) /* nobody will hear of it; its locks work all the same */
		p->map = NULL;
}

/*
 * A 32-bit count wraps within minutes where millions are counted a second; each
 * process is looked at within a minute, a few at a time.
 */
void fg_report_tick(struct fg_monitor *m)
{
	uint32_t n = m->cfg.max_processes / (60 * 1000000000ull / FG_HEARTBEAT_NS) + 1;

	for (; n && m->nr_processes; n--) {
		m->next_sample = (m->next_sample + 1) % m->cfg.max_processes;
		if (m->processes[m->next_sample].pidfd >= 0)
			fg_report_sample(m, &m->processes[m->next_sample], NULL);
	}
}

static void add_summary(const struct fg_monitor *m, struct fg_report *r)
{
	const struct fg_counters *c = m->counters;

	strncpy(r->version, FG_VERSION, sizeof(r->version) - 1);
	r->uid = geteuid();
	r->generation = c->generation;
	r->started_ns = m->started_ns;
	r->processes = m->nr_processes;
	r->max_processes = m->cfg.max_processes;
	r->registered = m->registered;
	r->refused = m->refused;
	r->dropped = m->dropped;
	r->p = __atomic_load_n(&c->dom[FG_DOMAIN_ALL].p, __ATOMIC_RELAXED);
	r->b = __atomic_load_n(&c->dom[FG_DOMAIN_ALL].b, __ATOMIC_RELAXED);
	r->total_p = __atomic_load_n(&c->dom[FG_DOMAIN_ALL].total_p, __ATOMIC_RELAXED);
	r->total_b = __atomic_load_n(&c->dom[FG_DOMAIN_ALL].total_b, __ATOMIC_RELAXED);
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

void fg_report_answer(struct fg_monitor *m, int fd, const struct fg_query *q, ssize_t size, uid_t uid)
{
	static struct fg_report r; /* 30 KB; the loop is one thread */
	bool all = uid == 0 || uid == geteuid();
	uint32_t i;

	memset(&r, 0, offsetof(struct fg_report, process));
	r.magic = FG_QUERY_MAGIC;
	r.abi = FG_ABI_VERSION;
	r.error = check(q, size);
	if (!r.error) {
		for (i = q->from; i < m->cfg.max_processes && r.count < FG_REPORT_PROCESSES; i++) {
			struct fg_process *p = &m->processes[i];

			if (p->pidfd >= 0 && (all || p->uid == uid))
				fg_report_sample(m, p, &r.process[r.count++]);
		}
		r.next = i < m->cfg.max_processes ? i : 0;
		add_summary(m, &r);
	}
	/* One that does not read its answer does not get one. */
	send(fd, &r, offsetof(struct fg_report, process[r.count]), MSG_NOSIGNAL | MSG_DONTWAIT);
}
