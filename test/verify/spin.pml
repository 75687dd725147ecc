/* SPDX-License-Identifier: MIT */
/*
 * The spinlock's sleep without a bit in the lock.  Mirrors [spin.h:_fg_spin_unlock],
 * [spin.c:_fg_spin_wake], [spin.c:count_in], [spin.c:count_out],
 * [spin.c:place_of_sleeper], [spin.c:place_of_spinner], [asymmetric.c:fg_barrier_everywhere],
 * [spin.c:set_fenced], [spin.c:sleep_on], [spin.c:_fg_spin_lock_slow] with [spin.c:spin].  The
 * store of a release stays in its CPU's store buffer for as long as it likes; membarrier(2)
 * empties it.  The time limit of a sleep, which would repair any loss, is left out.
 *
 * With LEAVES any release may leave the sleepers asleep while one of them watches
 * ([spin.c:leave_asleep]; by the clock it does so for a time), and that one's sleep may end.
 * With three threads for a lock it has to: a release that sees a spinner wakes nobody, and stays in
 * its buffer; the spinner goes to sleep, needs no barrier, since another sleeps, and sees the lock
 * held.
 *
 *   N threads (2 to 4), R rounds each, LOCKS that share a bucket with WAYS ways, the last one
 *   for all (each thread has its lock): there a wake-up meets a sleeper of the right lock
 *   (channel).  Mutants: MUT_NO_BARRIER, MUT_LOOK_FIRST (the
 *   release looks for sleepers before it stores), MUT_NO_RECHECK (of the lock
 *   by the sleeper), MUT_RELAXED (the count of wake-ups is seen before the store),
 *   MUT_ANY_SPINNER (one that spins for another lock keeps a release from waking),
 *   MUT_FENCED_STAYS (the way goes on being fenced without sleepers), MUT_WAY_FIRST,
 *   MUT_BUCKET_FIRST (a sleeper is counted in a way and not in the bucket); with
 *   LEAVES MUT_UNWATCHED (sleepers are left though nobody watches), MUT_WATCHED_STAYS (the one
 *   that watched has gone).
 */
#ifndef N
#define N 2
#endif
#ifndef R
#define R 2
#endif
#ifndef LOCKS
#define LOCKS 1
#endif
#ifndef WAYS
#define WAYS 2
#endif
#define LAST (WAYS - 1)
#define NO   255

byte owner[LOCKS];   /* what others see: 0 free, else 1 + thread */
byte buffered[N];    /* a release that others do not see yet: 1 + lock */
byte total;	     /* sleepers of all ways */
byte key[WAYS];	     /* 1 + lock; these three are one word */
byte sleepers[WAYS], spinners[WAYS];
byte wakes[WAYS];
bit fenced[WAYS];    /* these two are of the same word */
bit watched[WAYS];
byte inside[LOCKS];
byte asleep[N];	     /* 1 + way */
byte wants[N];	     /* the lock that each waits for */

inline drain_buffer(t)
{
	if
	:: buffered[t] -> owner[buffered[t] - 1] = 0; buffered[t] = 0
	:: else
	fi
}

/* [spin.c:wake_in]: one whose channel it is, if any. */
inline wake_in(way)
{
	atomic {
#ifndef MUT_RELAXED
		drain_buffer(me);
#endif
		wakes[way]++;
		woke = 1;
		if
		:: asleep[0] == 1 + way && wants[0] == l -> asleep[0] = 0
		:: asleep[1] == 1 + way && wants[1] == l -> asleep[1] = 0
		:: asleep[N - 2] == 1 + way && wants[N - 2] == l -> asleep[N - 2] = 0
		:: asleep[N - 1] == 1 + way && wants[N - 1] == l -> asleep[N - 1] = 0
		:: else -> woke = 0
		fi
	}
}

inline spin_wake()
{
	i = 0;
	do
	:: i == LAST -> break
	:: atomic { i < LAST && key[i] != 1 + l -> i++ }
	:: atomic { i < LAST && key[i] == 1 + l ->
		    if
		    :: spinners[i] > 0 -> goto leave_them
		    :: else -> ways = ways | (1 << i); leave = leave | watched[i]
		    fi;
		    i++ }
	od;
#ifdef LEAVES
	if
#ifdef MUT_UNWATCHED
	:: true -> goto leave_them
#else
	:: leave -> goto leave_them
#endif
	:: true
	fi;
#endif
	i = 0;
	do
	:: i < LAST && (ways & (1 << i)) ->
		wake_in(i);
		if
		:: woke -> break
		:: else -> i++
		fi
	:: i < LAST && !(ways & (1 << i)) -> i++
	:: i == LAST && sleepers[LAST] > 0 -> wake_in(LAST); break
	:: i == LAST && sleepers[LAST] == 0 -> break
	od;
leave_them:
	i = 0;
	leave = 0;
	ways = 0;
	woke = 0
}

