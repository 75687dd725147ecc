/* SPDX-License-Identifier: MIT */
/*
 * The order of the queue in src/lock/queue.c: a head brings a waiter that is nearer to the front,
 * while others join, leave, and are passed over.  The rest of the queue, with the lock, the monitor
 * and re-used nodes, is in lock.pml; joining, leaving and handing over are the same here.  Each
 * step is one access to shared memory, under sequential consistency.
 *
 *   N threads, one node each, R acquisitions each (R1: of thread 1)
 *   B          how often others may come past a waiter while it is the first
 *   -DLEAVE    a waiter may leave at any time
 *
 * Who is nearer, and who is off its CPU, is open at each question.  MUT_* are faults that have to
 * be found.
 */
#ifndef N
#define N 4
#endif
#ifndef R
#define R 1
#endif
#ifndef R1
#define R1 R
#endif
#ifndef B
#define B 1
#endif

#define FREE    0
#define WAITING 1
#define GRANTED 2
#define HEAD    3
#define LEFT    4
#define HANDED  255
/* A link: the number of a node, and how often others have come past it. */
#define NODE(link)   ((link) & 7)
#define PASSED(link) ((link) >> 3)

byte tail, nx[N + 1], st[N + 1];
byte granter[N + 1];      /* whose offer a GRANTED node has: lock.pml */

/* Ghost variables */
byte heads, ndone;
byte passed[N + 1];

inline role_taken() { heads++; assert(heads == 1) }

inline node_free(i) {
	atomic { assert(st[i] == HEAD || st[i] == LEFT); st[i] = FREE }
}

/* [queue.c:_fg_queue_join]  head, or not yet. */
inline join() {
	d_step { nx[me] = 0; st[me] = WAITING; passed[me] = 0 };
	atomic {
		at = tail;
		tail = me;
		if
		:: at == 0 -> role_taken(); st[me] = HEAD; head = 1
		:: else
		fi
	};
	if
	:: at != 0 ->
		atomic {
			assert(st[at] != FREE);
			next = nx[at];
			nx[at] = me;
			if
			:: next == HANDED -> role_taken()
			:: else -> assert(next == 0)
			fi
		};
		if
		:: next == HANDED -> node_free(at); st[me] = HEAD; head = 1
		:: else
		fi
	:: else
	fi;
	at = 0;
	next = 0
}

/* [queue.c:_fg_queue_poll], [queue.c:_fg_queue_leave]  head, or out. */
inline wait() {
	do
	:: st[me] == GRANTED ->
		atomic {
			if
			:: st[me] == GRANTED ->
				st[me] = HEAD; granter[me] = 0; role_taken(); head = 1
			:: else
			fi
		};
		break
	:: st[me] == LEFT || st[me] == FREE -> break
#ifdef LEAVE
	:: atomic { st[me] == WAITING -> st[me] = LEFT }; break
#endif
	od
}

/*
 * [near.c:_fg_queue_bring_near] with [near.c:is_nearer], [near.c:is_far].  `first` is what
 * [queue.c:_fg_queue_look_behind] has read; it does not change but here.
 */
inline bring_near() {
	first = nx[me];
	before = NODE(first);
	do
	:: before == 0 -> break
#ifdef MUT_NO_BOUND
	:: before != 0 ->
#else
	:: before != 0 && PASSED(first) >= B -> break
	:: before != 0 && PASSED(first) < B ->
#endif
		link = nx[before];
		if
		:: link == 0 -> break
		:: else
		fi;
		next = nx[NODE(link)];
		if
#ifdef MUT_LAST
		:: true ->
#else
		:: next == 0 -> break
		:: next != 0 -> before = NODE(link); next = 0 /* no nearer, or it has left */
		:: next != 0 ->
#endif
			nx[before] = next;
			nx[NODE(link)] = first + 8;
			d_step { passed[NODE(first)]++; assert(passed[NODE(first)] <= B) };
			nx[me] = link;
#ifndef MUT_STALE
			first = 0;
#endif
			break
		fi
	:: break
	od;
	link = 0;
	next = 0;
	before = 0
#ifndef MUT_STALE
	; first = 0
#endif
}

/* [queue.c:count_time]  Who waits for long counts as several that have been passed. */
inline count_time() {
	next = nx[at];
	if
	:: next > 7 && PASSED(next) < B -> d_step { assert(nx[at] == next); nx[at] = next + 8 }
	:: true
	fi;
	next = 0
}

/* [queue.c:_fg_queue_hand_over] with [queue.c:grant] */
inline hand_over() {
	at = me;
	do
	:: atomic { assert(st[at] != FREE); next = nx[at] };
#ifdef MUT_STALE
	   if
	   :: at == me && first != 0 -> next = first
	   :: else
	   fi;
#endif
	   if
	   :: next == 0 ->
		atomic {
			if
			:: tail == at -> tail = 0; heads--; ok = 1
			:: else -> ok = 0
			fi
		};
		if
		:: ok -> node_free(at); break
		:: else
		fi;
		atomic {
			if
			:: nx[at] == 0 -> nx[at] = HANDED; heads--; ok = 1
			:: else -> next = nx[at]; ok = 0
			fi
		};
		if
		:: ok -> break
		:: else
		fi
	   :: else
	   fi;
	   node_free(at);
	   at = NODE(next);
	   s = st[at];
	   assert(s == WAITING || s == LEFT);
#ifndef MUT_COUNT_LATE
	   count_time();
#endif
	   if
	   :: s == WAITING ->
		if
		:: atomic { st[at] == WAITING -> st[at] = LEFT } /* off its CPU */
		:: atomic {
			if
			:: st[at] == WAITING -> st[at] = GRANTED; granter[at] = me; heads--; ok = 1
			:: else -> ok = 0
			fi }
#ifdef MUT_COUNT_LATE
		   count_time();
#endif
		   if
		   :: ok -> break
		   :: ok -> /* it goes off its CPU */
			atomic {
				if
				:: st[at] == GRANTED && granter[at] == me ->
					st[at] = LEFT; granter[at] = 0; role_taken(); ok = 0
				:: else
				fi
			};
			if
			:: ok -> break
			:: else
			fi
		   :: else
		   fi
		fi
	   :: else
	   fi
	od;
	atomic { at = 0; next = 0; s = 0; ok = 0; head = 0 }
#ifdef MUT_STALE
	; first = 0
#endif
}

proctype Thread(byte me) {
	byte it, at, next, s, first, before, link;
	bit ok, head;
	do
	:: it < (me == 1 -> R1 : R) ->
		it++;
		if
		:: st[me] == FREE ->
			join();
			if
			:: !head -> wait()
			:: else
			fi;
			if
			:: head -> bring_near(); hand_over()
			:: else
			fi
		:: else
		fi
	:: else -> break
	od;
	atomic { it = 0; ndone++ }
}

init {
	byte i = 1;

	atomic {
		do
		:: i <= N -> run Thread(i); i++
		:: else -> break
		od
	};
	ndone == N;
	d_step {
		assert(tail == 0 && heads == 0);
		for (i : 1 .. N) { assert(st[i] == FREE) }
	}
}
