/* SPDX-License-Identifier: MIT */
/*
 * Readers of a kernel rwsem that write no shared word: kernel/locking/syncord_bias.c and what calls
 * it in rwsem.c, both in kernel/patches (docs/design/syncord.md; Dice and Kogan, "BRAVO: Biased
 * Locking for Reader-Writer Locks", ATC 2019, has the bias beside the lock, and scans a table where
 * this waits for a grace period).  The bias holds read counts of the real semaphore.  Each step is
 * one access to shared memory.
 *
 *   count  what the semaphore knows of its readers; the bias holds REF of them while it is on
 *   slot   a counter a CPU; one alone says nothing, and may be below 0: readers leave on another
 *          CPU than they came on, and go out by the bias who came in without
 *   attached  the table of targets has it: who does not find it does what it does without a policy
 *
 * NR readers share CPUS, and may be on another each time; ROUNDS each, and
 * any of them may turn the bias on.  WRITERS, who may give up (KILLED).  Fold is the RCU callback.
 * With DETACH somebody takes the policy away at some time.  A window is what runs with preemption
 * off, one a CPU; a grace period waits for those open at its start.
 *
 * Asked: no reader beside a writer, no writer beside another, the count never below 0, everybody
 * gets in, and at the end nothing is left of the bias or it is on and says so.
 *
 * Mutants: MUT_NO_GRACE (folds at once), MUT_LATE (the window ends before the count),
 * MUT_NO_RECHECK (no second look for a writer once the bias is on), MUT_NO_REVOKE (who has queued
 * does not end it), MUT_NO_WAKE (the fold wakes nobody), MUT_OFF_FIRST (the bias is off before its
 * slots are added up), MUT_CLAMP (a slot below 0 is taken for none), MUT_KEEPS (the slots are not
 * cleared), MUT_SMALL_REF (the bias holds one reader's count), MUT_BY_ENTRY (who came in by the
 * bias leaves by it, whatever its state), MUT_DETACH_AT_ONCE (folds without a grace period),
 * MUT_DETACH_LEAVES (the bias stays on), MUT_DETACH_TWICE (does not wait for a fold under way).
 */
#ifndef NR
#define NR 2
#endif
#ifndef CPUS
#define CPUS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifdef MUT_SMALL_REF
#define REF 1
#else
#define REF 10
#endif

mtype = { OFF, ARMING, ON, REVOKING };

mtype bias = OFF;
short count, slot[CPUS];
bit write_locked, attached = 1;
bit called; /* call_rcu(): a fold has been asked for */
byte waiting; /* writers in the queue: RWSEM_FLAG_WAITERS */
byte woken; /* of them told to try again */
bit window[CPUS];
byte readers, writers, ended;

/* Any CPU that has no window open. */
inline open_window()
{
	atomic {
		if
		:: !window[0] -> window[0] = 1; cpu = 0
#if CPUS > 1
		:: !window[1] -> window[1] = 1; cpu = 1
#endif
		fi
	}
}

inline close_window()
{
	window[cpu] = 0
}

inline end_window_early()
{
#ifdef MUT_LATE
	close_window()
#else
	skip
#endif
}

inline end_bias()
{
	atomic {
		if
		:: bias == ON -> bias = REVOKING; called = 1
		:: else
		fi
	}
}

inline revoke()
{
	open_window();
	if
	:: attached -> end_bias()
	:: else
	fi;
	close_window()
}

/* rwsem_wake(), of who was the last and saw waiters. */
inline wake_if_free()
{
	if
	:: count == 0 && !write_locked && waiting -> woken = waiting
	:: else
	fi
}

inline down_read()
{
	open_window();
	if
	:: attached ->
		if
		:: bias == ON ->
			end_window_early();
			slot[cpu]++;
			fast = 1
		:: else -> fast = 0
		fi
	:: else -> fast = 0
	fi;
	close_window();
	if
	:: !fast -> atomic { !write_locked && !waiting -> count++ }
	:: else
	fi
}

/* By the state, not by how this reader came in: only the sum counts. */
inline up_read()
{
	open_window();
	if
#ifdef MUT_BY_ENTRY
	:: fast ->
#else
	:: attached && bias == ON ->
#endif
		end_window_early();
		slot[cpu]--
	:: else -> atomic { count--; assert(count >= 0); wake_if_free() }
	fi;
	close_window()
}

