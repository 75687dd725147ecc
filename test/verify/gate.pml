/* SPDX-License-Identifier: MIT */
/*
 * The gate (gate.c) of spinlocks (spin.c): two locks that share one.  The gate, a FlexGuard lock,
 * and the wait for a spinlock (lock.pml, spin.pml) are one step each here.
 *
 *   N threads, each of which takes one of the locks R times; the first takes the second lock with
 *   the first in hand
 *
 *   HALT: one thread may be stopped for ever when it has the gate, or waits by the lock alone
 *
 * Asked for: mutual exclusion; nobody else waits for ever; in the end the gate is free, but for one
 * that was stopped with it.
 *
 * MUT_*: faults that have to be found.  MUT_PATIENT: who waits at the gate never looks for itself;
 * found with HALT, and without: the owner of a lock may be at the gate behind one that waits for
 * it, since the gate has changed hands.
 */
#ifndef N
#define N 3
#endif
#ifndef R
#define R 1
#endif

byte gate, tag;	     /* its owner; the lock, from 1 on, that this one waits for */
byte lock[3];	     /* owners */
byte inside[3], ndone;
bit stopped;

/* [spin.h:_fg_spin_trylock] */
inline try(l) {
	atomic {
		got = (lock[l] == 0);
		if
		:: got -> lock[l] = me
		:: else
		fi
	}
}

inline may_stop() {
#ifdef HALT
	if
	:: atomic { !stopped && !held -> stopped = 1; goto over }
	:: true
	fi
#else
	skip
#endif
}

/* [spin.c:pass_gate], [gate.c:_fg_gate_pass]; at = 1: the thread has the gate */
inline pass(l) {
	at = 0;
	do
	:: got -> break
	:: !got ->
		/* [lock.h:_fg_trylock] */
		atomic {
			if
			:: gate == 0 -> gate = me; at = 1
			:: else
			fi
		};
		if
		:: at -> break
		:: else
		fi;
		if
		:: tag != l -> break /* around */
		:: else
		fi;
		/* [gate.c:wait_for], and [gate.c:does_not_move] at its end */
		if
		:: atomic { gate == 0 -> gate = me; at = 1 }; break
#ifndef MUT_PATIENT
		:: true ->
			try(l);
			if
			:: !got -> break
			:: else
			fi
#endif
		fi
	od;
	if
	:: at -> tag = l
	:: else
	fi
}

inline acquire(l) {
	try(l);
	if
	:: !got ->
		pass(l);
		if
		:: !got ->
			may_stop();
			/* [spin.c:wait_for] */
			atomic { lock[l] == 0 -> lock[l] = me }
		:: else
		fi;
		/* [gate.c:_fg_gate_leave] */
		if
		:: at -> atomic { gate = 0; at = 0 }
		:: else
		fi
	:: else
	fi;
	got = 0;
	inside[l]++;
	assert(inside[l] == 1)
}

/* [spin.h:_fg_spin_unlock] */
inline release(l) {
	inside[l]--;
	lock[l] = 0
}

proctype Thread(byte me) {
	byte i;
	bit got, at, held;

	do
	:: i < R ->
		i++;
		if
		:: me == 1 ->
			acquire(1);
			held = 1;
			acquire(2);
			release(2);
			release(1);
			held = 0
		:: me > 1 -> acquire(1); release(1)
		:: me > 1 -> acquire(2); release(2)
		fi
	:: else -> break
	od;
over:
	ndone++
}

init {
	byte i;

	atomic {
		for (i : 1 .. N) { run Thread(i) }
	};
	ndone == N;
	assert(stopped || gate == 0)
}
