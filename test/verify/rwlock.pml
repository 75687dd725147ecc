/* SPDX-License-Identifier: MIT */
/*
 * The reader-writer lock.  Mirrors src/lock/rwlock.c: [rwlock.c:enter_visible],
 * [rwlock.c:withdraws_visible], [rwlock.c:leave_counted], [rwlock.c:leave],
 * [rwlock.c:leaves_alone],
 * [rwlock.c:leave_visible], [rwlock.c:unlock_noticed],
 * [rwlock.c:writer_at_gate], [rwlock_bias.c:_fg_rwlock_counted],
 * [rwlock_bias.c:_fg_rwlock_set_bias],
 * [rwlock_bias.c:_fg_rwlock_read_for_long], [rwlock.c:count_in], [rwlock.c:passes],
 * [rwlock.c:rdlock_contended]; rwlock_write.c:
 * [rwlock_write.c:wait_for_entry], [rwlock_write.c:revoke_bias], [rwlock_write.c:wait_for_count],
 * [rwlock_write.c:get_in], [rwlock_write.c:drain]; [rwlock_paths.h:writer_leaves],
 * [rwlock_paths.h:tag_says], [rwlock_paths.h:set_tag]; and the table,
 * visible.h and visible.c: [visible.h:fg_visible_enter], [visible.h:fg_visible_clear],
 * [visible.h:fg_visible_reads], [visible.h:_fg_visible_all_seen], [visible.c:_fg_visible_left],
 * [visible.c:_fg_visible_leave], [visible.c:wake_wanting], [visible.c:discount],
 * [visible.c:release_in], [visible.c:_fg_visible_release], [visible.c:_fg_visible_lines],
 * [visible.c:_fg_visible_taken_back].
 * The gate is a lock that works (lock.pml); each other step is one access to
 * shared memory, in the order of the source.  A store to an entry stays in the store buffer of its
 * thread's CPU for as long as that likes, or until all threads pass a barrier (membarrier(2)).
 *
 *   READERS, WRITERS, and R times each, R0 the first reader; -DRECURSIVE: readers lock twice;
 *   -DTIMED: writers give up at any time; LINES of the table, for the first readers; LOCKS, whose
 *   readers meet in one entry of a line: readers take any of them, a
 *   writer its own; -DELSEWHERE: a reader's unlock is done by its thread, or by one without a line
 *
 * Asked: a writer is alone, until its last access; nobody waits for ever; an unlock finds what a
 * lock made, and in the end nothing is left.  A reader's patience ends at any time.  Mutants:
 * MUT_NO_RECHECK (of the bias by a visible reader), MUT_BIAS_ONCE (the writer does not look at it
 * again), MUT_NO_WANTED (a visible reader that leaves wakes nobody), MUT_NO_SLEEPS (nor does a
 * counted one), MUT_NO_PASS (readers never pass a waiting writer), MUT_LINES_EARLY (the writer
 * looks how many lines there are before it takes the bias back), MUT_UNSEEN_BIAS,
 * MUT_UNSEEN_WANTED, MUT_UNSEEN_RELEASE (no barrier for all after the bias has been taken back;
 * before the writer sleeps; after an entry has been released for its thread), MUT_BLIND (a reader
 * that clears an entry does not look whether it has been released), MUT_KEEPS (a release that comes
 * too late is not taken back), MUT_TAKEN_BACK (a writer that has taken an entry for released does
 * not look again when one has been taken back), MUT_FORGETS (nor does the next, when it gives up),
 * MUT_ANY_BIAS (a reader without a barrier takes any bias for the one that it has begun with),
 * MUT_OVER_BIAS (one is set over another), MUT_LAST_ACCESS (a writer clears its tag before it
 * releases the gate).
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
#ifndef R0
#define R0 R
#endif
#ifndef LINES
#define LINES READERS
#endif
#ifndef LOCKS
#define LOCKS 1
#endif

/* By lock. */
byte gate[LOCKS];      /* 0 or who: 1.. readers, then writers */
byte tag[LOCKS];       /* the latest writer: its owner, or one that was */
bit leaving[LOCKS];    /* a writer has written, and has not released the gate yet */
byte counted[LOCKS];
bit writer_in[LOCKS], drainer_sleeps[LOCKS];
byte bias[LOCKS]; /* 2: asymmetric */
byte reading[LOCKS], writing[LOCKS]; /* inside */

/* By line: an entry that these locks share. */
byte entry[LINES];     /* 0, or 1 + lock */
bit buffered[LINES];   /* a store to it is in a store buffer: of this */
byte buffer[LINES];
byte released[LINES];  /* 0, or 1 + lock */
bit notice[LINES];     /* something was in `released` */
bit wanted[LINES];
byte gone[LINES];
byte highest;	       /* lines that have been used */
byte taken_back;       /* so many of `released` */

