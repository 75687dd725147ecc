/* SPDX-License-Identifier: MIT */
/* Before libc's: the handlers of a thread that is cancelled are called by the simulated kernel. */
#ifndef SIM_PTHREAD_H
#define SIM_PTHREAD_H
#include_next <pthread.h>

struct sim_cleanup {
	void (*routine)(void *);
	void *arg;
	struct sim_cleanup *next;
};
void sim_cleanup_push(struct sim_cleanup *c);
void sim_cleanup_pop(void);

int sim_key_create(pthread_key_t *key, void (*destructor)(void *));
#define pthread_key_create sim_key_create

#undef pthread_cleanup_push
#undef pthread_cleanup_pop
#define pthread_cleanup_push(routine_, arg_)                              \
	do {                                                              \
		struct sim_cleanup cleanup_ = {(routine_), (arg_), NULL}; \
	sim_cleanup_push(&cleanup_)
#define pthread_cleanup_pop(run_)               \
	sim_cleanup_pop();                      \
	if (run_)                               \
		cleanup_.routine(cleanup_.arg); \
	}                                       \
	while (0)

#endif
