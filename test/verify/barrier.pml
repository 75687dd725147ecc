/* SPDX-License-Identifier: MIT */
/*
 * The barrier.  Mirrors src/lock/barrier.c: [barrier.c:_fg_barrier_wait],
 * [barrier.c:wait_for_end], [barrier.c:sleep_through], [barrier.c:end_round],
 * [barrier.c:leave], [barrier.c:_fg_barrier_destroy].
 * Each step is one access to shared memory; a waiter spins or sleeps at will.
 *
 *   N threads, C of them a round, N * R waits in all, by whoever comes first; the
 *   serial thread of the last round destroys and frees
 *
 * Asked: nobody leaves a round before all have arrived; nobody sleeps for ever;
 * nobody touches the barrier after it has been freed.  Mutants: MUT_FLAG (the
 * sleepers' flag beside the generation), MUT_READ (arrivals beside the generation, too,
 * which is read before), MUT_NO_DRAIN (destroy does not wait), MUT_ENDED (it waits for
 * rounds that have been ended only), MUT_TOP (the destroyer's bit above the count of those
 * that have left, which runs over into it).
 */
#ifndef N
#define N 3
#endif
#ifndef C
#define C N
#endif
#ifndef R
#define R 2
#endif

byte generation, arrived;
byte left; /* a word of three bits, so that its count runs over: modulo 4, and the destroyer's */
bit sleepers, gone;
bit asleep[N + 1]; /* N: the destroyer */
byte began, came;  /* the model's own: waits that threads have set out for, and arrivals */

#ifdef MUT_TOP
#define LEAVER	  1
#define DESTROYER 4
#else
#define LEAVER	  2
#define DESTROYER 1
#endif
#define COUNT	  (7 - DESTROYER)
#ifdef MUT_ENDED
#define ALL ((generation * C * LEAVER) & COUNT)
#else
#define ALL (((generation + arrived / C) * C * LEAVER) & COUNT)
#endif

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
	byte end, place, i;
	bit last, wake;

	do
	:: atomic { began < N * R -> began++ };
#ifdef MUT_READ
		atomic { TOUCH; end = generation + 1 };
		atomic { TOUCH; arrived++; last = (arrived == C); place = came; came++ };
#else
		atomic {
			TOUCH;
			end = generation + arrived / C + 1;
			last = (arrived % C == C - 1);
			arrived++;
			place = came;
			came++
		};
#endif
		if
		:: last ->
#ifdef MUT_READ
			atomic { TOUCH; arrived = 0 };
			atomic { TOUCH; generation++; wake = sleepers; sleepers = 0 };
#else
#ifdef MUT_FLAG
			atomic { TOUCH; wake = sleepers; sleepers = 0 };
			atomic { TOUCH; generation++; arrived = arrived - C };
#else
			atomic {
				TOUCH;
				generation++;
				arrived = arrived - C;
				wake = sleepers;
				sleepers = 0
			};
#endif
#endif
			if
			:: wake -> wake_all()
			:: else
			fi
		:: else ->
			do
			:: atomic { generation >= end -> TOUCH }; break
#ifdef MUT_FLAG
			:: atomic { generation < end -> TOUCH };
			   atomic { TOUCH; sleepers = 1 };
			   if
			   :: atomic { generation < end -> asleep[me] = 1 }; !asleep[me]
			   :: generation >= end
			   fi
#else
			:: atomic { generation < end && !sleepers -> TOUCH };
			   /* an OR, which may come when the round is over */
			   atomic { TOUCH; sleepers = 1 };
			:: atomic { generation < end && sleepers ->
				TOUCH; asleep[me] = 1 }; !asleep[me]
#endif
			od
		fi;
		assert(came >= (place / C + 1) * C);
		atomic { TOUCH; left = (left + LEAVER) & 7; wake = ((left & DESTROYER) != 0) };
		if
		:: wake -> asleep[N] = 0
		:: else
		fi
	:: began == N * R -> break
	od;
	if
	:: last && place == N * R - 1 ->
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
