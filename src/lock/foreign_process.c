/* SPDX-License-Identifier: MIT */
#include "lock/foreign_process.h"

#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/environment.h"
#include "sys/filter.h"
#include "sys/maps.h"

/*
 * How often a process reads its own map for this: a child of fork may wait for a dead lock of its
 * parent.  Not varied.
 */
#define MAP_READS 4u

struct line {
	char text[320];
	size_t length;
};

static void add(struct line *line, const char *text)
{
	while (*text && line->length < sizeof(line->text))
		line->text[line->length++] = *text++;
}

static void add_number(struct line *line, uint64_t n, unsigned base)
{
	char digits[24], *d = digits + sizeof(digits) - 1;

	*d = 0;
	do {
		*--d = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	add(line, d);
}

static void say(uint64_t at)
{
	struct line line = {.length = 0};

	add(&line, "flexguard: process ");
	add_number(&line, (uint64_t)fg_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0), 10);
	add(&line, " waits for a lock at 0x");
	add_number(&line, at, 16);
	add(&line,
	    ", in shared memory, that another process holds; such locks must be initialised with "
	    "the attribute PTHREAD_PROCESS_SHARED, or their waiters hang (flexguard-run(1), SHARED "
	    "MEMORY)\n");
	fg_syscall6(SYS_write, 2, (long)line.text, (long)line.length, 0, 0, 0);
}

void _fg_report_foreign_process(const struct fg_lock *l)
{
	static uint32_t looks, said;
	uint64_t at = (uint64_t)(uintptr_t)l;

	if (fg_silent || fg_load_relaxed(&said) ||
	    !_fg_held_by_foreign_process(fg_load_relaxed(&l->word)))
		return;
	if (fg_load_relaxed(&looks) >= MAP_READS || fg_add_relaxed(&looks, 1) >= MAP_READS)
		return;
	if (!fg_call_begins(0))
		return;
	if (fg_is_shared_memory(at) && !fg_xchg_acq_rel(&said, 1))
		say(at);
	fg_call_ends(0);
}
