/* SPDX-License-Identifier: MIT */
/*
 * The ticket condition variable of "The BPF Hybrid Lock" (Laforet, 2023, section
 * III), as published: each step one access to shared memory.  Not ours; it shows
 * what cond.pml does not have.
 *
 *   W waiters, S <= W signals, sent when all waiters have their tickets
 *   -DSPINNING   nobody sleeps: holds
 *   (default)    they sleep: a signal wakes one whose turn it is not, and is lost
 *   -DBITSET     the repair: a signal wakes the holder of the ticket that it calls.  Holds, but:
 *   -DTIMED      the first may give up: its ticket is called, and nobody comes
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
bit asleep[W + 1];		 /* by ticket */
byte served, gave_up, sent;

inline acquire() { atomic { !lock -> lock = 1 } }
inline release() { lock = 0 }

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
		:: atomic { mine == 1 && asleep[mine] -> asleep[mine] = 0; sleepers??eval(mine); gave_up++ }; goto gone
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

proctype Signaller() {
	byte n;

	(target == W);
	do
	:: sent < S ->
		acquire();
		atomic { seq++; sent++ };
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
		release()
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
	/* As many as were signalled have returned, but for those that did not want to wait any more. */
	assert(served == S || served + gave_up == W)
}
