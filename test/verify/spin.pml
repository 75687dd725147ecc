/* SPDX-License-Identifier: MIT */
/*
 * The spinlock's sleep without a bit in the lock.  Mirrors [spin.h:fg_spin_release],
 * [spin.c:fg_spin_wake], [spin.c:barrier_everywhere], [spin.c:sleep_on],
 * [spin.c:fg_spin_lock_slowly] with [spin.c:spin].  The store of a release stays in
 * its CPU's store buffer for as long as it likes; membarrier(2) empties it.  The time
 * limit of a sleep, which would repair any loss, is left out.
 *
 *   N threads, R rounds each.  Mutants: MUT_NO_BARRIER, MUT_LOOK_FIRST (the
 *   release looks for sleepers before it stores), MUT_NO_RECHECK (of the lock
 *   by the sleeper), MUT_RELAXED (the count of wake-ups is seen before the store).
 */
#ifndef N
#define N 2
#endif
#ifndef R
#define R 2
#endif

byte owner;	     /* what others see: 0 free, else 1 + thread */
bit buffered[N];     /* a release that others do not see yet */
byte sleepers, spinners, wakes, inside;
bit asleep[N];

/* Wakes one, whichever: with N == 2 there is one at most; with more, any. */
inline wake_one()
{
	if
	:: spinners == 0 ->
		atomic {
#ifndef MUT_RELAXED
			if
			:: buffered[me] -> buffered[me] = 0; owner = 0
			:: else
			fi;
#endif
			wakes++;
			if
			:: asleep[0] -> asleep[0] = 0
			:: asleep[N - 1] -> asleep[N - 1] = 0
			:: !asleep[0] && !asleep[N - 1]
			fi
		}
	:: else
	fi
}

inline release()
{
#ifdef MUT_LOOK_FIRST
	seen = sleepers;
	buffered[me] = 1;
#else
	buffered[me] = 1;
	seen = sleepers;
#endif
	if
	:: seen -> wake_one()
	:: else
	fi
}

proctype Thread(byte me)
{
	byte rounds, seen, count;

	do
	:: rounds < R ->
		rounds++;
		do
		/* An atomic empties the CPU's own buffer first. */
		:: atomic { owner == 0 && !buffered[me] -> owner = me + 1 }; break
		:: owner != 0 -> /* spins a while, then has to sleep */
			spinners++;
			if
			:: atomic { owner == 0 -> spinners-- }
			:: atomic { spinners--; };
				sleepers++;
#ifndef MUT_NO_BARRIER
				atomic { buffered[0] == 0 && buffered[N - 1] == 0 };
#endif
				count = wakes;
				if
#ifndef MUT_NO_RECHECK
				:: owner == 0
				:: owner != 0 ->
#else
				:: true ->
#endif
					if
					:: atomic { wakes == count -> asleep[me] = 1 }; !asleep[me]
					:: wakes != count
					fi
				fi;
				sleepers--
			fi
		od;
		inside++;
		assert(inside == 1);
		inside--;
		release()
	:: else -> break
	od
}

/* The CPUs write their buffers out, at any time. */
proctype Buffers()
{
end:	do
	:: atomic { buffered[0] -> buffered[0] = 0; owner = 0 }
	:: atomic { buffered[N - 1] -> buffered[N - 1] = 0; owner = 0 }
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