inline release()
{
#ifdef MUT_LOOK_FIRST
	seen = total;
	atomic { !buffered[me] -> buffered[me] = 1 + l };
#else
	atomic { !buffered[me] -> buffered[me] = 1 + l };
	seen = total;
#endif
	if
	:: seen -> seen = 0; spin_wake()
	:: else
	fi
}

/*
 * Both leave it in `way`; the loop's look and its compare-and-swap are one step, which fails or is
 * repeated.
 */
inline place_of_sleeper()
{
	i = 0;
	do
	:: atomic { i < LAST && (key[i] == 1 + l || key[i] == 0) ->
		key[i] = 1 + l; sleepers[i]++; way = i; had = fenced[i];
		watches = !watched[i]; watched[i] = 1 }; break
	:: atomic { i < LAST && key[i] != 1 + l && key[i] != 0 -> i++ }
	:: atomic { i == LAST -> sleepers[LAST]++; way = LAST; had = fenced[LAST] }; break
	od;
	i = 0
}

inline place_of_spinner()
{
	i = 0;
	do
#ifdef MUT_ANY_SPINNER
	:: atomic { i < LAST && key[i] != 0 -> spinners[i]++; way = i }; break
	:: atomic { i < LAST && key[i] == 0 -> i++ }
#else
	:: atomic { i < LAST && key[i] == 1 + l -> spinners[i]++; way = i }; break
	:: atomic { i < LAST && key[i] != 1 + l -> i++ }
#endif
	:: i == LAST -> way = NO; break
	od;
	i = 0
}

inline count_out(sleeper)
{
	atomic {
#ifndef MUT_WATCHED_STAYS
		if
		:: watches -> watched[way] = 0
		:: else
		fi;
#endif
		watches = 0;
		sleepers[way] = sleepers[way] - sleeper;
		spinners[way] = spinners[way] - (1 - sleeper);
#ifndef MUT_FENCED_STAYS
		if
		:: sleepers[way] == 0 -> fenced[way] = 0
		:: else
		fi;
#endif
		if
		:: sleepers[way] == 0 && spinners[way] == 0 -> key[way] = 0
		:: else
		fi;
		way = NO
	}
}

proctype Thread(byte me)
{
	byte rounds, seen, count, l, i, ways, way = NO;
	bit had, watches, leave, woke;

	do
	:: rounds < R ->
		rounds++;
#if LOCKS > 1
		l = me % LOCKS;
#endif
		wants[me] = l;
		do
		/* An atomic empties the CPU's own buffer first. */
		:: atomic { owner[l] == 0 && !buffered[me] -> owner[l] = me + 1 }; break
		:: owner[l] != 0 -> /* spins a while, then has to sleep */
			if
			:: total -> place_of_spinner()
			:: skip
			fi;
			if
			:: atomic { owner[l] == 0 -> seen = 1 }
			:: seen = 0
			fi;
			if
			:: way != NO -> count_out(0)
			:: else
			fi;
			if
			:: seen -> seen = 0
			:: else ->
#ifdef MUT_WAY_FIRST
				place_of_sleeper();
				total++;
#else
				total++;
				place_of_sleeper();
#endif
#ifndef MUT_NO_BARRIER
				if
				:: had -> had = 0
				:: else ->
					atomic { buffered[0] == 0 && buffered[1] == 0 &&
						 buffered[N - 2] == 0 && buffered[N - 1] == 0 };
					fenced[way] = 1
				fi;
#endif
				count = wakes[way];
				if
#ifndef MUT_NO_RECHECK
				:: owner[l] == 0
				:: owner[l] != 0 ->
#else
				:: true ->
#endif
					if
					:: atomic { wakes[way] == count ->
						asleep[me] = 1 + way };
						if
						:: !asleep[me]
#ifdef LEAVES
						:: atomic { asleep[me] && watches ->
							asleep[me] = 0 }
#endif
						fi
					:: wakes[way] != count
					fi
				fi;
				count = 0;
#ifdef MUT_BUCKET_FIRST
				total--;
				count_out(1)
#else
				count_out(1);
				total--
#endif
			fi
		od;
		inside[l]++;
		assert(inside[l] == 1);
		inside[l]--;
		release();
		l = 0
	:: else -> break
	od
}

/* The CPUs write their buffers out, at any time. */
proctype Buffers()
{
end:	do
	:: d_step { buffered[0] -> drain_buffer(0) }
	:: d_step { buffered[1] -> drain_buffer(1) }
	:: d_step { buffered[N - 2] -> drain_buffer(N - 2) }
	:: d_step { buffered[N - 1] -> drain_buffer(N - 1) }
	od
}

init {
	byte n;

	atomic {
		run Buffers();
		do
		:: n < N -> run Thread(n); n++
		:: else -> break
		od
	}
}