/* By writer: 0 awake, 1 + line, or COUNT: on the readers of its lock. */
byte sleeps[READERS + WRITERS];
#define COUNT 255

#define LOCK_OF(writer) ((writer) % LOCKS)

#define READS(line) (entry[line] == 1 + l && released[line] != 1 + l)

/* As its own thread sees it. */
#define MINE (buffered[mine] -> buffer[mine] : entry[mine])

inline drain_buffer(line)
{
	if
	:: buffered[line] -> entry[line] = buffer[line]; buffered[line] = 0; buffer[line] = 0
	:: else
	fi
}

inline store_mine(value)
{
	atomic { drain_buffer(mine); buffered[mine] = 1; buffer[mine] = value }
}

/* With a barrier. */
inline swap_mine(value)
{
	atomic { drain_buffer(mine); entry[mine] = value }
}

/* All threads pass a barrier. */
inline all_seen()
{
	d_step {
		w = 0;
		do
		:: w < LINES -> drain_buffer(w); w++
		:: else -> w = 0; break
		od
	}
}

/* The store buffers, at any time. */
proctype Cpu(byte line)
{
end:
	do
	:: atomic { buffered[line] -> drain_buffer(line) }
	od
}

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
	wanted[line] = 0;
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
}

/*
 * took: its entry named the lock and does not any more; not_its: and did not count, so that its
 * place is elsewhere.
 */
inline leave_visible()
{
	if
	:: has_line && MINE == 1 + l ->
		store_mine(0);
		took = 1;
		atomic { have = wanted[mine]; seen_in = notice[mine] };
#ifndef MUT_BLIND
		if
		:: seen_in ->
			atomic {
				if
				:: released[mine] == 1 + l ->
					released[mine] = 0; took = 0; not_its = 1
				:: else
				fi
			}
		:: else
		fi;
#endif
#ifndef MUT_NO_WANTED
		if
		:: have -> wake_wanting(mine)
		:: else
		fi;
#endif
		have = 0;
		seen_in = 0
	:: else
	fi
}

