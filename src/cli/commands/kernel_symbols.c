/* SPDX-License-Identifier: MIT */
/*
 * Names of the kernel's functions and variables: /proc/kallsyms, with CONFIG_KALLSYMS_ALL also for
 * variables.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/kernel_policy.h"

/* Behind the last symbol, and in memory that is allocated, the nearest one says nothing. */
#define FARTHEST (1u << 20) /* longer than any function; not varied */
#define RANGES	 4	    /* the sections named in locking_names */

struct symbol {
	uint64_t address;
	char *name;
	char type; /* as in nm(1), lower case */
};

struct fg_kernel_symbols {
	struct symbol *symbol;
	size_t count, room;
	bool variables; /* of the kernel itself are among them: CONFIG_KALLSYMS_ALL */
	struct {
		uint64_t from, to;
		/* text that the compiler put together because it is of locks or the scheduler */
	} locking[RANGES];
};

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static bool add(struct fg_kernel_symbols *s, uint64_t address, char type, const char *name)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 1u << 17;
		struct symbol *more = realloc(s->symbol, room * sizeof(*more));

		if (!more)
			return false;
		s->symbol = more;
		s->room = room;
	}
	s->symbol[s->count] = (struct symbol){address, strdup(name),
					      (char)tolower((unsigned char)type)};
	return s->symbol[s->count++].name != NULL;
}

static void note_range(struct fg_kernel_symbols *s, uint64_t address, const char *name)
{
	static const char *const what[] = {"__sched_text_", "__lock_text_", "__spinlock_text_",
					   "__cpuidle_text_"};

	for (int i = 0; i < RANGES; i++) {
		size_t n = strlen(what[i]);

		if (strncmp(name, what[i], n))
			continue;
		if (!strcmp(name + n, "start"))
			s->locking[i].from = address;
		else if (!strcmp(name + n, "end"))
			s->locking[i].to = address;
	}
}

struct fg_kernel_symbols *fg_kernel_symbols_open(void)
{
	struct fg_kernel_symbols *s = calloc(1, sizeof(*s));
	char line[512], name[400], type;
	FILE *f = NULL;
	char *path;
	bool ok, shown = false;
	uint64_t address;

	if (asprintf(&path, "%s/proc/kallsyms", fg_kernel_root()) >= 0) {
		f = fopen(path, "re");
		free(path);
	}
	ok = s && f;
	while (ok && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %c %399s", &address, &type, name) == 3) {
			shown |= address != 0;
			note_range(s, address, name);
			s->variables |= !strcmp(name, "init_task");
			ok = add(s, address, type, name);
		}
	if (f)
		fclose(f);
	if (!ok || !shown) {
		fg_kernel_symbols_close(s);
		return NULL;
	}
	qsort(s->symbol, s->count, sizeof(*s->symbol), by_address);
	return s;
}

void fg_kernel_symbols_close(struct fg_kernel_symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		free(s->symbol[i].name);
	free(s->symbol);
	free(s);
}

bool fg_kernel_has_variables(const struct fg_kernel_symbols *s)
{
	return s && s->variables;
}

/* The last one at or below the address, of the types asked for; there is one above, too. */
static const struct symbol *find(const struct fg_kernel_symbols *s, uint64_t address,
				 const char *types)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->symbol[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || low == s->count || address - s->symbol[low - 1].address > FARTHEST)
		return NULL;
	/* Several names for one address: the first that is of the kind. */
	for (size_t i = low; i-- && s->symbol[i].address == s->symbol[low - 1].address;)
		if (strchr(types, s->symbol[i].type))
			return &s->symbol[i];
	return NULL;
}

size_t fg_kernel_address(const struct fg_kernel_symbols *s, const char *name, uint64_t *address)
{
	size_t found = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct symbol *sym = &s->symbol[i];

		if (strcmp(sym->name, name) || !strchr("bdrvga", sym->type) ||
		    (found && sym->address == *address))
			continue;
		*address = sym->address;
		found++;
	}
	return found;
}

static void print_name(const struct symbol *found, uint64_t address, char *name, size_t size)
{
	if (found->address == address)
		snprintf(name, size, "%s", found->name);
	else
		snprintf(name, size, "%s+0x%" PRIx64, found->name, address - found->address);
}

bool fg_kernel_variable(const struct fg_kernel_symbols *s, uint64_t address, char *name,
			size_t size)
{
	/*
	 * Without the variables, the ends of sections are left, and would name all that lies behind
	 * them.
	 */
	const struct symbol *found = s && s->variables ? find(s, address, "bdrvg") : NULL;

	if (found)
		print_name(found, address, name, size);
	return found != NULL;
}

void fg_kernel_function(const struct fg_kernel_symbols *s, uint64_t address, char *name,
			size_t size)
{
	const struct symbol *found = s ? find(s, address, "tw") : NULL;

	if (found)
		print_name(found, address, name, size);
	else
		snprintf(name, size, "0x%" PRIx64, address);
}

/* Functions of locks and tracepoints that lie in ordinary text, at least in some versions. */
static bool is_of_locks(const char *name)
{
	static const char *const begins[] = {
	    "bpf_",	     "__bpf_",	       "__traceiter_",	"trace_",      "_raw_",
	    "__raw_",	     "native_queued_", "__pv_queued_",	"pv_queued_",  "queued_",
	    "mutex_lock",    "__mutex_lock",   "mutex_spin",	"ww_mutex_",   "down_read",
	    "down_write",    "__down",	       "down_killable", "rwsem_",      "percpu_down",
	    "__percpu_down", "percpu_rwsem_",  "rt_mutex_",	"__rt_mutex",  "rt_spin_",
	    "rt_read_",	     "rt_write_",      "rwbase_",	"do_raw_spin", "do_raw_read",
	    "do_raw_write",  "__ww_",	       "resilient_",
	};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return !strcmp(name, "down") || !strcmp(name, "down_interruptible");
}

uint64_t fg_kernel_caller(const struct fg_kernel_symbols *s, const __u64 *stack)
{
	for (int i = 0; i < FG_STACK_FRAMES && stack[i]; i++) {
		/* What the call returns to may be the next function. */
		const struct symbol *found = s ? find(s, stack[i] - 1, "tw") : NULL;
		bool locking = !found || is_of_locks(found->name);

		for (int k = 0; k < RANGES && s; k++)
			locking |= stack[i] - 1 >= s->locking[k].from &&
				   stack[i] - 1 < s->locking[k].to;
		if (!locking)
			return stack[i];
	}
	return 0;
}
