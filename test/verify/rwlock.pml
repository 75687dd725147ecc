/* SPDX-License-Identifier: MIT */
/*
 * The reader-writer lock.  Mirrors src/lock/rwlock.c: [rwlock.c:enter_visible],
 * [rwlock.c:withdraws_visible], [rwlock.c:take_out], [rwlock.c:wake_wanting],
 * [rwlock.c:leave_counted], [rwlock.c:leave], [rwlock.c:leaves_alone], [rwlock.c:take_out_any],
 * [rwlock.c:writer_at_gate], [rwlock.c:set_bias_again], [rwlock.c:count_in],
 * [rwlock.c:rdlock_contended]; rwlock_write.c:
 * [rwlock_write.c:wait_for_entry], [rwlock_write.c:revoke_bias], [rwlock_write.c:wait_for_count],
 * [rwlock_write.c:get_in], [rwlock_write.c:drain]; and [rwlock_paths.h:lines_of_table],
 * [rwlock_paths.h:writer_leaves].
 * The gate is a lock that works (lock.pml); each other step is one access to
 * shared memory, in the order of the source.
 *
 *   READERS, WRITERS, and R times each; -DRECURSIVE: readers lock twice;
 *   -DTIMED: writers give up at any time; LINES of the table, shared by readers
 *   when there are fewer (a signal handler shares that of its thread); LOCKS, whose
 *   readers meet in one entry of a line: readers take any of them, a
 *   writer its own; -DELSEWHERE: a reader's unlock is done by a thread of another line
 *
 * Asked: a writer is alone; nobody waits for ever; an unlock finds what a lock
 * made, and in the end nothing is left.  A reader's patience ends at
 * any time.  Mutants: MUT_NO_RECHECK (of the bias by a visible reader),
 * MUT_BIAS_ONCE (the writer does not look at it again), MUT_NO_WANTED,
 * MUT_NO_SLEEPS (a leaving reader wakes nobody), MUT_NO_PASS (readers never
 * pass a waiting writer), MUT_EXCHANGE (what names the lock is taken out later, without another
 * look), MUT_DISOWN (a reader that withdraws and finds no entry forgets what it has
 * inherited), MUT_LINES_EARLY (the writer looks how many lines there are before it takes the bias
 * back), MUT_HALF (writers sleep on half an entry, and one of them is woken).
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
#ifndef LINES
#define LINES READERS
#endif
#ifndef LOCKS
#define LOCKS 1
#endif

/* By lock. */
byte gate[LOCKS];      /* 0 or who: 1.. readers, then writers */
bit tag[LOCKS];	       /* its owner is a writer */
byte counted[LOCKS];
bit writer_in[LOCKS], drainer_sleeps[LOCKS];
bit bias[LOCKS];
byte reading[LOCKS], writing[LOCKS]; /* inside */

/* By line: an entry that these locks share. */
byte entry[LINES];     /* 0, or 1 + lock */
bit wanted[LINES];
byte gone[LINES];
byte highest;	       /* lines that have been used */

/* By writer: 0 awake, 1 + line, or COUNT: on the readers of its lock. */
byte sleeps[READERS + WRITERS];
#define COUNT 255

#define LOCK_OF(writer) ((writer) % LOCKS)

inline wake_count(lock)
{
	d_step {
		w = READERS;
		do
		:: w < READERS + WRITERS ->
			if
			:: sleeps[w] == COUNT && LOCK_OF(w) == lock -> sleeps[w] = 0
			:: else
			fi;
			w++
		:: else -> w = 0; break
		od
	}
}

inline wake_wanting(line)
{
#ifdef MUT_HALF
	atomic {
		if
		:: sleeps[READERS] == 1 + line -> sleeps[READERS] = 0
		:: sleeps[READERS + WRITERS - 1] == 1 + line -> sleeps[READERS + WRITERS - 1] = 0
		:: else
		fi
	}
#else
	gone[line]++;
	d_step {
		w = READERS;
		do
		:: w < READERS + WRITERS ->
			if
			:: sleeps[w] == 1 + line -> sleeps[w] = 0
			:: else
			fi;
			w++
		:: else -> w = 0; break
		od
	}
#endif
}

