/* SPDX-License-Identifier: MIT */
/*
 * Indices of threads as src/runtime gives them out: [thread_id.c:fg_index_take], in turn
 * [slots.c:fg_slots_next] or, once some were given back, by a search [thread_id.c:find_free].  Each
 * step is one access to shared memory.  Searches look at any index that is free, in any order:
 * [thread_id.c:find_anywhere], [thread_id.c:free_in] and the hint where to begin are open.  So is
 * what the count of those given back says: any thread may take either way.
 *
 *   N threads, each of which takes and gives back R times; M indices
 *
 * Asked for: nobody gets an index that another has; all are within what fg_threads_highest() says,
 * which a writer of a reader-writer lock looks at; in the end all are free.  That a thread gets
 * one at all is not asked: a search that goes past an index which becomes free behind it finds
 * none, and is repeated after [thread_id.c:sweep].
 *
 * MUT_*: faults that have to be found.
 */
#ifndef N
#define N 3
#endif
#ifndef R
#define R 2
#endif
#ifndef M
#define M 3
#endif

bit used[M];        /* bits of thread_id.c */
byte handed_out;    /* of slots.c; may be more than M by as many as ask at once */
byte ndone;

/* Ghost variable: who has it; 0: nobody. */
byte has[M];

#define HIGHEST (handed_out < M -> handed_out : M) /* one behind it: indices begin at 0 here */

/* [thread_id.c:take_bit]  ok: the bit was not set. */
inline take_bit() {
	atomic { ok = !used[i]; used[i] = 1 }
}

/* Is it nobody else's, and will a writer find it? */
inline mine() {
	atomic {
		assert(has[i] == 0);
		assert(i < HIGHEST);
		has[i] = me;
	}
}

proctype Thread(byte me) {
	byte i, n, it;
	bit ok;

	do
	:: it < R ->
		it++;
		ok = 0;
		do
		:: n = HIGHEST; /* one look; then a free one below it, if it finds one */
		   if
#ifdef MUT_BEHIND
		   :: atomic { !used[0] -> i = 0 }
#if M > 1
		   :: atomic { !used[1] -> i = 1 }
#endif
#if M > 2
		   :: atomic { !used[2] -> i = 2 }
#endif
#else
		   :: atomic { n > 0 && !used[0] -> i = 0 }
#if M > 1
		   :: atomic { n > 1 && !used[1] -> i = 1 }
#endif
#if M > 2
		   :: atomic { n > 2 && !used[2] -> i = 2 }
#endif
#endif
		   :: i = M
		   fi;
		   if
		   :: i < M -> take_bit(); if :: ok -> break :: else fi
		   :: else -> break /* none found */
		   fi
		:: handed_out < M ->
			atomic { i = handed_out; handed_out++ };
			if
#ifdef MUT_TICKET
			:: i < M -> used[i] = 1; ok = 1; break
#else
			:: i < M -> take_bit(); if :: ok -> break :: else fi
#endif
			:: else
			fi
		:: break
		od;
		if
		:: ok ->
			mine();
			has[i] = 0;
			used[i] = 0 /* [thread_id.c:index_give_back] */
		:: else
		fi;
		n = 0;
		i = 0
	:: else -> break
	od;
	ndone++
}

init {
	byte k = 1;

	atomic {
		do
		:: k <= N -> run Thread(k); k++
		:: else -> break
		od
	};
	ndone == N;
	for (k : 0 .. M - 1) { assert(!used[k] && has[k] == 0) }
}