/* took: for the thread of another line. */
inline release_in(line)
{
	if
	:: entry[line] == 1 + l ->
		atomic { got_it = (released[line] == 0);
			if
			:: got_it -> released[line] = 1 + l
			:: else
			fi };
		if
		:: got_it ->
			notice[line] = 1;
#ifndef MUT_UNSEEN_RELEASE
			all_seen();
#endif
			if
			:: entry[line] == 1 + l ->
				took = 1;
				have = wanted[line];
				if
				:: have -> wake_wanting(line)
				:: else
				fi;
				have = 0
			:: else ->
#ifdef MUT_KEEPS
				took = 1
#else
				atomic {
					if
					:: released[line] == 1 + l ->
						released[line] = 0; have = 1
					:: else -> took = 1 /* its thread leaves in our place */
					fi
				};
				if
				:: have -> taken_back++; have = 0
				:: else
				fi
#endif
			fi
		:: else
		fi;
		got_it = 0
	:: else
	fi
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
	:: !took && i < LINES -> release_in(i); i++
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
	owner = gate[l];
	if
	:: owner != 0 -> busy = (tag[l] == owner); owner = 0
	:: else
	fi;
	if
	:: !busy ->
		got = 1;
		if
		:: bias[l] == 0 -> /* inhibited for long enough, and another was the last */
#ifdef MUT_OVER_BIAS
			bias[l] = 1
#else
			atomic {
				if
				:: bias[l] == 0 -> bias[l] = 1
				:: else
				fi
			}
#endif
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
	:: atomic { has_line && bias[l] -> began = bias[l] };
		if
		:: MINE == 0 ->
			if
			:: began == 2 -> store_mine(1 + l)
			:: else -> swap_mine(1 + l)
			fi;
#ifdef MUT_NO_RECHECK
			got = 1
#else
			if
#ifdef MUT_ANY_BIAS
			:: bias[l] -> got = 1
#else
			:: bias[l] == began ->
				got = 1;
				if /* read_for_long() */
				:: atomic { bias[l] == 1 -> bias[l] = 2 }
				:: skip
				fi
#endif
			:: else ->
				atomic { drain_buffer(mine) }; /* a barrier, for another bias */
				if
				:: bias[l] -> got = 1
				:: else ->
					leave_visible();
					if
					:: not_its -> not_its = 0; leave() /* for who released */
					:: else -> assert(took); took = 0
					fi
				fi
			fi
#endif
		:: else
		fi;
		began = 0
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

inline rdunlock()
{
	leave_visible();
	if
	:: !took -> not_its = 0; leave()
	:: else -> took = 0
	fi
}

proctype Reader(byte me)
{
	bit got, busy, have, seen_in, took, not_its, has_line, got_it;
	byte owner, began, rounds, depth, l, mine, w;
#ifdef ELSEWHERE
	byte i;
#endif

	atomic {
		has_line = (me < LINES);
		mine = (has_line -> me : 0);
		if
		:: has_line && highest <= mine -> highest = mine + 1
		:: else
		fi
	};
	do
	:: rounds < (me == 0 -> R0 : R) ->
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
		assert(!writing[l] && !leaving[l]); /* it may be the last, and free the lock */
#ifdef RECURSIVE
		rdlock();
		depth = 2;
		assert(!writing[l]);
#endif
		assert(!writing[l]);
		reading[l]--;
		do
		:: depth > 0 ->
			if
			:: rdunlock()
#ifdef ELSEWHERE
			:: leave()
#endif
			fi;
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

inline set_bias()
{
	atomic {
		if
		:: bias[l] == 0 -> bias[l] = 1
		:: else
		fi
	}
}

proctype Writer(byte me)
{
	bit got, again; /* again: is there a bias? */
	byte rounds, i, lines, seen, l, w, was, before;
	bit revokes;

	l = LOCK_OF(me);
	do
	:: rounds < R ->
		rounds++;
		atomic { gate[l] == 0 -> gate[l] = me + 1 };
		tag[l] = me + 1;
		get_in();
		if
		:: got -> again = (bias[l] != 0)
		:: else -> again = 1
		fi;
		do
		:: !again -> break
		:: else ->
			writer_in[l] = 0;
			if
			:: bias[l] ->
				revokes = 1;
				before = taken_back;
#ifdef MUT_LINES_EARLY
				lines = highest;
				bias[l] = 0;
				all_seen();
#else
				atomic { was = bias[l]; bias[l] = 0 };
#ifndef MUT_UNSEEN_BIAS
				if
				:: was == 2 -> all_seen()
				:: else
				fi;
#endif
				was = 0;
				lines = highest;
#endif
				i = 0;
				do
				:: i == lines -> i = 0; break
				:: i < lines && entry[i] != 1 + l -> i++
				:: i < lines && entry[i] == 1 + l ->
					if
					:: released[i] == 1 + l -> i++
					:: else ->
						/* wait_for_entry(); a spinner goes round */
						seen = gone[i];
						wanted[i] = 1;
#ifndef MUT_UNSEEN_WANTED
						all_seen();
#endif
						if
						:: entry[i] == 1 + l ->
							if
							:: released[i] != 1 + l ->
								if
								:: atomic { gone[i] == seen ->
									sleeps[me] = 1 + i };
									sleeps[me] == 0
								:: gone[i] != seen
								fi
							:: else
							fi
						:: else
						fi;
						seen = 0
					fi
#ifdef TIMED
				:: i < lines && READS(i) ->
					i = 0; goto gave_up
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
#ifndef MUT_TAKEN_BACK
			if
			:: revokes && before != taken_back -> set_bias()
			:: else
			fi;
#endif
#ifdef MUT_BIAS_ONCE
			again = !got
#else
			if
			:: got -> again = (bias[l] != 0)
			:: else -> again = 1
			fi
#endif
		od;
		writing[l]++;
		assert(writing[l] == 1 && reading[l] == 0);
		atomic { writing[l]--; leaving[l] = 1 };
		revokes = 0;
gave_up:
#ifndef MUT_FORGETS
		if
		:: revokes -> set_bias()
		:: else
		fi;
#endif
		revokes = 0;
		before = 0;
		lines = 0;
		got = 0;
		again = 0;
#ifdef MUT_LAST_ACCESS
		tag[l] = 0;
#endif
		atomic { gate[l] = 0; leaving[l] = 0 } /* the last access */
	:: else -> break
	od
}

init {
	byte n;

	atomic {
		if
		:: bias[0] = 1; bias[LOCKS - 1] = 1 /* has been read */
		:: bias[0] = 2; bias[LOCKS - 1] = 2 /* for long */
		:: skip
		fi;
		do
		:: n < LINES -> run Cpu(n); n++
		:: else -> n = 0; break
		od;
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
	_nr_pr == 1 + LINES;
	do
	:: n < LINES ->
		!buffered[n];
		assert(entry[n] == 0 || entry[n] == released[n]);
		n++
	:: else -> break
	od;
	assert(counted[0] == 0 && counted[LOCKS - 1] == 0)
}
