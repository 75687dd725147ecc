/* SPDX-License-Identifier: MIT */
/*
 * The pair of locks of the BPF Hybrid Lock, as repaired in src/zoo/hybrid.c: mirrors
 * [hybrid.c:lock_pair], [hybrid.c:unlock_pair], [hybrid.c:zoo_hybrid_switch_if_wanted],
 * [hybrid.c:end_transition].
 *
 *   N threads, R rounds each, S switches at any moment.  The two locks are atomic here; a waiter of
 *   the spinning side may leave after a switch: compare-and-swap, MCS ([hybrid_sides.c:cas_lock],
 *   [hybrid_sides.c:mcs_lock]).
 *   -DSTAYS      it may not, as with any lock of the zoo ([pair.c:fast_lock_it],
 *                [pair.c:zoo_pair_look])
 *   -DTICKET     the spinning side is the ticket lock, whose waiters cannot leave and sleep after a
 *                switch ([hybrid_sides.c:ticket_lock], [hybrid_sides.c:ticket_unlock],
 *                [hybrid_sides.c:sleep_for_number])
 *   -DCLH        that is CLH, with a word for each waiter ([hybrid_sides.c:sleep_for_status],
 *                [hybrid_sides.c:grant])
 * Mutants:
 *   LITERAL         the transition ends without waiting for the owner of `last`: the published
 *                   listing
 *   MUT_UNLOCK_CURR the release releases `curr`
 *   MUT_FORGET      TICKET: a release does not look for sleepers
 *   MUT_STORE       TICKET: it looks, and then stores the next number and no sleepers
 *   MUT_ONE_FLAG    CLH: one flag for the sleepers of all words, cleared by the first hand-over:
 *                   the fault that `test/zoo/check` found in the first version
 */
#ifndef N
#define N 3
#endif
#ifndef R
#define R 1
#endif
#ifndef S
#define S 2
#endif
#define SPIN  0
#define BLOCK 1

bit curr, last;	  /* one word: read and written together */
bit held[2];
byte inside;

/* ---- the spinning side ---- */

byte next_number, called;	  /* TICKET */
bit sleepers; /* in the word of `called` */
bit asleep[N];

/* CLH: 0, or 1 + thread whose node it is; a node a thread and round would reuse */
byte tail;
#define WAITING	 0
#define SLEEPING 1
#define GRANTED	 2
byte status[N * (R + S) * 2 + 1]; /* of nodes, each used once */
byte nodes = 1;
byte my_node[N];		  /* what the owner releases */
#ifdef MUT_ONE_FLAG
byte waits_on[N];
#endif

inline sleep_if(condition)
{
	atomic {
		if
		:: condition -> asleep[me] = 1
		:: else
		fi
	}
	!asleep[me]
}

inline wake_all()
{
	d_step {
		i = 0;
		do
		:: i < N -> asleep[i] = 0; i++
		:: else -> break
		od;
		i = 0
	}
}

/* stay: it waits until it gets it. */
inline take_spin(stay)
{
	got = 1;
#ifdef TICKET
	d_step { mine = next_number; next_number++ }
	do
	:: called == mine -> break
	:: else ->
		seen = called;
		if
		:: seen == mine -> break
		:: else
		fi;
		if
		:: curr != SPIN -> sleepers = 1; sleep_if(called == seen && sleepers)
		:: atomic { curr == SPIN -> (called != seen || curr != SPIN) } /* spins */
		fi
	od;
	held[SPIN] = 1
#else
#ifdef CLH
	d_step { mine = nodes; nodes++; before = tail; tail = mine }
	do
	:: before == 0 || status[before] == GRANTED -> break
	:: else ->
		if
		:: curr != SPIN ->
#ifdef MUT_ONE_FLAG
			sleepers = 1;
			waits_on[me] = before;
			sleep_if(status[before] == WAITING)
#else
			atomic {
				if
				:: status[before] == WAITING -> status[before] = SLEEPING
				:: else
				fi
			}
			sleep_if(status[before] == SLEEPING)
#endif
		:: atomic { curr == SPIN -> (status[before] == GRANTED || curr != SPIN) }
		fi
	od;
	my_node[me] = mine;
	held[SPIN] = 1
#else
	if
	:: atomic { !held[SPIN] -> held[SPIN] = 1 }
#ifndef STAYS
	:: !stay && curr != SPIN -> got = 0
#endif
	fi
#endif
#endif
}

inline give_spin()
{
	held[SPIN] = 0;
#ifdef TICKET
#ifdef MUT_STORE
	seen = sleepers;
	d_step { called++; sleepers = 0 };
#else
	d_step { seen = sleepers; called++; sleepers = 0 };
#endif
#ifndef MUT_FORGET
	if
	:: seen -> wake_all()
	:: else
	fi
#endif
#endif
#ifdef CLH
	atomic {
		if
		:: tail == my_node[me] -> tail = 0; before = 0
		:: else -> before = status[my_node[me]]; status[my_node[me]] = GRANTED
#ifdef MUT_ONE_FLAG
			before = 0
#endif
		fi
	}
#ifdef MUT_ONE_FLAG
	/*
	 * Wakes those that sleep on this word only: here, that one of the others may not be among
	 * them.
	 */
	if
	:: sleepers ->
		sleepers = 0;
		atomic {
			i = 0;
			do
			:: i < N && waits_on[i] == my_node[me] -> asleep[i] = 0; i++
			:: i < N && waits_on[i] != my_node[me] -> i++
			:: i == N -> break
			od;
			i = 0
		}
	:: else
	fi
#else
	if
	:: before == SLEEPING -> wake_all() /* more than there are look again */
	:: else
	fi
#endif
#endif
}

inline take(side, stay)
{
	if
	:: side == SPIN -> take_spin(stay)
	:: else -> atomic { !held[BLOCK] -> held[BLOCK] = 1 }; got = 1
	fi
}

inline give(side)
{
	if
	:: side == SPIN -> give_spin()
	:: else -> held[BLOCK] = 0
	fi
}

proctype thread(byte me)
{
	byte rounds, mine, seen, before, i;
	bit side, c, l, got;

	do
	:: rounds < R ->
again:
		side = curr;
		take(side, false);
		if
		:: !got -> goto again
		:: else
		fi;
		d_step { c = curr; l = last }
		if
		:: c != side -> give(side); goto again
		:: else
		fi;
		if
		:: l != side ->
#ifdef LITERAL
			last = side
#else
			take(l, true);
			last = side;
			give(l)
#endif
		:: else
		fi;
		inside++;
		assert(inside == 1);
		inside--;
#ifdef MUT_UNLOCK_CURR
		side = curr;
#else
		side = last;
#endif
		give(side);
		rounds++
	:: else -> break
	od
}

proctype switcher()
{
	byte k;

	do
	:: k < S ->
		atomic {
			if
			:: curr == last -> curr = !curr
			:: else /* the compare-and-swap fails */
			fi
		}
		k++
	:: k >= S -> break
	od
}

init {
	byte k;

	atomic {
		do
		:: k < N -> run thread(k); k++
		:: else -> break
		od;
		run switcher()
	}
}
