/* SPDX-License-Identifier: MIT */
/*
 * What the locks of the stress programs guard: counters without atomics and a
 * doubly linked ring with an invariant.  A second thread inside shows as a lost
 * increment, another thread's mark, or a ring whose two directions differ.
 */
#ifndef OBJECTS_H
#define OBJECTS_H

#include "../tools/check.h"

#define RING 16

struct link {
	struct link *next, *prev;
	int value;
};

/* What makes a mutex glibc's own. */
enum native { NOT_NATIVE, SHARED, ROBUST, INHERIT, ROBUST_INHERIT, NATIVES };

struct object {
	pthread_mutex_t mutex;
	int type;   /* PTHREAD_MUTEX_*_NP, constant */
	int native; /* enum native */

	/* guarded by mutex */
	long inside; /* who is in the section, 0 = nobody */
	long count, copy;
	struct link head, links[RING];
} __attribute__((aligned(64)));

static inline void mutex_native(pthread_mutex_t *m, int type, int native)
{
	int robust = native == ROBUST || native == ROBUST_INHERIT;
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, native == SHARED), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, robust), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, native >= INHERIT ? PTHREAD_PRIO_INHERIT :
								       PTHREAD_PRIO_NONE),
		 0);
	CHECK_EQ(pthread_mutex_init(m, &a), 0);
	CHECK_EQ(pthread_mutexattr_destroy(&a), 0);
}

static inline void object_init(struct object *o, int type, int static_init)
{
	memset(o, 0, sizeof *o);
	o->type = type;
	if (static_init) {
		static const pthread_mutex_t init[] = {
		    [PTHREAD_MUTEX_NORMAL] = PTHREAD_MUTEX_INITIALIZER,
		    [PTHREAD_MUTEX_RECURSIVE] = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
		    [PTHREAD_MUTEX_ERRORCHECK] = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
		    [PTHREAD_MUTEX_ADAPTIVE_NP] = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
		};
		memcpy(&o->mutex, &init[type], sizeof o->mutex);
	} else {
		mutex_of_type(&o->mutex, type);
	}
	o->head.next = o->head.prev = &o->head;
	for (int i = 0; i < RING; i++) {
		struct link *l = &o->links[i];

		l->value = i;
		l->prev = o->head.prev;
		l->next = &o->head;
		l->prev->next = l;
		o->head.prev = l;
	}
}

/* The whole invariant; needs the lock. */
static inline void object_verify(struct object *o)
{
	unsigned seen = 0, back = 0;
	int n = 0;

	CHECK_EQ(o->count, o->copy);
	for (struct link *l = o->head.next; l != &o->head; l = l->next) {
		CHECK(l->next->prev == l);
		seen |= 1u << l->value;
		CHECK(++n <= RING);
	}
	n = 0;
	for (struct link *l = o->head.prev; l != &o->head; l = l->prev) {
		back |= 1u << l->value;
		CHECK(++n <= RING);
	}
	CHECK_EQ(seen, (1u << RING) - 1);
	CHECK_EQ(back, (1u << RING) - 1);
}

/* Enter, change and leave.  The marks are volatile: each has to reach memory. */
static inline void object_enter(struct object *o, long me)
{
	CHECK_EQ(*(volatile long *)&o->inside, 0);
	*(volatile long *)&o->inside = me;
}

static inline void object_change(struct object *o, unsigned which)
{
	struct link *l = &o->links[which % RING];
	long c = *(volatile long *)&o->count;

	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = o->head.next;
	l->prev = &o->head;
	l->next->prev = l;
	o->head.next = l;
	*(volatile long *)&o->copy = c + 1;
	*(volatile long *)&o->count = c + 1;
}

static inline void object_leave(struct object *o, long me)
{
	CHECK_EQ(*(volatile long *)&o->inside, me);
	*(volatile long *)&o->inside = 0;
}

/* Burns a little time without a system call. */
static inline void busy(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++)
		;
}

#endif