/* took: the entry named the lock and does not any more. */
inline take_out(line)
{
	atomic { names = (entry[line] == 1 + l); have = wanted[line] };
	took = 0;
	do
	:: !names -> have = 0; break
#ifdef MUT_EXCHANGE
	:: atomic { names ->
		have = wanted[line]; entry[line] = 0; wanted[line] = 0; took = 1 }; break
#else
	:: atomic { names && entry[line] == 1 + l && wanted[line] == have ->
		entry[line] = 0; wanted[line] = 0; took = 1 }; break
	:: atomic { names && !(entry[line] == 1 + l && wanted[line] == have) ->
		    names = (entry[line] == 1 + l); have = wanted[line] }
#endif
	od;
#ifndef MUT_NO_WANTED
	if
	:: took && have -> wake_wanting(line)
	:: else
	fi;
#endif
	names = 0;
	have = 0
}

/* took: there was one. */
inline leave_counted()
{
	atomic {
		took = (counted[l] > 0);
		if
		:: took ->
			counted[l]--;
			have = (counted[l] == 0 && drainer_sleeps[l])
		:: else
		fi
	};
#ifndef MUT_NO_SLEEPS
	if
	:: have -> wake_count(l)
	:: else
	fi;
#endif
	have = 0
}

/* One that has locked for itself finds it in the count; others look for it. */
inline leave()
{
	leave_counted();
#ifdef ELSEWHERE
	i = 0;
	do
	:: took -> break
	:: !took && i < LINES -> take_out(i); i++
	:: !took && i == LINES -> leave_counted(); i = 0
	od;
	i = 0;
#endif
	assert(took);
	took = 0
}

/* got: 1 or 0 (EBUSY).  The two loads of writer_at_gate() are two steps. */
inline enter_counted(may_pass)
{
	atomic { seen_in = writer_in[l]; counted[l]++ };
	atomic { busy = (gate[l] != 0) };
	if
	:: busy -> busy = tag[l]
	:: else
	fi;
	if
	:: !busy ->
		got = 1;
		if
		:: bias[l] = 1 /* inhibited for long enough, and another was the last */
		:: skip
		fi
#ifndef MUT_NO_PASS
	:: busy && may_pass && !seen_in -> got = 1
	:: busy && !(may_pass && !seen_in) -> leave()
#else
	:: busy -> leave()
#endif
	fi;
	busy = 0;
	seen_in = 0
}

inline rdlock()
{
	got = 0;
	if
	:: bias[l] ->
		if
		:: atomic { entry[mine] == 0 -> entry[mine] = 1 + l };
#ifdef MUT_NO_RECHECK
			got = 1
#else
			if
			:: bias[l] -> got = 1
			:: else ->
				take_out(mine);
#ifndef MUT_DISOWN
				got = !took; /* inherited */
#endif
				took = 0
			fi
#endif
		:: entry[mine] != 0
		fi
	:: else
	fi;
	if
	:: !got -> enter_counted(depth > 0)
	:: else
	fi;
	do
	:: got -> break
	:: atomic { !got && gate[l] == 0 -> gate[l] = me + 1 };
		tag[l] = 0;
		enter_counted(1);
		assert(got);
		gate[l] = 0
#ifndef MUT_NO_PASS
	:: !got -> enter_counted(1) /* patience is over */
#endif
	od;
	got = 0
}

inline rdunlock(line)
{
	take_out(line);
	if
	:: !took -> leave()
	:: else -> took = 0
	fi
}

