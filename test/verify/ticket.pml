/* SPDX-License-Identifier: MIT */
/*
 * The ticket condition variable of "BPF Hybrid Lock" (Laforet, Lozi, Lawall, 2023, section
 * III), as published: each step one access to shared memory; and as src/zoo/cond.c has it
 * ([ticketcond.h:zoo_ticket_draw], [ticketcond.h:zoo_ticket_signal],
 * [ticketcond.h:zoo_ticket_leave], [cond.c:await]).
 *
 *   W waiters, S <= W signals, sent when all waiters have their tickets
 *   -DSPINNING   nobody sleeps: holds
 *   (default)    they sleep: a signal wakes one whose turn it is not, and is lost
 *   -DBITSET     the repair: a signal wakes the holder of the ticket that it calls.  Holds, but:
 *   -DTIMED      the first may give up: its ticket is called, and nobody comes
 *   -DLEAVE      with both: one that gives up calls all tickets that are out, so that others wake
 *                up for nothing.  Each signal brings an item, and one that wakes up without draws a
 *                ticket again.  Holds.
 * Mutants of that:
 *   MUT_KEEPS    one whose ticket has been called in the meantime gives up all the same
 *   MUT_SILENT   the tickets are called, and nobody is woken for it
 */
#ifndef W
#define W 2
#endif
#ifndef S
#define S 1
#endif

byte target, seq;
bit lock;
chan sleepers = [W] of { byte }; /* in the order in which futex wakes them; by ticket */
#ifdef LEAVE
#define TICKETS (3 * W) /* one that woke up for nothing draws another */
#else
#define TICKETS W
#endif
bit asleep[TICKETS + 1];		 /* by ticket */
byte served, gave_up, sent;
byte items; /* LEAVE */

inline acquire() { atomic { !lock -> lock = 1 } }
inline release() { lock = 0 }

inline wake_everybody() {
	do
	:: nempty(sleepers) -> sleepers?n; asleep[n] = 0
	:: empty(sleepers) -> break
	od
}

#ifdef LEAVE
/* One that is out of time: its ticket is not called, nor any of those before it. */
proctype Waiter() {
	byte mine, seen, n;
	bit late;
	bit may_leave = (_pid == 1);

	acquire();
	do
	:: late -> gave_up++; break /* it does not even look */
	:: !late && items > 0 -> items--; served++; break
	:: !late && items == 0 ->
		target++;
		mine = target;
		release();
		do
		:: seen = seq;
			if
			:: seen >= mine -> break
			:: else
			fi;
			atomic { /* in the channel of its ticket */
				if
				:: seq == seen -> asleep[mine] = 1; sleepers!mine
				:: else
				fi
			};
end_sleep:		if
			:: !asleep[mine]
			:: atomic { may_leave && asleep[mine] ->
				asleep[mine] = 0; sleepers??eval(mine); late = 1 };
				/* One compare-and-swap, of a word that has been read before. */
				atomic {
					if
#ifdef MUT_KEEPS
					:: seq >= mine -> skip
#else
					:: seq >= mine -> late = 0
#endif
					:: else -> seq = target;
#ifndef MUT_SILENT
						wake_everybody()
#endif
					fi;
					n = 0
				};
				break
			fi
		od;
		acquire()
	od;
	release()
}
#else
proctype Waiter() {
	byte mine, seen;

	acquire();
	target++;
	mine = target;
	seen = seq;
	release();
	do
	:: mine > seen ->
#ifdef SPINNING
end_spin:	(seq != seen); /* reads it again and again */
#else
		atomic { /* futex_wait(&seq, seen) */
			if
			:: seq == seen -> asleep[mine] = 1; sleepers!mine
			:: else
			fi
		};
end_sleep:	if
		:: !asleep[mine]
#ifdef TIMED
		:: atomic { mine == 1 && asleep[mine] ->
			asleep[mine] = 0; sleepers??eval(mine); gave_up++ }; goto gone
#endif
		fi;
#endif
		seen = seq
	:: else -> break
	od;
	acquire();
	served++;
	release();
gone:	skip
}
#endif

proctype Signaller() {
	byte n;

	(target >= W);
	do
	:: sent < S ->
		acquire();
#ifdef LEAVE
		items++;
		sent++;
		atomic {
			if
			:: seq < target -> seq++
			:: else -> release(); goto next
			fi
		};
#else
		atomic { seq++; sent++ };
#endif
#ifdef BITSET
		atomic { /* wakes all sleepers with the bit of this ticket */
			if
			:: asleep[seq] -> asleep[seq] = 0; sleepers??eval(seq)
			:: else
			fi
		};
#else
		atomic { /* futex_wake(&seq, 1) */
			if
			:: nempty(sleepers) -> sleepers?n; asleep[n] = 0
			:: empty(sleepers)
			fi
		};
#endif
		release();
next:		skip
	:: else -> break
	od
}

init {
	byte i;

	atomic {
		do
		:: i < W -> run Waiter(); i++
		:: else -> break
		od;
		run Signaller()
	};
	timeout;
#ifdef LEAVE
	/* Nobody waits beside an item. */
	assert(served == S || served + gave_up == W)
#else
	/*
	 * As many as were signalled have returned, but for those that did not want to wait any
	 * more.
	 */
	assert(served == S || served + gave_up == W)
#endif
}
