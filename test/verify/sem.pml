/* SPDX-License-Identifier: MIT */
/*
 * Semaphores, the turns of those that sleep for one, and the gate of those that spin.  Mirrors
 * [sem.c:_fg_sem_fast], [sem.c:_fg_sem_trywait], [sem.c:take_past], [sem.c:note_barging],
 * [sem.c:sleepers_turn_ns], [sem.c:leave_it], [sem.c:pass_gate], [sem.c:ask_in_time],
 * [sem.c:take_counted], [sem.c:begin_turn], [sem.c:end_turn], [sem.c:leave_gate],
 * [sem.c:_fg_sem_spin], [sem.c:_fg_sem_slept], [sem.c:sleep_for], [sem.c:_fg_sem_wait],
 * [sem.c:_fg_sem_post]; glibc's sem_wait() and sem_post() are the same steps.  A spin may end at
 * any time, turns end when the clock says so, which is at any time, and who has the gate may ask at
 * any time.  The gate is one step (gate.pml).
 *
 *   N threads, R rounds each, UNITS; the sleepers have TURNS turns at most.  -DDEAD: one of another
 *   process has died in its sleep and is counted for ever.  Of the first thread: -DTIMED, its
 *   sleeps may end by themselves; -DSTAYS, it spins until it has it.  -DHALT: another may be
 *   halted for ever when it has the gate.
 *   No more are in than there are units, none waits for ever, and in a turn of the sleepers no
 *   thread takes it past them that has not looked whose turn it is before that turn began.
 *   Mutants: MUT_ALWAYS (the awake leave nothing), MUT_NO_GRACE (their turn ends only when a
 *   sleeper comes), MUT_ONE (a post wakes only if one sleeps), MUT_TAKES_WAKE (one whose time is up
 *   though it has been woken goes without a look), MUT_PATIENT (who waits at the gate never looks
 *   for itself), MUT_COUNTED (who has asked, and goes to sleep, is still counted),
 *   MUT_STAYS_COUNTED (so is one that gets a value).
 */
#ifndef N
#define N 3
#endif
#ifndef R
#define R 2
#endif
#ifndef UNITS
#define UNITS 1
#endif
#ifndef TURNS
#define TURNS 2
#endif
#ifdef DEAD
#define GONE 1
#else
#define GONE 0
#endif

#ifdef STAYS
#define ENDS (me != 0)
#else
#define ENDS true
#endif

byte value = UNITS, sleepers = GONE; /* one word */
bit asleep[N];
byte turn; /* 0: nobody's, 1: of the awake, 2: of those that sleep */
byte passed[N]; /* so often the thread has gone past a sleeper in this turn of theirs */
byte inside, ended, gate; /* gate: its owner + 1 */
bit halted, ghost;	  /* one has been, and is counted */

inline begin_turn()
{
	turn = 2;
	i = 0;
	do
	:: i < N -> passed[i] = 0; i++
	:: else -> break
	od;
	i = 0
}

/* What it was before: nobody's, or of the awake; or somebody else has changed it. */
inline end_turn()
{
	if
	:: turn = 0
	:: turn = 1
	:: true
	fi
}

proctype Clock()
{
	byte turns, i;

end:
	do
	:: atomic { turns < TURNS && turn == 1 ->
		turns++;
		begin_turn() }
#ifndef MUT_NO_GRACE
	:: atomic { turn == 2 -> turn = 0 }
#endif
	od
}

inline wake_one()
{
	atomic {
		if
		:: asleep[0] -> asleep[0] = 0
		:: asleep[1] -> asleep[1] = 0
		:: N > 2 && asleep[2 % N] -> asleep[2 % N] = 0
		:: !asleep[0] && !asleep[1] && !(N > 2 && asleep[2 % N])
		fi
	}
}

/* By one that has looked whose turn it is, or found no sleepers. */
inline trywait()
{
	atomic {
		if
		:: value > 0 ->
			value--;
			got = 1;
			if
			:: sleepers > 0 && turn == 2 ->
				passed[me]++;
				assert(passed[me] <= 1)
			:: else
			fi
		:: else
		fi
	}
}

inline spin()
{
	do
	:: got -> break
	:: atomic { !got && !asks && value > 0 && sleepers == 0 -> value--; got = 1 }
	:: atomic { !got && asks && value > 0 ->
		value--;
#ifndef MUT_STAYS_COUNTED
		sleepers--;
#endif
		got = 1;
		asks = 0 };
		end_turn()
	:: atomic { !got && asks && turn != 2 -> begin_turn() } /* others have ended it */
	:: !got && !at && !around ->
		if
		:: atomic { gate == 0 -> gate = me + 1; at = 1 }
#ifndef MUT_PATIENT
		:: atomic { gate != 0 -> around = 1 }
#endif
		fi
	:: !got && at && !asks && sleepers == 0 ->
		atomic {
			if
			:: turn != 2 -> begin_turn()
			:: else
			fi
		};
		atomic { sleepers++; asks = 1 }
#ifdef HALT
	:: atomic { !got && at && me && !halted -> halted = 1; ghost = asks; goto over }
#endif
	:: !got && !asks && value > 0 && sleepers > 0 ->
		if
#ifdef MUT_ALWAYS
		:: turn == 2
#else
		:: atomic { turn == 2 -> left = 1 }
#endif
		:: atomic { turn != 2 -> turn = 1 }
		fi;
		if
		:: !left -> trywait()
		:: left && (value == 0 || turn != 2)
		:: left && ENDS -> break
		fi;
		left = 0
	:: !got && ENDS -> break
	od;
	left = 0;
	around = 0;
#ifdef MUT_COUNTED
	asks = 0;
#else
	if
	:: asks -> end_turn(); atomic { sleepers--; asks = 0 }
	:: else
	fi;
#endif
	if
	:: at -> atomic { gate = 0; at = 0 }
	:: else
	fi
}

inline sleep_for()
{
	sleepers++;
	do
	:: atomic { value > 0 ->
		value--;
		sleepers--;
		got = 1;
		if
		:: slept -> turn = 0
		:: else
		fi }; break
	:: atomic { value == 0 -> asleep[me] = 1 };
		if
		:: atomic { !asleep[me] -> slept = 1 }
#ifdef TIMED
#ifdef MUT_TAKES_WAKE
		:: atomic { me == 0 -> asleep[me] = 0; sleepers-- }; break
#else
		:: atomic { me == 0 && asleep[me] -> asleep[me] = 0; sleepers-- }; break
#endif
#endif
		fi
	od;
	slept = 0
}

proctype Thread(byte me)
{
	byte rounds, i;
	bit got, left, slept, woke, at, around, asks;

	do
	:: rounds == R -> break
	:: rounds < R ->
		rounds++;
		spin();
		if
		:: !got -> sleep_for()
		:: got
		fi;
		if
		:: got ->
			atomic { inside++; assert(inside <= UNITS) };
			inside--;
			atomic {
				got = 0;
				value++;
#ifdef MUT_ONE
				woke = sleepers == 1
#else
				woke = sleepers > 0
#endif
			};
			if
			:: woke -> wake_one(); woke = 0
			:: else
			fi
		:: !got
		fi
	od;
over:
	ended++
}

init {
	byte k;

	atomic {
		run Clock();
		do
		:: k < N -> run Thread(k); k++
		:: else -> break
		od
	}
	ended == N;
	assert(value == UNITS && sleepers == GONE + ghost)
}
