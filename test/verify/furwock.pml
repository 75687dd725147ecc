/* SPDX-License-Identifier: MIT */
/*
 * Furwocks (src/zoo/furwock.c), for the try that goes past the gate: a writer, a reader, and one
 * that tries, R turns each, under sequential consistency.  The gate is a lock, and no more is said
 * of it here.  -DTIMED: the writer may give up.
 *
 *   -DMUT_TRY_BLIND   the try counts itself before it looks, and takes that back as a reader that
 *                     leaves
 *   -DMUT_GIVE_UP     a writer that gives up takes itself back though the last reader has left
 */
#ifndef R
#define R 2
#endif

short count;           /* readers, less 1 while there is a writer */
bit gate, token, wants;
byte reads, writes;    /* inside */

inline take_gate() { atomic { gate == 0 -> gate = 1 } }

inline read() {
	atomic { reads++; assert(writes == 0) };
	reads--
}

inline rdunlock() {
	atomic { count--; low = (count < 0) };
	if
	:: low -> token = 1
	:: else
	fi
}

proctype Reader() {
	byte it;
	bit low;

	for (it : 1 .. R) {
		take_gate();
		count++;
		gate = 0;
		read();
		rdunlock()
	}
}

proctype Trier() {
	byte it;
	bit low, in;
	short seen;

	for (it : 1 .. R) {
		in = 0;
#ifdef MUT_TRY_BLIND
		atomic { in = (count >= 0); count++ };
		if
		:: in -> read()
		:: else
		fi;
		rdunlock()
#else
		seen = count;
		do
		:: seen >= 0 ->
			if
			:: wants -> break
			:: else
			fi;
			atomic {
				if
				:: count == seen -> count++; in = 1
				:: else -> seen = count
				fi
			};
			if
			:: in -> break
			:: else
			fi
		:: else -> break
		od;
		if
		:: in -> read(); rdunlock()
		:: else
		fi
#endif
	}
}

proctype Writer() {
	byte it;
	bit low, gone, must;

	for (it : 1 .. R) {
		gone = 0;
		must = 0;
		take_gate();
		wants = 1;
		atomic { count--; low = (count < 0) };
		if
		:: low
		:: else ->
			do
			:: token -> token = 0; break
#ifdef TIMED
			:: !must ->
				atomic {
					if
#ifdef MUT_GIVE_UP
					:: count++; gone = 1
#else
					:: count >= 0 -> count++; gone = 1
					/* the last reader has left, and wakes me */
					:: else -> must = 1
#endif
					fi
				};
				if
				:: gone -> break
				:: else
				fi
#endif
			od
		fi;
		if
		:: gone
		:: else ->
			atomic { writes++; assert(writes == 1 && reads == 0) };
			writes--;
			count++
		fi;
		wants = 0;
		gate = 0
	}
}

init {
	atomic { run Writer(); run Reader(); run Trier() };
	_nr_pr == 1;
	assert(count == 0 && gate == 0 && !token && !wants)
}
