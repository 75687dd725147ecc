/* SPDX-License-Identifier: MIT */
/*
 * A signal that is left to the release of the mutex, by a signaller for whom another thread
 * releases that meanwhile: mirrors [mutex.c:_fg_mutex_wakes_at_release], [mutex.c:holds],
 * [mutex.c:_fg_mutex_wake_at_release], [mutex.c:unlock_beside_waiters] of a release for another
 * thread, and [thread_id.c:fg_thread_released_for] with [thread.h:fg_thread_defers],
 * [thread.h:fg_thread_writes].
 *
 *   The signaller has the mutex, and some thread sleeps for that.  One waiter sleeps for the
 *   signal; once it has the mutex again it returns, and destroys it.  Its time may be over at any
 *   moment.  A signal handler of the signaller may find out that a lock was released for it
 *   (HANDLER).
 * Mutants:
 *   MUT_NO_WAIT    who releases for another does not wait for it
 *   MUT_READ_FIRST it reads the list before it has told that thread
 *   MUT_ONE_LOOK   the signaller looks only before it says that it defers
 *   MUT_NO_CLAIM   it writes to the mutex though the other has not waited any longer
 */
mtype = { ASLEEP, LAST, GONE };
mtype word = ASLEEP;	  /* of the waiter's node */
bool sleeps = true;	  /* in the kernel, on that */
bool node_there = true, mutex_there = true;

bool held = true;	  /* the mutex, by the signaller or the waiter */
bool of_signaller = true; /* so its word says */
bool says = true;	  /* the signaller of itself */
bool due;		  /* the waiter is in the list */

byte count;		  /* fg_thread.released of the signaller, one word */
bool defers, writes;
bool cond_held;

inline cond_lock() { atomic { !cond_held -> cond_held = true } }

active proctype signaller()
{
	bool at_release = false, given = false;

	cond_lock();
	at_release = word == ASLEEP && says && of_signaller;
#ifdef HANDLER
	if
	:: atomic { count > 0 -> count = 0; says = false }
	:: true
	fi;
#endif
	if
	:: at_release ->
		atomic {
			at_release = count == 0;
			defers = at_release
		};
#ifndef MUT_ONE_LOOK
		if
		:: at_release ->
			assert(mutex_there);
			if
			:: says && of_signaller
			:: else -> at_release = false; defers = false
			fi
		:: else
		fi
#endif
	:: else
	fi;
	atomic {
		given = word == ASLEEP;
		if
		:: given -> word = LAST
		:: else
		fi
	};
	if
	:: at_release && given ->
#ifdef MUT_NO_CLAIM
		writes = true;
#else
		atomic {
			writes = defers;
			defers = false
		};
#endif
		if
		:: writes ->
			assert(node_there);
			assert(mutex_there);
			due = true
		:: else -> at_release = false
		fi;
		d_step { defers = false; writes = false }
	:: at_release && !given -> defers = false
	:: else
	fi;
	if
	:: !at_release && given -> sleeps = false /* by its address */
	:: else
	fi;
	cond_held = false
}

active proctype releaser()
{
	bool list = false;

#ifdef MUT_READ_FIRST
	list = due;
#endif
	count++;
#ifndef MUT_NO_WAIT
	do
	:: atomic { !defers && !writes -> break }
	:: atomic { defers -> defers = false; break } /* it was long enough */
	od;
#endif
#ifndef MUT_READ_FIRST
	list = due;
#endif
	due = false;
	d_step { held = false; of_signaller = false };
	if
	:: list -> sleeps = false
	:: else
	fi
}

active proctype waiter()
{
	if
	:: !sleeps
	:: atomic { word == ASLEEP -> word = GONE; sleeps = false } /* its time is over */
	fi;
	if
	:: word == GONE -> cond_lock(); cond_held = false /* out of the list */
	:: else
	fi;
	atomic { !held -> held = true };
	node_there = false;
	held = false;
	mutex_there = false
}
