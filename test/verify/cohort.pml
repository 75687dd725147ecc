/* SPDX-License-Identifier: MIT */
/*
 * The cohort lock: [cohort.c:trylock], [cohort.c:lock], [cohort.c:unlock] with
 * [cohort.c:draw_and_wait], [cohort.c:call_next], [zoo.h:zoo_node_behind].
 *
 *   N threads on two NUMA nodes, in turn, R rounds each; BOUND hand-overs in a row.  -DTRY: each
 *   tries first.  While the head of a queue waits for its number, the other node has BOUND + 1
 *   sections at most, and one more of a thread that has tried.  The last section of all is
 *   followed by pthread_mutex_destroy(): no release may touch the lock after it.
 * Mutants:
 *   MUT_NO_TICKET    the head of a queue that was not granted the ticket lock does not draw
 *   MUT_CALLS        a hand-over in the queue calls the next number as well
 *   MUT_NO_BOUND     no hand-over is the last
 *   MUT_TICKET_FIRST the papers' order: the ticket lock is released before the queue is left
 *   MUT_NO_LINK      a release does not wait for one that is about to link itself
 */
#ifndef N
#define N 3
#endif
#ifndef R
#define R 2
#endif
#ifndef BOUND
#define BOUND 1
#endif
#ifdef TRY
#define BEFORE_ME (BOUND + 2)
#else
#define BEFORE_ME (BOUND + 1)
#endif
#define WAITING 0
#define GRANTED 1
#define HEAD	2
#define NODE	(me % 2)

byte number, called;	       /* the ticket lock */
byte tail[2];		       /* 1 + thread, whose node it is; 0 none */
byte hand_overs[2];
byte next[N], status[N];
byte node;		       /* m->node */
byte inside, rounds, ended;
bit gone;		       /* destroyed */
bit drawn[2];		       /* a head waits for its number */
byte overtaken[2];	       /* since then by others of the other node */

inline touch()
{
	assert(!gone)
}

inline section()
{
	inside++;
	assert(inside == 1);
	if
	:: drawn[1 - NODE] -> overtaken[1 - NODE]++; assert(overtaken[1 - NODE] <= BEFORE_ME)
	:: else
	fi;
	rounds++;
	last = (rounds == N * R);
	inside--
}

inline acquire()
{
	got = 0;
#ifdef TRY
	c = called;
	atomic {
		if
		:: number == c -> number++; got = 1
		:: else
		fi
	}
	if
	:: got -> node = 0
	:: else
	fi;
#endif
	if
	:: got
	:: else ->
		next[me] = 0;
		status[me] = WAITING;
		atomic { before = tail[NODE]; tail[NODE] = 1 + me }
		s = HEAD;
		if
		:: before ->
			next[before - 1] = 1 + me;
			(status[me] != WAITING);
			s = status[me]
		:: else
		fi;
		before = 0;
		if
#ifdef MUT_NO_TICKET
		:: s == HEAD && inside == 200
#else
		:: s == HEAD ->
			atomic { c = number; number++; drawn[NODE] = 1; overtaken[NODE] = 0 }
			atomic { called == c -> drawn[NODE] = 0 }
			hand_overs[NODE] = 0
#endif
		:: else
		fi;
		node = 1 + me
	fi;
	c = 0;
	s = 0
}

inline call_next()
{
	touch();
	c = called;
	called = c + 1;
	c = 0
}

/* n: who is the head now, or 0. */
inline leave_queue()
{
	touch();
	n = next[me];
	if
	:: n
	:: else ->
		atomic {
			touch();
			if
			:: tail[NODE] == 1 + me -> tail[NODE] = 0; got = 0
			:: else -> got = 1
			fi
		}
		if
#ifdef MUT_NO_LINK
		:: got -> n = next[me]
#else
		:: got -> next[me] != 0; n = next[me]
#endif
		:: else
		fi
	fi;
	if
	:: n -> status[n - 1] = HEAD
	:: else
	fi
}

inline release()
{
	if
	:: node == 0 -> call_next()
	:: else ->
		n = next[me];
		if
#ifdef MUT_NO_BOUND
		:: n ->
#else
		:: n && hand_overs[NODE] < BOUND ->
			hand_overs[NODE]++;
#endif
#ifdef MUT_CALLS
			call_next();
#endif
			status[n - 1] = GRANTED
		:: else ->
#ifdef MUT_TICKET_FIRST
			call_next();
			leave_queue()
#else
			leave_queue();
			call_next()
#endif
		fi
	fi;
	n = 0;
	got = 0
}

proctype thread(byte me)
{
	byte r, before, s, c, n;
	bit got, last;

	do
	:: r == R -> break
	:: else ->
		acquire();
		section();
		release();
		if
		:: last -> gone = 1
		:: else
		fi;
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
	assert(!tail[0] && !tail[1] && number == called)
}
