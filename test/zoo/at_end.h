/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#define AT_END 3
extern pthread_mutex_t of_library[AT_END];
extern int held_at_end; /* the first one */
