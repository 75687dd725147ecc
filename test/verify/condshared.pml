/* SPDX-License-Identifier: MIT */
/*
 * The condition variable of mutexes that other processes know too (zoo/cond_shared.h): a count of
 * signals.  Each step is one access to shared memory, or one system call.
 *
 *   W waiters; S signals, the first one when waiter 0 waits, each of one waiter, without the mutex
 *   The kernel wakes whomever it likes (by priority, say).
 *   -DCANCEL          one of them is cancelled, asleep or just woken, or is not
 *   -DFG_BROKEN_COND_SHARED  the count is read after the mutex was released
 *   -DMUT_KEEPS       one that is woken in place of another passes nothing on: that one sleeps for
 *                     ever
 *   -DMUT_SLEEPS_ON   it passes the wake-up on and sleeps again: two may wake one another for ever
 *   -DMUT_CANCEL_KEEPS  one that is cancelled keeps the wake-up
 *
 * Each signal reaches one of those that waited when it was sent and have not been reached by an
 * earlier one.
 */
#ifndef W
#define W 3
#endif
#ifndef S
#define S 1
#endif
#define NOBODY 255

byte signals, sent;
bit mutex;
bit waits[W], asleep[W], returned[W], cancelled[W], due[W];
byte woken_in_vain, victim = NOBODY;

inline wake_one() {
	atomic {
		/* Any of the sleepers. */
		if
		:: asleep[0] -> asleep[0] = 0
		:: W > 1 && asleep[1] -> asleep[1] = 0
		:: W > 2 && asleep[2] -> asleep[2] = 0
		:: else
		fi
	}
}

proctype Waiter(byte me) {
	byte seen;

	atomic { !mutex -> mutex = 1 };
#ifndef FG_BROKEN_COND_SHARED
	seen = signals;
#endif
	atomic { mutex = 0; waits[me] = 1 };
#ifdef FG_BROKEN_COND_SHARED
	seen = signals;
#endif
again:	atomic {
		if
		:: signals == seen -> asleep[me] = 1
		:: else -> goto out
		fi
	};
end_asleep:
	if
	:: !asleep[me]
#ifdef CANCEL
	:: atomic { me == victim -> asleep[me] = 0; cancelled[me] = 1 }; goto unwind
#endif
	fi;
	if
	:: signals == seen ->
#ifndef MUT_KEEPS
		wake_one();
#endif
#ifdef MUT_SLEEPS_ON
		woken_in_vain = (woken_in_vain < 20 -> woken_in_vain + 1 : 20);
		assert(woken_in_vain < 20); /* they wake one another */
		goto again
#else
		skip
#endif
	:: else
	fi;
out:	returned[me] = 1;
	goto gone;
unwind:
#ifndef MUT_CANCEL_KEEPS
	wake_one();
#endif
	skip;
gone:	skip
}

proctype Signaller() {
	byte i;

	waits[0];
	do
	:: sent < S ->
		atomic {
			signals++;
			sent++;
			i = 0;
			do
			:: i < W -> due[i] = due[i] || (waits[i] && !returned[i]); i++
			:: else -> break
			od
		};
		wake_one()
	:: else -> break
	od
}

init {
	byte i, met, open;

	atomic {
#ifdef CANCEL
		select(victim : 0 .. W - 1);
#endif
		do
		:: i < W -> run Waiter(i); i++
		:: else -> break
		od;
		run Signaller()
	};
	timeout;
	atomic {
		i = 0;
		do
		:: i < W ->
			met = met + (due[i] && returned[i]);
			open = open + (due[i] && !returned[i] && !cancelled[i]);
			i++
		:: else -> break
		od;
		/* Nobody who was meant sleeps on, unless another who was meant got the signal. */
		assert(!open || met >= S)
	}
}
