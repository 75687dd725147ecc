/* SPDX-License-Identifier: MIT */
/* References without versions, for families_whole.c: this is linked without any library. */
#include <pthread.h>
#include <stddef.h>

void *const unversioned[] = {(void *)pthread_mutex_lock,     (void *)pthread_mutex_unlock,
			     (void *)pthread_mutex_trylock,  (void *)pthread_cond_init,
			     (void *)pthread_cond_wait,	     (void *)pthread_cond_signal,
			     (void *)pthread_cond_clockwait, NULL};