proctype Reader(byte me)
{
	bit got, busy, have, seen_in, names, took;
	byte rounds, depth, l, mine, w;
#ifdef ELSEWHERE
	byte i;
#endif

	mine = me % LINES;
	atomic {
		if
		:: highest <= mine -> highest = mine + 1
		:: else
		fi
	};
	do
	:: rounds < R ->
		rounds++;
		if
		:: l = 0
#if LOCKS > 1
		:: l = 1
#endif
		fi;
		rdlock();
		depth = 1;
		reading[l]++;
		assert(!writing[l]);
#ifdef RECURSIVE
		rdlock();
		depth = 2;
		assert(!writing[l]);
#endif
		assert(!writing[l]);
		reading[l]--;
		do
		:: depth > 0 ->
#ifdef ELSEWHERE
			rdunlock((me + 1) % LINES);
#else
			rdunlock(mine);
#endif
			depth--
		:: else -> break
		od;
		l = 0
	:: else -> break
	od
}

inline get_in()
{
	atomic {
		got = (counted[l] == 0);
		if
		:: got -> writer_in[l] = 1
		:: else
		fi
	}
}

proctype Writer(byte me)
{
	bit got, again;
	byte rounds, i, lines, seen, l;

	l = LOCK_OF(me);
	do
	:: rounds < R ->
		rounds++;
		atomic { gate[l] == 0 -> gate[l] = me + 1 };
		tag[l] = 1;
		get_in();
		if
		:: got -> again = bias[l]
		:: else -> again = 1
		fi;
		do
		:: !again -> break
		:: else ->
			writer_in[l] = 0;
			if
			:: bias[l] ->
#ifdef MUT_LINES_EARLY
				lines = highest;
				bias[l] = 0;
#else
				bias[l] = 0;
				lines = highest;
#endif
				i = 0;
				do
				:: i == lines -> i = 0; break
				:: i < lines && entry[i] != 1 + l -> i++
				:: i < lines && entry[i] == 1 + l ->
					/* wait_for_entry(); a spinner goes round */
#ifdef MUT_HALF
					if
					:: atomic { entry[i] == 1 + l -> wanted[i] = 1 };
						if
						:: atomic { entry[i] != 0 && wanted[i] ->
							sleeps[me] = 1 + i }; sleeps[me] == 0
						:: !(entry[i] != 0 && wanted[i])
						fi
#else
					seen = gone[i];
					if
					:: atomic { entry[i] == 1 + l -> wanted[i] = 1 };
						if
						:: atomic { gone[i] == seen ->
							sleeps[me] = 1 + i }; sleeps[me] == 0
						:: gone[i] != seen
						fi
#endif
					:: entry[i] != 1 + l
					fi;
					seen = 0
#ifdef TIMED
				:: i < lines && entry[i] == 1 + l ->
					bias[l] = 1; i = 0; goto gave_up
#endif
				od;
				lines = 0
			:: else
			fi;
			do
			:: counted[l] == 0 -> break
			:: atomic { counted[l] > 0 && !drainer_sleeps[l] -> drainer_sleeps[l] = 1 }
			:: atomic { counted[l] > 0 && drainer_sleeps[l] ->
				sleeps[me] = COUNT }; sleeps[me] == 0
#ifdef TIMED
			:: counted[l] > 0 -> drainer_sleeps[l] = 0; goto gave_up
#endif
			od;
			drainer_sleeps[l] = 0;
			get_in();
#ifdef MUT_BIAS_ONCE
			again = !got
#else
			if
			:: got -> again = bias[l]
			:: else -> again = 1
			fi
#endif
		od;
		writing[l]++;
		assert(writing[l] == 1 && reading[l] == 0);
		writing[l]--;
gave_up:
		lines = 0;
		got = 0;
		again = 0;
		tag[l] = 0;
		gate[l] = 0 /* the last touch */
	:: else -> break
	od
}

init {
	byte n;

	atomic {
		if
		:: bias[0] = 1; bias[LOCKS - 1] = 1 /* has been read for long */
		:: skip
		fi;
		do
		:: n < READERS -> run Reader(n); n++
		:: else -> break
		od;
		do
		:: n < READERS + WRITERS -> run Writer(n); n++
		:: else -> break
		od;
		n = 0
	};
	_nr_pr == 1;
	do
	:: n < LINES -> assert(entry[n] == 0); n++
	:: else -> break
	od;
	assert(counted[0] == 0 && counted[LOCKS - 1] == 0)
}
