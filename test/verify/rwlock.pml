/* SPDX-License-Identifier: MIT */
/*
 * The reader-writer lock.  Mirrors src/lock/rwlock.c: [rwlock.c:enter_visible],
 * [rwlock.c:leave_visible], [rwlock.c:leave_counted], [rwlock.c:writer_at_gate],
 * [rwlock.c:calm], [rwlock.c:enter_counted], [rwlock.c:rdlock_contended],
 * [rwlock.c:wait_for_entry], [rwlock.c:revoke], [rwlock.c:wait_for_count],
 * [rwlock.c:get_in], [rwlock.c:drain].  The gate is a lock that works (lock.pml);
 * each other step is one access to shared memory, in the order of the source.
 *
 *   READERS, WRITERS, and R times each; -DRECURSIVE: readers lock twice;
 *   -DTIMED: writers give up at any time
 *
 * Asked: a writer is alone; nobody waits for ever.  A reader's patience ends at
 * any time.  Mutants: MUT_NO_RECHECK (of the bias by a visible reader),
 * MUT_BIAS_ONCE (the writer does not look at it again), MUT_NO_WANTED,
 * MUT_NO_SLEEPS (a leaving reader wakes nobody), MUT_NO_PASS (readers never
 * pass a waiting writer).
 */
#ifndef READERS
#define READERS 2
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef R
#define R 1
#endif

byte gate;	       /* 0 or who: 1.. readers, then writers */
bit tag;	       /* its owner is, or was last, a writer */
byte counted;
bit writer_in, drainer_sleeps;
bit bias;
byte entry[READERS];   /* 0, 1 = this lock, 2 = and WANTED */
bit asleep;	       /* the one that drains */
byte reading, writing; /* inside */

#define EMPTY	0
#define NAMED	1
#define WANTED	2

inline leave_visible()
{
	atomic {
		wake = (entry[me] == WANTED);
		entry[me] = EMPTY
	};
#ifndef MUT_NO_WANTED
	if
	:: wake -> asleep = 0
	:: else
	fi
#endif
}

inline leave_counted()
{
	atomic {
		assert(counted > 0);
		counted--;
		wake = (counted == 0 && drainer_sleeps)
	};
#ifndef MUT_NO_SLEEPS
	if
	:: wake -> asleep = 0
	:: else
	fi
#endif
}

/* got: 1 or 0 (EBUSY).  The two loads of writer_at_gate() are two steps. */
inline enter_counted(may_pass)
{
	atomic { seen_in = writer_in; counted++ };
	atomic { busy = (gate != 0) };
	if
	:: busy -> busy = tag
	:: else
	fi;
	if
	:: !busy ->
		got = 1;
		if
		:: bias = 1 /* calm for long enough */
		:: skip
		fi
#ifndef MUT_NO_PASS
	:: busy && may_pass && !seen_in -> got = 1
	:: busy && !(may_pass && !seen_in) -> leave_counted()
#else
	:: busy -> leave_counted()
#endif
	fi
}

inline rdlock()
{
	got = 0;
	visible = 0;
	if
	:: bias && entry[me] == EMPTY ->
		entry[me] = NAMED;
#ifdef MUT_NO_RECHECK
		visible = 1
#else
		if
		:: bias -> visible = 1
		:: else -> leave_visible()
		fi
#endif
	:: else
	fi;
	if
	:: visible -> got = 1
	:: else -> enter_counted(depth > 0)
	fi;
	do
	:: got -> break
	:: atomic { !got && gate == 0 -> gate = me + 1 };
		tag = 0;
		enter_counted(1);
		assert(got);
		gate = 0
#ifndef MUT_NO_PASS
	:: !got -> enter_counted(1) /* patience is over */
#endif
	od
}

proctype Reader(byte me)
{
	bit got, busy, wake, seen_in, visible;
	byte rounds, depth;

	do
	:: rounds < R ->
		rounds++;
		rdlock();
		depth = 1;
		reading++;
		assert(!writing);
#ifdef RECURSIVE
		rdlock();
		depth = 2;
		assert(!writing);
#endif
		assert(!writing);
		reading--;
		do
		:: depth > 0 ->
			if
			:: entry[me] != EMPTY -> leave_visible()
			:: else -> leave_counted()
			fi;
			depth--
		:: else -> break
		od
	:: else -> break
	od
}

inline get_in()
{
	atomic {
		got = (counted == 0);
		if
		:: got -> writer_in = 1
		:: else
		fi
	}
}

proctype Writer(byte me)
{
	bit got, again;
	byte rounds, i;

	do
	:: rounds < R ->
		rounds++;
		atomic { gate == 0 -> gate = me + 1 };
		tag = 1;
		get_in();
		if
		:: got -> again = bias
		:: else -> again = 1
		fi;
		do
		:: !again -> break
		:: else ->
			writer_in = 0;
			if
			:: bias ->
				bias = 0;
				i = 0;
				do
				:: i == READERS -> i = 0; break
				:: i < READERS && entry[i] == EMPTY -> i++
				:: atomic { i < READERS && entry[i] == NAMED -> entry[i] = WANTED }
				:: atomic { i < READERS && entry[i] == WANTED -> asleep = 1 }; !asleep
#ifdef TIMED
				:: i < READERS && entry[i] != EMPTY -> bias = 1; asleep = 0; i = 0; goto gave_up
#endif
				od
			:: else
			fi;
			do
			:: counted == 0 -> break
			:: atomic { counted > 0 && !drainer_sleeps -> drainer_sleeps = 1 }
			:: atomic { counted > 0 && drainer_sleeps -> asleep = 1 }; !asleep
#ifdef TIMED
			:: counted > 0 -> drainer_sleeps = 0; asleep = 0; goto gave_up
#endif
			od;
			drainer_sleeps = 0;
			get_in();
#ifdef MUT_BIAS_ONCE
			again = !got
#else
			if
			:: got -> again = bias
			:: else -> again = 1
			fi
#endif
		od;
		writing++;
		assert(writing == 1 && reading == 0);
		writing--;
gave_up:
		gate = 0 /* the last touch */
	:: else -> break
	od
}

init {
	byte n;

	atomic {
		do
		:: n < READERS -> run Reader(n); n++
		:: else -> break
		od;
		do
		:: n < READERS + WRITERS -> run Writer(n); n++
		:: else -> break
		od;
		n = 0
	}
}
