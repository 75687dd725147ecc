/* SPDX-License-Identifier: MIT */
/*
 * The queue of a kernel spinlock whose head lets waiters that a policy prefers come directly behind
 * itself (docs/design/syncord.md).  Mirrors kernel/locking/qspinlock.c as kernel/patches makes it:
 * the slow path from the queue on, and the head's scan.  Each step is one access to shared memory,
 * memory is sequentially consistent.  The policy answers at will, the scan ends at will (its
 * budget, or the owner has left): every policy at once.
 *
 *   N waiters, R rounds each with the same node, one owner before them, a clock that makes one of
 *   them overdue
 *   -DMIXED   waiter 0 came before the policy: pending bit, no scan, the stock order of reads; and
 *             one without a node, that polls for the whole word to be free
 *
 * Asked: mutual exclusion; everybody gets in (nobody is lost); at the end the word is 0; nobody is
 * moved past a waiter that was overdue when it was looked at (a hardirq's waiter is so at once).
 *
 * Mutants: MUT_TAIL (what may be the tail is moved), MUT_STALE (the successor is read before the
 * scan), MUT_ORDER (linked before its own link is right), MUT_NO_BOUND (nobody is overdue), MUT_TWO
 * (a waiter scans before it is head), MUT_BLIND (the head does not see a pending bit), MUT_AFTER
 * (the scan goes on after the grant), MUT_KEEPS_GRANT, MUT_KEEPS_NEXT (a node is used again as it
 * was).
 */
#ifndef N
#define N 4
#endif
#ifndef R
#define R 1
#endif
#define NIL 15

/* The lock's word, and the nodes. */
bit locked = 1, pending;
byte tail = NIL;
byte next[N] = NIL;
bit granted[N];

bit overdue[N];
byte inside, ended;

#define FREE (!locked && !pending)
#ifdef MUT_BLIND
#define LEFT (!locked)
#else
#define LEFT FREE
#endif

inline look_and_move()
{
	curr = next[prev];
	n = next[curr];
#ifndef MUT_TAIL
	if
	:: n == NIL -> goto scanned /* it may be the tail, whose link is another's to write */
	:: else
	fi;
#endif
	if
	:: atomic {
		/* the policy does not prefer it: it is passed, or it is overdue */
#ifndef MUT_NO_BOUND
		if
		:: overdue[curr] -> goto scanned
		:: else
		fi;
#endif
		late = late || overdue[curr];
		prev = curr
	   }
	:: prev == last -> d_step { last = curr; prev = curr } /* it stands right already */
	:: prev != last ->
		assert(!late);
		next[prev] = n;
#ifdef MUT_ORDER
		next[last] = curr;
		next[curr] = next[last];
#else
		n = next[last];
		next[curr] = n;
		next[last] = curr;
#endif
		last = curr
	fi
}

proctype Waiter(byte me; bit stock)
{
	byte round, old, prev, last, curr, n;
	bit late;
#ifdef MUT_TWO
	bit first;
#endif

	do
	:: round == R -> break
	:: round < R ->
		round++;
#ifdef MIXED
		if
		:: stock ->
			atomic { old = pending; n = (tail != NIL); pending = 1 };
			if
			:: !old && !n ->
				!locked;
				atomic { pending = 0; locked = 1; n = 0; goto got }
			:: !old && n -> pending = 0
			:: else
			fi
		:: else
		fi;
#endif
		/* its own node, that nobody knows of */
		d_step {
			n = 0;
#ifndef MUT_KEEPS_GRANT
			granted[me] = 0;
#endif
#ifndef MUT_KEEPS_NEXT
			next[me] = NIL;
#endif
			overdue[me] = 0
		};
		atomic {
			if
			:: FREE && tail == NIL -> locked = 1; goto got
			:: else
			fi
		};
		atomic { old = tail; tail = me };
#ifdef MUT_TWO
		first = (old == NIL);
#endif
		if
		:: old != NIL ->
			next[old] = me;
#ifndef MUT_TWO
			granted[me]
#endif
		:: else
		fi;
		if
		:: stock -> old = next[me]; goto scanned
		:: else
		fi;
		old = NIL;
#ifdef MUT_STALE
		old = next[me];
#endif
		d_step { last = me; prev = me };
		do
		:: break
		:: next[prev] != NIL -> look_and_move()
		od;
scanned:
		atomic { prev = 0; last = 0; curr = 0; n = 0; late = 0 };
#ifdef MUT_TWO
		first || granted[me];
#endif
		atomic { LEFT -> n = tail };
		if
		:: n == me ->
			atomic {
				if
				:: FREE && tail == me -> tail = NIL; locked = 1; goto got
				:: else
				fi
			}
		:: else
		fi;
		locked = 1;
		if
		:: old == NIL -> atomic { next[me] != NIL -> old = next[me] }
		:: else
		fi;
		granted[old] = 1;
#ifdef MUT_AFTER
		d_step { last = me; prev = me; late = 0 };
		do
		:: break
		:: next[prev] != NIL && last == me -> look_and_move()
		od;
#endif
got:
		atomic { old = 0; n = 0; prev = 0; last = 0; curr = 0; late = 0;
			 inside++; assert(inside == 1) };
		atomic { inside--; locked = 0 }
	od;
	ended++
}

#ifdef MIXED
/* One that is nested too deeply to have a node. */
proctype Thief()
{
	atomic { FREE && tail == NIL -> locked = 1; inside++; assert(inside == 1) };
	atomic { inside--; locked = 0 };
	ended++
}
#define OTHERS 3
#else
#define OTHERS 2
#endif

proctype Owner()
{
	atomic { locked = 0; ended++ }
}

/* The waiters are alike: it does not matter which it is. */
proctype Clock()
{
	atomic { overdue[N - 1] = 1; ended++ }
}

init
{
	byte i;

	atomic {
		for (i : 0 .. N - 1) {
#ifdef MIXED
			run Waiter(i, i == 0)
#else
			run Waiter(i, 0)
#endif
		};
		run Owner();
		run Clock();
#ifdef MIXED
		run Thief();
#endif
		i = 0
	};
	ended == N + OTHERS;
	assert(tail == NIL && FREE)
}
