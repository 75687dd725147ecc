/* SPDX-License-Identifier: MIT */
/*
 * The barrier.  Mirrors src/lock/barrier.c: [barrier.c:_fg_barrier_wait],
 * [barrier.c:sleep_through], [barrier.c:leave], [barrier.c:_fg_barrier_destroy].
 * Each step is one access to shared memory; a waiter spins or sleeps at will.
 *
 *   N threads, R rounds; the serial thread of the last round destroys and frees
 *
 * Asked: nobody leaves a round before all have arrived; nobody sleeps for ever;
 * nobody touches the barrier after it has been freed.  Mutants: MUT_FLAG (the
 * sleepers' flag beside the generation), MUT_LATE (the count of arrivals reset
 * after the round is over), MUT_NO_DRAIN (destroy does not wait), MUT_TOP (the
 * destroyer's bit above the count of those that have left, which runs over into it).
 */
#ifndef N
#define N 3
#endif
#ifndef R
#define R 2
#endif

byte generation, arrived;
byte left; /* a word of three bits, so that its count runs over: modulo 4, and the destroyer's */
bit sleepers, gone;
bit asleep[N + 1]; /* N: the destroyer */
byte at[N];	   /* round that each has arrived in */

#ifdef MUT_TOP
#define LEAVER	  1
#define DESTROYER 4
#else
#define LEAVER	  2
#define DESTROYER 1
#endif
#define COUNT	  (7 - DESTROYER)
#define ALL	  ((N * R * LEAVER) & COUNT)

#define TOUCH assert(!gone)

/* A futex wake names an address: no touch. */
inline wake_all()
{
	d_step {
		i = 0;
		do
		:: i < N -> asleep[i] = 0; i++
		:: else -> break
		od;
		i = 0
	}
}

proctype Participant(byte me)
{
	byte round, mine, i;
	bit last, wake;

	do
	:: round < R ->
		atomic { TOUCH; mine = generation };
		round++;
		at[me] = round;
		atomic { TOUCH; arrived++; last = (arrived == N) };
		if
		:: last ->
#ifdef MUT_FLAG
			atomic { TOUCH; arrived = 0 };
			atomic { TOUCH; wake = sleepers; sleepers = 0 };
			atomic { TOUCH; generation++ };
#else
#ifndef MUT_LATE
			atomic { TOUCH; arrived = 0 };
#endif
			atomic { TOUCH; generation++; wake = sleepers; sleepers = 0 };
#ifdef MUT_LATE
			atomic { TOUCH; arrived = 0 };
#endif
#endif
			if
			:: wake -> wake_all()
			:: else
			fi
		:: else ->
			do
			:: atomic { generation != mine -> TOUCH }; break
#ifdef MUT_FLAG
			:: atomic { generation == mine -> TOUCH };
			   atomic { TOUCH; sleepers = 1 };
			   if
			   :: atomic { generation == mine -> asleep[me] = 1 }; !asleep[me]
			   :: generation != mine
			   fi
#else
			:: atomic { generation == mine && !sleepers -> TOUCH; sleepers = 1 }
			:: atomic { generation == mine && sleepers ->
				TOUCH; asleep[me] = 1 }; !asleep[me]
#endif
			od
		fi;
		i = 0;
		do
		:: i < N -> assert(at[i] >= round); i++
		:: else -> i = 0; break
		od;
		atomic { TOUCH; left = (left + LEAVER) & 7; wake = ((left & DESTROYER) != 0) };
		if
		:: wake -> asleep[N] = 0
		:: else
		fi
	:: else -> break
	od;
	if
	:: last ->
#ifndef MUT_NO_DRAIN
		do
		:: (left & COUNT) == ALL -> break
		:: atomic { (left & COUNT) != ALL && !(left & DESTROYER) ->
			left = left | DESTROYER }
		:: atomic { (left & COUNT) != ALL && (left & DESTROYER) ->
			asleep[N] = 1 }; !asleep[N]
		od;
#endif
		gone = 1
	:: else
	fi
}

init {
	byte n;

	atomic {
		do
		:: n < N -> run Participant(n); n++
		:: else -> break
		od
	}
}
