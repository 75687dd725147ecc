/* SPDX-License-Identifier: MIT */
/*
 * The compact NUMA-aware lock: [cna.c:lock], [cna.c:unlock] with [cna.c:first_of_my_node] and
 * [cna.c:grant].  When the second queue gets its turn ([cna.c:is_time_for_others]) is open.
 *
 *   N threads on two NUMA nodes (one after the other; -DPAIRS: 0 0 1 1 0), R rounds each.
 * Mutants:
 *   MUT_FORGET   the queue is empty: the second one is forgotten
 *   MUT_FIRST    the queue is empty: the second one's first node becomes the tail, not its last
 *   MUT_KEEPS    the second queue is not handed over
 *   MUT_NO_LAST  waiters that come to a second queue do not move its end
 *   MUT_OPEN     the last node that goes there keeps its link into the first queue
 *   MUT_ALL      if nobody of this node waits, all go there, with the tail of the queue
 */
#ifndef N
#define N 4
#endif
#ifndef R
#define R 1
#endif
#ifdef PAIRS
#define NUMA(t) ((t) / 2 % 2)
#else
#define NUMA(t) ((t) % 2)
#endif

byte tail;		    /* 1 + thread, whose node it is; 0 none; so all below */
byte next[N], other[N];
bit granted[N];
byte inside, ended;

inline acquire()
{
	next[me] = 0;
	granted[me] = 0;
	other[me] = 0;
	atomic { n = tail; tail = 1 + me }
	if
	:: n -> next[n - 1] = 1 + me; granted[me]
	:: else
	fi;
	n = 0
}

inline grant(who, second)
{
#ifdef MUT_KEEPS
	other[who - 1] = 0;
#else
	other[who - 1] = second;
#endif
	granted[who - 1] = 1
}

/* n: the first waiter of mine, or 0. */
inline first_of_my_node(first)
{
	n = first;
	last = 0;
	do
	:: n == 0 -> break
	:: n != 0 && NUMA(n - 1) == NUMA(me) -> break
	:: else -> last = n; n = next[n - 1]
	od;
	if
#ifdef MUT_ALL
	:: last ->
#else
	:: n && last ->
#endif
#ifndef MUT_OPEN
		next[last - 1] = 0;
#endif
		if
		:: other[me] ->
			next[other[other[me] - 1] - 1] = first;
#ifndef MUT_NO_LAST
			other[other[me] - 1] = last
#endif
		:: else ->
			other[me] = first;
			other[first - 1] = last
		fi
	:: else
	fi;
	last = 0
}

inline release()
{
	nx = next[me];
	left = 0;
	if
	:: nx
	:: else ->
		atomic {
			if
			:: tail == 1 + me ->
				if
#ifdef MUT_FIRST
				:: other[me] -> tail = other[me]
#else
				:: other[me] -> tail = other[other[me] - 1]
#endif
				:: else -> tail = 0
				fi;
				left = 1
			:: else
			fi
		}
		if
#ifndef MUT_FORGET
		:: left && other[me] -> grant(other[me], 0)
#endif
		:: !left -> next[me]; nx = next[me]
		:: else
		fi
	fi;
	if
	:: left
	:: else ->
		n = 0;
		if
		:: first_of_my_node(nx)
		:: n = 0 /* time for the others */
		fi;
		if
		:: n -> grant(n, other[me])
		:: !n && other[me] ->
			next[other[other[me] - 1] - 1] = nx;
			grant(other[me], 0)
		:: else -> grant(nx, 0)
		fi
	fi;
	nx = 0;
	n = 0;
	left = 0
}

proctype thread(byte me)
{
	byte r, n, nx, last;
	bit left;

	do
	:: r == R -> break
	:: else ->
		acquire();
		inside++;
		assert(inside == 1);
		inside--;
		release();
		r++
	od;
	ended++
}

init {
	byte i;

	atomic {
		do
		:: i < N -> run thread(i); i++
		:: else -> break
		od
	}
	ended == N;
	assert(!tail)
}
