/* SPDX-License-Identifier: MIT */
/*
 * Being late for FUTEX_WAIT.  Mirrors [futex_look.c:_fg_futex_look], [futex_look.c:spin],
 * [futex_look.c:_fg_futex_accepted], [futex_look.c:_fg_futex_is_known].  Semaphores of another
 * library, whose words share one entry of the table: what is in there decides who looks, and
 * anything may be in there.  A look takes any number of steps, and ends when the word has changed,
 * or at any time.  Every token is taken, nobody sleeps for ever.
 *
 *   N takers (2 or 3) of WORDS words, one each in turn; a poster for each of them.
 *   Mutants: MUT_LEFT_OUT (no wake-up while somebody looks at a word of the entry), MUT_BLIND
 *   (after a look the thread sleeps on what it has seen, not on what the kernel compares),
 *   MUT_HANDED (a wake-up goes to a looker of the entry, which takes it for its own word's)
 */
#ifndef N
#define N 3
#endif
#ifndef WORDS
#define WORDS 2
#endif

byte tokens[WORDS];
byte known;    /* the entry: 1 + word */
byte looking;  /* threads that look at a word of it */
bit handed;
bit asleep[N];
byte ended;

#define WORD(t) ((t) % WORDS)

inline wake_one(w)
{
	atomic {
		if
		:: asleep[0] && WORD(0) == w -> asleep[0] = 0
		:: asleep[1] && WORD(1) == w -> asleep[1] = 0
		:: N > 2 && asleep[2 % N] && WORD(2 % N) == w -> asleep[2 % N] = 0
		:: !(asleep[0] && WORD(0) == w) && !(asleep[1] && WORD(1) == w) &&
			!(N > 2 && asleep[2 % N] && WORD(2 % N) == w)
		fi
	}
}

/* The kernel's: compares, and sleeps, in one step. */
inline kernel_wait(w)
{
	atomic {
		if
		:: tokens[w] == 0 -> asleep[me] = 1
#ifdef MUT_BLIND
		:: looked -> asleep[me] = 1
#endif
		:: else
		fi
	}
	!asleep[me];
	if
	:: known = 1 + w /* accepted */
	:: true		 /* the entry was in use */
	fi
}

/* changed: the wait is over without the kernel. */
inline look(w)
{
	looking++;
	do
	:: tokens[w] != 0 -> changed = 1; break
#ifdef MUT_HANDED
	:: atomic { handed -> handed = 0; tokens[w] != 0 -> changed = 1; break }
#endif
	:: break /* no budget, no room, no time; or left */
	od;
	looking--;
	looked = 1
}

proctype taker(byte me)
{
	bit got, changed, looked;

	do
	:: got -> break
	:: else ->
		atomic {
			if
			:: tokens[WORD(me)] > 0 -> tokens[WORD(me)]--; got = 1
			:: else
			fi
		}
		if
		:: !got ->
			changed = 0;
			looked = 0;
			if
			:: known == 1 + WORD(me) -> look(WORD(me))
			:: true
			fi;
			if
			:: !changed -> kernel_wait(WORD(me))
			:: else
			fi
		:: else
		fi
	od;
	ended++
}

proctype poster(byte w)
{
	tokens[w]++;
#ifdef MUT_LEFT_OUT
	if
	:: looking > 0
	:: else -> wake_one(w)
	fi
#else
#ifdef MUT_HANDED
	atomic {
		if
		:: looking > 0 -> handed = 1
		:: else -> wake_one(w)
		fi
	}
#else
	wake_one(w)
#endif
#endif
}

init {
	byte k;

	atomic {
		if /* earlier waits */
		:: known = 0
		:: known = 1
		:: known = WORDS
		fi;
		do
		:: k < N -> run taker(k); run poster(WORD(k)); k++
		:: else -> break
		od
	}
	ended == N
}
