/* SPDX-License-Identifier: MIT */
/*
 * The queue of a lock's spinning waiters: an MCS queue (Mellor-Crummey, Scott,
 * TOCS 1991) that its members may leave at any time and whose hand-over never
 * waits.  Exactly one of its members at a time is the head, and only the head
 * polls the lock word; the others look at it rarely.
 *
 *   node state  meaning                              who moves it on
 *   FREE        in no queue                          owner -> WAITING
 *   WAITING     behind somebody                      owner -> LEFT, predecessor -> GRANTED, LEFT
 *                                                    (skipped), HEAD (given the lock as well)
 *   GRANTED     offered the head's role              owner -> HEAD, predecessor -> LEFT (revoked)
 *   HEAD        its owner is the head                owner, by handing over -> FREE; -> KEPT
 *   KEPT        it is, and has the lock (offer.h)    whoever hands over for it -> HEAD
 *   LEFT        left behind in the queue             whoever hands over past it -> FREE
 *   LEFT_TWICE  and offered the lock in vain         who offered it -> LEFT
 *
 * The state carries an incarnation number, so that a predecessor that was held
 * up cannot revoke a later use of the same node.  Nodes are numbers, not
 * pointers: type-stable memory, 18 bits, and room for the fork epoch.
 *
 * Invariants, the model that checks them: docs/design/lock.md, test/verify/lock.pml.
 */
#ifndef FG_QUEUE_H
#define FG_QUEUE_H

#include "lock/lock.h"

/*
 * Joins the queue of `l` if a node is to be had.  Returns its number, 0 if all
 * nodes of this thread are in use.  *behind is the node that it joined behind; 0: the caller is the
 * head now; if not, _fg_queue_poll tells.
 */
uint32_t _fg_queue_join(struct fg_lock *l, struct fg_self *t, uint32_t *behind);

/* A hint: does the node that the caller joined behind still wait, or wait again? */
bool _fg_queue_still_waits(uint32_t before);

enum fg_queue_poll {
	FG_QUEUE_WAIT,	/* still behind somebody */
	FG_QUEUE_HEAD,	/* the caller is the head now */
	FG_QUEUE_GIVEN, /* and has the lock */
	FG_QUEUE_LOST,	/* passed over while off CPU; the caller is out, its node gone */
};
enum fg_queue_poll _fg_queue_poll(struct fg_self *t, uint32_t n);

/* A waiting member goes.  LOST: it is out.  HEAD, GIVEN: made that just now, and still in. */
enum fg_queue_poll _fg_queue_leave(struct fg_self *t, uint32_t n);

/*
 * Frames of the calling thread below this one, in signal handlers or under one, wait no longer in
 * queues: a hand-over goes past them, and they see that they have lost their place.
 */
void _fg_queue_leave_below(const struct fg_self *t);

/*
 * The calling thread ends, in the middle of a wait: cancelled asynchronously, say.  It leaves all
 * queues, and passes on the role of the head.  The locks may be gone, and are not looked at.
 */
void _fg_queue_thread_ends(struct fg_self *t);

/* The successor of a head, as it was at the last look; next = 0: nobody yet. */
struct fg_successor {
	uint32_t next, state;
	bool more;	       /* and there was somebody behind it */
	uint8_t walked;	       /* nodes behind it that have been looked at */
	uint32_t before;       /* the last of these */
	uint32_t waited_us;    /* of the head: for so long all behind it have waited, too */
	enum fg_notice notice; /* what a head that promises to tell it tells it now */
};

/*
 * A head that waits for the lock looks who is behind it, so that to pass the role on, which it
 * does with the lock in hand, takes one cache line that is not its own and not three.
 */
void _fg_queue_look_behind(uint32_t n, struct fg_successor *behind);
/* Of its own line alone: is there one? */
bool _fg_queue_has_next(uint32_t n, struct fg_successor *behind);

/*
 * And one node further behind at each call: one that is nearer than its successor comes to the
 * front.  Shuffling ahead of the turn: Kashyap, Calciu, Cheng, Min, Kim, "Scalable and Practical
 * Locking with Shuffling", SOSP 2019.
 */
void _fg_queue_bring_near(struct fg_self *t, uint32_t n, struct fg_successor *behind);

/* By the thread that the node is of: there is a successor, and it is at another cache. */
bool _fg_queue_next_is_far(const struct fg_self *t, uint32_t n);

/* The head passes its role on and is out.  Never waits. */
void _fg_queue_hand_over(struct fg_lock *l, struct fg_self *t, uint32_t n,
			 const struct fg_successor *behind);

/* The head has been given the lock as well, and keeps its place.  False: it is not in it. */
bool _fg_queue_keep(uint32_t n);

/* The thread with this index runs, as far as the monitor knows, which watches it. */
bool _fg_may_be_given(uint32_t index);

/*
 * It is out.  True: it has given both to the node behind it.  Else that does not wait, or does not
 * run, or there is none, and the role is passed on alone.  Not if another thread has done so, which
 * releases the lock in its place (_fg_queue_pass_on).
 */
bool _fg_queue_give(struct fg_lock *l, struct fg_self *t, uint32_t n, bool lock_as_well);
void _fg_queue_pass_on(struct fg_lock *l, struct fg_self *t, uint32_t n);
/* The lock is no more. */
void _fg_queue_forget(uint32_t n);
/* Of which lock it is nobody knows.  If no other thread has passed the role on, none can. */
void _fg_queue_lost(uint32_t n);

#endif
