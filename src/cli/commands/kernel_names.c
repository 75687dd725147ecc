/* SPDX-License-Identifier: MIT */
/* What the kernel's locks are called. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands/kernel.h"
#include "monitor/contention.h"

static const char *const role_name[] = {
    [FG_MET_MMAP_LOCK] = "mmap_lock", [FG_MET_SIGLOCK] = "siglock"};

struct fg_kernel_names *fg_kernel_names_open(void)
{
	struct fg_kernel_names *n = calloc(1, sizeof(*n));

	if (n)
		n->symbols = fg_kernel_symbols_open();
	return n;
}

void fg_kernel_names_close(struct fg_kernel_names *n)
{
	if (n)
		fg_kernel_symbols_close(n->symbols);
	free(n);
}

void fg_kernel_names_learn(struct fg_kernel_names *n, struct fg_contention *c)
{
	const struct fg_contention_view *v = fg_contention_view(c);

	for (size_t i = 0; i < FG_LOCK_ROWS; i++) {
		uint64_t lock = v->locks[i].lock;

		if (n->seen[i] || !lock)
			continue;
		n->seen[i] = true;
		if (!fg_contention_slab(c, lock, n->slab[i], sizeof(n->slab[i])))
			fg_contention_percpu(c, lock, n->percpu[i], sizeof(n->percpu[i]));
	}
}

bool fg_kernel_variable_at(const struct fg_kernel_names *n, const struct fg_contention_view *v,
			   size_t row, char *name, size_t size)
{
	if (fg_kernel_variable(n->symbols, v->locks[row].lock, name, size))
		return true;
	snprintf(name, size, "%s", n->percpu[row]);
	return *name;
}

/*
 * A variable's name, what is known of where it was met, the slab cache it lies in, or the address.
 */
void fg_kernel_name_lock(const struct fg_kernel_names *n, const struct fg_contention_view *v,
			 size_t row, char *name, size_t size)
{
	const struct fg_contended_lock *l = &v->locks[row];

	if (fg_kernel_variable_at(n, v, row, name, size))
		return;
	if (l->role && l->role < sizeof(role_name) / sizeof(role_name[0]))
		snprintf(name, size, "%s %" PRIx64, role_name[l->role], (uint64_t)l->lock);
	else if (*n->slab[row])
		snprintf(name, size, "%s %" PRIx64, n->slab[row], (uint64_t)l->lock);
	else
		snprintf(name, size, "%" PRIx64, (uint64_t)l->lock);
}
