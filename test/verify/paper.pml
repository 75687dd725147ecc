/* SPDX-License-Identifier: MIT */
/*
 * The published lock: Laforet, Kashyap, Iorgulescu, Lawall, Lozi, "FlexGuard",
 * SOSP 2025, Listing 2, statement by statement (numbers in the comments are
 * lines of the listing), under sequential consistency.  N threads with one
 * queue node each, R acquisitions each.
 *
 * It keeps mutual exclusion and wakes everybody.  Its queue does not hold:
 *   -DASK_STALE     a hand-over reaches only the thread that queued behind it
 *   -DASK_FREED     a hand-over never writes to the node of a thread that has ended
 *   -DASK_ONE_HEAD  one thread at most is the head of the queue
 *   -DASK_LINKER    with -DMON: the holder never waits, in mcs_exit, for a thread
 *                   that is off CPU and not counted
 *   -DASK_HEAD      with -DMON: the head is on a CPU unless the count says so
 * Each of these is violated.
 *
 * Whose preemption counts (src/zoo/paper.c, docs/design/zoo.md): with -DMON the text's rule, 3.2.2,
 * the owner and the head; with -DBUILT too, what the artifact does as compiled, the owner once
 * lock() has returned, who waits in mid-queue, and who waits in mcs_exit.  Each is blind where the
 * other sees:
 *   -DASK_PROMOTED  a head that was taken off its CPU while it waited in mid-queue is counted:
 *                   built, not text
 *   -DASK_AT_HEAD   a head that was taken off its CPU as the head is counted: text, not built
 *
 * num_preempted_cs changes at any time, or, with
 * -DMON, at one preemption a thread, whose critical sections are known exactly.
 */
#ifndef N
#define N 3
#endif
#ifndef R
#define R 2
#endif
#ifndef FLIPS
#define FLIPS 2
#endif

#define UNLOCKED 0
#define LOCKED   1
#define BLOCKED  2 /* LOCKED_WITH_BLOCKED_WAITERS */

byte val, queue, npc;
byte next[N + 1];
bit waiting[N + 1], asleep[N + 1];

/* Ghosts. */
byte inside, ndone;
bit queued[N + 1], ended[N + 1], owns[N + 1], in_exit[N + 1], slow[N + 1];
byte pred_of[N + 1];   /* whom a thread queued behind; 0: nobody */
byte joined[N + 1];    /* the thread that queued behind it */
bit runs[N + 1] = 1, counted[N + 1];
byte switching;
bit loop[N + 1], held[N + 1], off_in_loop[N + 1], off_at_head[N + 1];

#define IS_HEAD(i) (queued[i] && (pred_of[i] == 0 || !waiting[i]))
#if N > 2
#define HEADS (IS_HEAD(1) + IS_HEAD(2) + IS_HEAD(3))
#else
#define HEADS (IS_HEAD(1) + IS_HEAD(2))
#endif
#ifdef MON
#define GATE provided (runs[me])
#else
#define GATE
#endif

inline cas_val() {
	atomic {
		state = val;
		if
		:: val == UNLOCKED -> val = LOCKED; owns[me] = 1
		:: else
		fi
	}
}

inline xchg_val() {
	atomic {
		state = val;
		val = BLOCKED;
		if
		:: state == UNLOCKED -> owns[me] = 1
		:: else
		fi
	}
}

inline wake() {
	atomic {
		if
		:: asleep[1] -> asleep[1] = 0
		:: asleep[2] -> asleep[2] = 0
#if N > 2
		:: asleep[3] -> asleep[3] = 0
#endif
		:: else
		fi
	}
}

inline mcs_exit() {                                           /* 13 */
	in_exit[me] = 1;
	if
	:: next[me] == 0 ->                                   /* 14 */
		if
		:: atomic { queue == me -> queue = 0; queued[me] = 0 } /* 15 */
		:: else -> next[me] != 0                      /* 17 */
		fi
	:: else
	fi;
	if
	:: queued[me] ->
		s = next[me];
		atomic {                                      /* 19 */
#ifdef ASK_STALE
			assert(queued[s] && pred_of[s] == me);
#endif
#ifdef ASK_FREED
			assert(!ended[s]);
#endif
			waiting[s] = 0;
			queued[me] = 0;
			s = 0
		}
#ifdef ASK_ONE_HEAD
		assert(HEADS <= 1)
#endif
	:: else
	fi;
	in_exit[me] = 0
}

