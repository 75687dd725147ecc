// SPDX-License-Identifier: MIT
/*
 * The programs on the scheduler's tracepoints are attached while anybody is registered, and some
 * time longer.  A tracepoint with a program behind it costs each switch of the machine, whatever
 * the program does (docs/design/monitor.md, "Cost"), and where nobody is registered none is bound
 * and nothing is counted: no mark is missed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"
#include "monitor.skel.h"

/*
 * Code of the kernel is changed for it, on all CPUs, which a program that comes should not wait for
 * often: 0.4 to 0.6 ms, and 7 to 10 ms where they were detached just before.  Not varied.
 */
#define IDLE_NS 10000000000ull

#define HOOKS 6

struct hook {
	const struct bpf_program *program;
	struct bpf_link **link;
};

/* Returns how many there are. */
static int hooks_of(struct fg_monitor *m, struct hook hook[HOOKS])
{
	struct monitor_bpf *s = m->skel;
	const struct hook all[HOOKS] = {
	    {s->progs.on_switch, &s->links.on_switch},	 {s->progs.on_wakeup, &s->links.on_wakeup},
	    {s->progs.on_migrate, &s->links.on_migrate}, {s->progs.on_exit, &s->links.on_exit},
	    {s->progs.on_exec, &s->links.on_exec},	 {s->progs.on_fork, &s->links.on_fork},
	};
	int n = m->early ? HOOKS : HOOKS - 1; /* on_fork is the early object's */

	for (int i = 0; i < n; i++)
		hook[i] = all[i];
	return n;
}

static void detach(struct fg_monitor *m)
{
	struct hook hook[HOOKS];

	for (int i = hooks_of(m, hook) - 1; i >= 0; i--) {
		bpf_link__destroy(*hook[i].link);
		*hook[i].link = NULL;
	}
}

int fg_hooks_attach(struct fg_monitor *m)
{
	struct hook hook[HOOKS];
	int err, n = hooks_of(m, hook);

	m->hooks_used_ns = fg_now_ns();
	for (int i = 0; i < n; i++) {
		if (*hook[i].link)
			continue;
		*hook[i].link = bpf_program__attach(hook[i].program);
		if (!*hook[i].link) {
			err = -errno;
			detach(m);
			return err;
		}
	}
	return 0;
}

/* Nobody hears of one refusal after the other; in between reports tell (fg_report.unattached). */
int fg_hooks_attach_again(struct fg_monitor *m)
{
	int err = fg_hooks_attach(m), before = m->unattached;
	char sentence[200];

	m->unattached = err;
	if (!m->cfg.note || !err == !before)
		return err;
	if (err)
		snprintf(sentence, sizeof(sentence),
			 "the kernel does not attach the eBPF programs again: %s: who comes runs "
			 "on the fallback until it does",
			 strerror(-err));
	else
		snprintf(sentence, sizeof(sentence), "the eBPF programs are attached again");
	m->cfg.note(sentence);
	return err;
}

/* Should a count be left, against what is said above: whatever takes it back is not detached. */
static bool counts(const struct fg_counters *c)
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < FG_MAX_DOMAINS; d++)
		n |= c->dom[d].preempted | c->dom[d].blocked;
	for (uint32_t cpu = 0; cpu < FG_MAX_CPUS; cpu++)
		n |= c->cpu[cpu].preempted;
	return n;
}

void fg_hooks_tick(struct fg_monitor *m, uint64_t now)
{
	if (m->nr_processes)
		m->hooks_used_ns = now;
	else if (m->skel->links.on_switch && now - m->hooks_used_ns >= IDLE_NS &&
		 !counts(m->counters))
		detach(m);
}
