/* SPDX-License-Identifier: MIT */
/*
 * QEMU plugin (API 1: qemu 7.2): who has which cache line, by vCPU (linux-user: by thread), with
 * unlimited private caches; at exit the lines that moved most.  Prototypes are QEMU's, written
 * down here since Debian packages no header.
 *   gcc -shared -fPIC -O2 -o lines.so lines.c
 *   qemu-x86_64 -plugin ./lines.so -d plugin program
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qid;
struct tb;
struct insn;
int qemu_plugin_version __attribute__((visibility("default"))) = 1;
void qemu_plugin_register_vcpu_tb_trans_cb(qid id, void (*)(qid, struct tb *));
size_t qemu_plugin_tb_n_insns(const struct tb *);
struct insn *qemu_plugin_tb_get_insn(const struct tb *, size_t);
void qemu_plugin_register_vcpu_mem_cb(struct insn *, void (*)(unsigned, uint32_t, uint64_t, void *),
				      int flags, int rw, void *);
bool qemu_plugin_mem_is_store(uint32_t info);
void qemu_plugin_register_atexit_cb(qid id, void (*)(qid, void *), void *);
void qemu_plugin_outs(const char *);

#define LINES (1u << 20)
#define CPUS  512
static struct line {
	uint64_t at, in[CPUS / 64], moved, accesses;
	int owner;
} *lines;
static int turn; /* one vCPU at a time in here */

static void access_cb(unsigned cpu, uint32_t info, uint64_t vaddr, void *unused)
{
	uint64_t at = vaddr >> 6;
	uint32_t i = (uint32_t)(at * 0x9E3779B97F4A7C15ull >> 44);
	struct line *l;
	(void)unused;

	cpu %= CPUS;
	while (__atomic_exchange_n(&turn, 1, __ATOMIC_ACQUIRE))
		;
	while (lines[i].at && lines[i].at != at)
		i = (i + 1) % LINES;
	l = &lines[i];
	if (!l->at) {
		l->at = at;
		l->owner = (int)cpu;
	}
	l->accesses++;
	if (l->owner != (int)cpu) {
		bool has = l->owner < 0 && l->in[cpu / 64] >> cpu % 64 & 1;

		if (qemu_plugin_mem_is_store(info)) {
			l->moved++;
			l->owner = (int)cpu;
		} else if (!has) {
			l->moved++;
			if (l->owner >= 0) {
				memset(l->in, 0, sizeof(l->in));
				l->in[l->owner / 64] |= 1ull << l->owner % 64;
				l->owner = -1;
			}
			l->in[cpu / 64] |= 1ull << cpu % 64;
		}
	}
	__atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
}

static void translated(qid id, struct tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), access_cb, 0, 3,
						 NULL);
}

static int by_moved(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->moved < y->moved ? 1 : x->moved > y->moved ? -1 : 0;
}

static void end(qid id, void *unused)
{
	uint64_t all = 0;
	char text[100];
	(void)id, (void)unused;

	for (unsigned i = 0; i < LINES; i++)
		all += lines[i].moved;
	qsort(lines, LINES, sizeof(*lines), by_moved);
	snprintf(text, sizeof(text), "lines moved: %" PRIu64 "\n", all);
	qemu_plugin_outs(text);
	for (int i = 0; i < 6; i++) {
		snprintf(text, sizeof(text),
			 "%#14" PRIx64 "  moved %9" PRIu64 "  accesses %9" PRIu64 "\n",
			 lines[i].at << 6, lines[i].moved, lines[i].accesses);
		qemu_plugin_outs(text);
	}
}

__attribute__((visibility("default"))) int qemu_plugin_install(qid id, const void *info, int argc,
							       char **argv)
{
	(void)info, (void)argc, (void)argv;
	lines = calloc(LINES, sizeof(*lines));
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, end, NULL);
	return 0;
}
