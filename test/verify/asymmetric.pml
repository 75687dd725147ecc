/* SPDX-License-Identifier: MIT */
/*
 * Asymmetry begins and ends at any time, in the middle of what both sides do: the usual one stores
 * and looks [asymmetric.h:fg_fence_light], the rare one stores, makes the barrier for both, and
 * looks [asymmetric.c:fg_fence_heavy].  [asymmetric.c:fg_asymmetric_setup], and, when a filter
 * comes after which no call is made, [asymmetric.c:fg_asymmetric_ends].  A store of the usual side
 * stays in its CPU's store buffer for as long as that likes.
 *
 *   R times each
 *
 * Asked: both are never in at once, and nobody waits for ever.  Mutants: MUT_NO_BARRIER (asymmetry
 * ends without one for all), MUT_BARRIER_LATE (symmetry is said before it), MUT_STILL_LIGHT (the
 * usual side has no barrier while it ends), MUT_NO_CALL (nor makes the rare one any then).
 */
#ifndef R
#define R 2
#endif

#define SYMMETRIC  0
#define ASYMMETRIC 1
#define ENDS	   2

byte asymmetric;
bit may_call = 1;
bit entry, buffered, buffer; /* of the usual side; its store buffer */
bit wanted;		     /* of the rare one */
bit usual_in, rare_in;

inline all_seen()
{
	d_step {
		if
		:: buffered -> entry = buffer; buffered = 0; buffer = 0
		:: else
		fi
	}
}

inline ends()
{
	atomic {
		have = asymmetric;
		if
		:: have == ASYMMETRIC -> asymmetric = ENDS
		:: else
		fi
	};
	if
	:: have == SYMMETRIC
	:: else ->
#ifdef MUT_BARRIER_LATE
		asymmetric = SYMMETRIC;
#endif
#ifndef MUT_NO_BARRIER
		all_seen(); /* by a call, or by ticks */
#endif
		asymmetric = SYMMETRIC
	fi;
	have = 0
}

proctype Cpu()
{
end:
	do
	:: atomic { buffered -> all_seen() }
	od
}

proctype Usual()
{
	byte rounds, now;
	bit sees;

	do
	:: rounds < R ->
		rounds++;
		atomic { all_seen(); buffered = 1; buffer = 1 };
		now = asymmetric;
		if
#ifdef MUT_STILL_LIGHT
		:: now == SYMMETRIC -> all_seen()
#else
		:: now != ASYMMETRIC -> all_seen()
#endif
		:: else
		fi;
		sees = wanted;
		if
		:: !sees ->
			usual_in = 1;
			assert(!rare_in);
			usual_in = 0
		:: else
		fi;
		atomic { all_seen(); buffered = 1; buffer = 0 }
	:: else -> break
	od
}

proctype Rare()
{
	byte rounds, now, have;

	do
	:: rounds < R ->
		rounds++;
		wanted = 1;
		now = asymmetric;
		if
#ifdef MUT_NO_CALL
		:: now != ASYMMETRIC
#else
		:: now == SYMMETRIC
#endif
		:: else ->
			if
			:: atomic { may_call -> all_seen() }
			:: !may_call -> ends()
			fi
		fi;
		!entry;
		rare_in = 1;
		assert(!usual_in);
		rare_in = 0;
		wanted = 0
	:: else -> break
	od
}

proctype Setup()
{
	if
	:: atomic { may_call -> asymmetric = ASYMMETRIC }
	:: !may_call
	fi
}

proctype Filter()
{
	byte have;

	ends();
	may_call = 0
}

init
{
	atomic {
		run Cpu();
		run Usual();
		run Rare();
		run Setup();
		run Filter()
	}
}
