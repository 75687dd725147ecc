/* SPDX-License-Identifier: MIT */
/* In the place of src/sys/cleanup.h: a simulated thread is not libc's. */
#ifndef FG_CLEANUP_H
#define FG_CLEANUP_H

#include <pthread.h>

#define fg_cleanup_push pthread_cleanup_push
#define fg_cleanup_pop	pthread_cleanup_pop

#endif
