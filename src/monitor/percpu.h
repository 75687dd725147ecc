/* SPDX-License-Identifier: MIT */
/* Names of what lies in the kernel's static per-CPU variables. */
#ifndef FG_MONITOR_PERCPU_H
#define FG_MONITOR_PERCPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fg_percpu;
struct fg_percpu *fg_percpu_open(void); /* NULL: this kernel does not tell where they are */
void fg_percpu_close(struct fg_percpu *p);
/* Where each CPU has the variable; 0: not known.  False if there is none of that name. */
bool fg_percpu_find(const struct fg_percpu *p, const char *name, uint64_t *at, uint32_t cpus);
/* "variable.member@cpu3", down to the lock; false: it is in none. */
bool fg_percpu_name(const struct fg_percpu *p, uint64_t address, char *name, size_t size);

#endif
