/* SPDX-License-Identifier: MIT */
/* Programs by name (loads.c). */
#ifndef SIM_LOADS_H
#define SIM_LOADS_H

#include <stdbool.h>

/* Sets `load` and names the object; false: none is called so. */
bool load_named(const char *name, const char **object);

#endif