proctype Thread(byte me) GATE {
	byte it, state, pred, s;
	bit enqueued;

	do
	:: it < R ->
		it++;
		cas_val();                                    /* 29 */
		if
		:: state == UNLOCKED -> goto cs
		:: else
		fi;
again:		enqueued = 0;                                 /* 35 */
		if
		:: npc == 0 ->                                /* 36 */
			enqueued = 1;
			next[me] = 0;
			waiting[me] = 1;
			atomic {                              /* 41 */
				pred = queue;
				queue = me;
				queued[me] = 1;
				pred_of[me] = pred;
				joined[me] = 0;
				joined[pred] = me
			};
			if
			:: pred != 0 ->
				atomic { next[pred] = me; loop[me] = 1 }; /* 43 */
				pred = 0;
				atomic { (!waiting[me] || npc > 0) -> loop[me] = 0 } /* 44 */
			:: else
			fi
		:: else
		fi;
		slow[me] = 1;
		cas_val();                                    /* 47 */
		do
		:: state == UNLOCKED -> break
		:: state != UNLOCKED && npc == 0 -> cas_val() /* 51 */
		:: state != UNLOCKED && npc > 0 ->
			if
			:: enqueued -> mcs_exit(); enqueued = 0 /* 54 */
			:: else
			fi;
			if
			:: state != BLOCKED -> xchg_val()     /* 57 */
			:: else
			fi;
			if
			:: state != UNLOCKED ->
				atomic {                      /* 59 */
					if
					:: val == BLOCKED -> asleep[me] = 1
					:: else
					fi
				};
				!asleep[me];
				xchg_val();                   /* 60 */
				if
				/* 62 */
				:: state != UNLOCKED && npc == 0 -> slow[me] = 0; goto again
				:: else
				fi
			:: else
			fi
		od;
		if
		:: enqueued -> mcs_exit()                     /* 64 */
		:: else
		fi;
cs:		atomic { held[me] = 1; inside++ };
		assert(inside == 1);
		inside--;
		/* 24 */
		atomic { state = val; val = UNLOCKED; owns[me] = 0; held[me] = 0; slow[me] = 0 };
		if
		:: state == BLOCKED -> wake()                 /* 25 */
		:: else
		fi;
		state = 0
	:: else -> break
	od;
	atomic { ended[me] = 1; ndone++ }
}

#ifdef MON
#ifdef BUILT
#define CRITICAL(i) (held[i] || loop[i] || (in_exit[i] && queued[i] && queue != i))
#else
/* Listing 1, with its windows taken for exact, and a head that waits counted (section 3.2). */
#define CRITICAL(i) (owns[i] || slow[i] || IS_HEAD(i))
#endif
proctype Cpu(byte i) {
	bit used;
	do
	:: atomic { !used && runs[i] && !asleep[i] -> used = 1; runs[i] = 0; switching++;
		off_in_loop[i] = loop[i] && !IS_HEAD(i); off_at_head[i] = IS_HEAD(i) };
	   atomic {
		if
		:: CRITICAL(i) -> npc++; counted[i] = 1
		:: else
		fi;
		switching--
	   };
	   atomic {
		switching++;
		if
		:: counted[i] -> npc--; counted[i] = 0
		:: else
		fi
	   };
	   atomic { runs[i] = 1; switching-- }
	:: break
	od
}
#define UNSEEN(i) (!runs[i] && !counted[i])
#ifdef ASK_LINKER
#define BAD(i) (owns[i] && in_exit[i] && queued[i] && queue != i && next[i] == 0 && \
		UNSEEN(joined[i]))
#elif defined(ASK_PROMOTED)
#define BAD(i) (IS_HEAD(i) && UNSEEN(i) && off_in_loop[i])
#elif defined(ASK_AT_HEAD)
#define BAD(i) (IS_HEAD(i) && UNSEEN(i) && off_at_head[i])
#else
#define BAD(i) (IS_HEAD(i) && UNSEEN(i))
#endif
active proctype Watch() {
end:	atomic { npc == 0 && switching == 0 && (BAD(1) || BAD(2)
#if N > 2
		|| BAD(3)
#endif
		) -> assert(false) }
}
#else
proctype Mode() {
	byte f;
	do
	:: f < FLIPS -> atomic { f++; npc = 1 - npc }
	:: break
	od
}
#endif

init {
	atomic {
		byte i = 1;
		do
		:: i <= N ->
			run Thread(i);
#ifdef MON
			run Cpu(i);
#endif
			i++
		:: else -> break
		od;
#ifndef MON
		run Mode()
#endif
	};
	ndone == N;
	assert(val == UNLOCKED && queue == 0)
}