/* Called by who holds a count of the semaphore itself. */
inline arm()
{
	open_window();
	if
	:: attached ->
		atomic {
			if
			:: bias == OFF && !waiting -> bias = ARMING; armed = 1
			:: else
			fi
		}
	:: else
	fi;
	if
	:: armed ->
		atomic { count = count + REF; armed = !waiting };
		if
		:: armed ->
			bias = ON;
#ifndef MUT_NO_RECHECK
			if
			:: waiting -> end_bias()
			:: else
			fi
#endif
		:: else ->
			count = count - REF;
			bias = OFF
		fi
	:: else
	fi;
	close_window()
}

proctype Reader()
{
	bit fast, armed;
	byte cpu, round;

	for (round : 1 .. ROUNDS) {
		down_read();
		atomic { readers++; assert(writers == 0) };
		if
		:: !fast -> arm()
		:: true
		fi;
		readers--;
		up_read();
		atomic { armed = 0; fast = 0; cpu = 0 }
	};
	ended++
}

inline wait_for_windows()
{
	i = 0;
	do
	:: i < CPUS -> !window[i]; i++
	:: else -> break
	od
}

/* syncord_bias_fold(): the slots, one after the other, then the count. */
inline fold()
{
#ifdef MUT_OFF_FIRST
	bias = OFF;
#endif
	i = 0;
	sum = 0;
	do
	:: i < CPUS ->
#ifdef MUT_CLAMP
		sum = sum + (slot[i] > 0 -> slot[i] : 0);
#else
		sum = sum + slot[i];
#endif
#ifndef MUT_KEEPS
		slot[i] = 0;
#endif
		i++
	:: else -> break
	od;
	atomic {
		count = count + sum - REF;
		assert(count >= 0);
#ifndef MUT_NO_WAKE
		wake_if_free();
#endif
		i = 0;
		sum = 0
	};
#ifndef MUT_OFF_FIRST
	bias = OFF
#endif
}

proctype Fold()
{
	byte i;
	short sum;

end:	do
	:: called ->
#ifndef MUT_NO_GRACE
		wait_for_windows();
#endif
		called = 0;
		fold()
	od
}

/* syncord_remove(): out of the table, a grace period, then what is left of the bias. */
proctype Detach()
{
	byte i;
	short sum;

	attached = 0;
#ifndef MUT_DETACH_AT_ONCE
	wait_for_windows();
#endif
#ifndef MUT_DETACH_TWICE
	!(bias == REVOKING); /* rcu_barrier() */
	if
#ifndef MUT_DETACH_LEAVES
	:: bias == ON -> fold()
#endif
	:: else
	fi;
#else
	if
	:: bias == ON || bias == REVOKING -> fold()
	:: else
	fi;
#endif
	ended++
}

inline try_write()
{
	atomic {
		if
		:: count == 0 && !write_locked -> write_locked = 1; got = 1
		:: else
		fi
	}
}

proctype Writer()
{
	bit got;
	byte cpu;

	try_write();
	if
	:: !got ->
		waiting++;
		do
		:: try_write();
			if
			:: got -> atomic { waiting--; break }
			:: else
			fi;
#ifndef MUT_NO_REVOKE
			revoke();
#endif
			if
			:: atomic { woken > 0 -> woken-- }
#ifdef KILLED
			/* Who leaves tells the next one. */
			:: atomic { waiting--; woken = (woken > waiting -> waiting : woken) };
				atomic { wake_if_free() };
				goto killed
#endif
			fi
		od
	:: else
	fi;
	atomic { writers++; assert(readers == 0 && writers == 1) };
	atomic {
		writers--;
		write_locked = 0;
		if
		:: waiting -> woken = waiting
		:: else
		fi
	};
killed:	ended++
}

init
{
	byte i;

	atomic {
		for (i : 1 .. NR) {
			run Reader()
		};
		for (i : 1 .. WRITERS) {
			run Writer()
		};
#ifdef DETACH
		run Detach();
#endif
		run Fold();
		i = 0
	};
#ifdef DETACH
	atomic { ended == NR + WRITERS + 1 && !called && bias != REVOKING };
	assert(bias == OFF && count == 0)
#else
	atomic { ended == NR + WRITERS && !called && bias != REVOKING };
	assert(count + slot[0]
#if CPUS > 1
	       + slot[1]
#endif
	       == (bias == ON -> REF : 0))
#endif
}
