/* SPDX-License-Identifier: MIT */
/*
 * Readers of a kernel rwsem that write no shared word, by a bias that holds read counts of the real
 * semaphore (docs/design/syncord.md; Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer
 * Locks", ATC 2019, has the bias beside the lock, and scans a table where we wait for a grace
 * period).  Each step is one access to shared memory.  A design: no kernel code of it yet.
 *
 *   count  what the semaphore knows of its readers; the bias holds REF of them while it is on
 *   slots  the sum of the per-CPU counters; only a grace period makes it good for anything
 *   NR readers, ROUNDS each, any of which may turn the bias on; one writer; who folds the counters
 *
 * A window is what runs with preemption off; a grace period waits for those open at its start.
 * Asked: no reader beside the writer, the count never below 0, everybody gets in.
 *
 * Mutants: MUT_NO_GRACE (folds at once), MUT_LATE (the window ends before the count),
 * MUT_NO_RECHECK (no second look for a writer once the bias is on), MUT_SMALL_REF (the bias holds
 * one reader's count: needs 3 readers).
 */
#ifndef NR
#define NR 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifdef MUT_SMALL_REF
#define REF 1
#else
#define REF 10
#endif

mtype = { OFF, ARMING, ON, REVOKING };

mtype bias = OFF;
int count, slots;
bit write_locked, waiters, grace; /* grace: a fold has been asked for */
bit window[NR];
byte readers, writers, ended;

inline revoke()
{
	atomic {
		if
		:: bias == ON -> bias = REVOKING; grace = 1
		:: else
		fi
	}
}

inline end_window_early()
{
#ifdef MUT_LATE
	window[me] = 0
#else
	skip
#endif
}

inline down_read()
{
	window[me] = 1;
	if
	:: bias == ON ->
		end_window_early();
		atomic { slots++; fast = 1 }
	:: else -> fast = 0
	fi;
	window[me] = 0;
	if
	:: !fast -> atomic { !write_locked && !waiters -> count++ }
	:: else
	fi
}

/* By the state, not by how this reader came in: only the sum counts. */
inline up_read()
{
	window[me] = 1;
	if
	:: bias == ON ->
		end_window_early();
		slots--
	:: else -> count--
	fi;
	window[me] = 0
}

/* Called by who holds a count of the semaphore itself. */
inline arm()
{
	atomic {
		if
		:: bias == OFF -> bias = ARMING; armed = 1
		:: else
		fi
	};
	if
	:: armed ->
		atomic { count = count + REF; armed = !waiters };
		if
		:: armed ->
			bias = ON;
#ifndef MUT_NO_RECHECK
			if
			:: waiters -> revoke()
			:: else
			fi
#endif
		:: else -> atomic { count = count - REF; bias = OFF }
		fi
	:: else
	fi
}

proctype Reader(byte me)
{
	bit fast, armed;
	byte round;

	for (round : 1 .. ROUNDS) {
		down_read();
		atomic { readers++; assert(writers == 0) };
		if
		:: !fast && bias == OFF -> arm()
		:: skip
		fi;
		readers--;
		up_read();
		armed = 0;
		fast = 0
	};
	ended++
}

proctype Fold()
{
	byte i;

end:	do
	:: atomic { grace -> grace = 0 };
#ifndef MUT_NO_GRACE
		do
		:: i < NR -> !window[i]; i++
		:: else -> break
		od;
		i = 0;
#endif
		atomic { count = count + slots - REF; slots = 0; assert(count >= 0); bias = OFF }
	od
}

proctype Writer()
{
	atomic {
		if
		:: count == 0 && !write_locked -> write_locked = 1; goto got
		:: else
		fi
	};
	revoke();
	waiters = 1;
	revoke();
	atomic { count == 0 && !write_locked -> write_locked = 1; waiters = 0 };
got:
	atomic { writers++; assert(readers == 0) };
	atomic { writers--; write_locked = 0; ended++ }
}

init
{
	byte i;

	atomic {
		for (i : 0 .. NR - 1) {
			run Reader(i)
		};
		run Writer();
		run Fold()
	};
	ended == NR + 1
}
