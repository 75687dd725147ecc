/* SPDX-License-Identifier: MIT */
/*
 * Locks of the futex paper as src/zoo has them.  One of:
 *   -DFAIR    the lock is passed to a sleeper: [futexfair.c:lock], [futexfair.c:unlock]
 *   -DUSEMA   handed over by a token: [usema.c:down], [usema.c:sleep_for_token], [usema.c:unlock],
 *             [usema.c:give_up]
 *   -DULOCK   made available, and one token for a waiter: [ulock.c:take_or_queue],
 *             [ulock.c:unlock], [ulock.c:give_up]
 *   -DUNITS=2: USEMA and ULOCK as semaphores of so many units: [sema.c:take_or_queue],
 *             [sema.c:zoo_sema_up],
 *             which wakes whether somebody sleeps or not
 *   -DRANDOM  made available, and all are woken: [futexrandom.c:lock], [futexrandom.c:unlock]
 *   -DUPDOWN  the count of 2.5.7: [updown.c:decrement], [updown.c:lock], [updown.c:unlock]
 *   -DFAIR -DEITHER  each release chooses: [futexfair.c:unlock_regular]
 *
 *   N threads, R rounds each; -DTIMED: a sleeper may give up.
 * Mutants:
 *   MUT_NO_FALLBACK  FAIR: if nobody was woken, the lock stays passed
 *   MUT_CLAIM        FAIR: a waiter that sees it passed takes it without a compare-and-swap
 *   MUT_GIVE_UP      USEMA, ULOCK: one that gives up does not look whether a token is on its way
 *   MUT_LOOK_FIRST   USEMA: a release looks for sleepers before there is a token
 *   MUT_SEPARATE     ULOCK: to look and to queue are two steps
 *   MUT_WAKE_ONE     RANDOM: one is woken, and takes it as if there were no others
 *   MUT_NO_NEXT      UPDOWN: an owner that has slept does not wake the next
 */
#ifndef N
#define N 3
#endif
#ifndef UNITS
#define UNITS 1
#endif
#ifndef R
#define R 2
#endif

byte inside, ended;
short word;
short tokens;
#ifdef USEMA
byte sleepers;
#endif
bit asleep[N], woken[N];

/* Any one sleeper. */
inline wake_one(n)
{
	atomic {
		n = 0;
		if
		:: asleep[0] -> asleep[0] = 0; woken[0] = 1; n = 1
		:: N > 1 && asleep[1 % N] -> asleep[1 % N] = 0; woken[1 % N] = 1; n = 1
		:: N > 2 && asleep[2 % N] -> asleep[2 % N] = 0; woken[2 % N] = 1; n = 1
		:: !asleep[0] && !asleep[1 % N] && !asleep[2 % N]
		fi
	}
}

/* r: 0 woken, 1 the value is another, 2 timed out.  A woken one is told so, timeout or not. */
inline futex_wait(place, value, r)
{
	atomic {
		if
		:: place == value -> asleep[me] = 1; woken[me] = 0; r = 0
		:: else -> r = 1
		fi
	}
	if
	:: r == 0 ->
		if
		:: !asleep[me]
#ifdef TIMED
		:: atomic { asleep[me] -> asleep[me] = 0; r = 2 }
#endif
		fi
	:: else
	fi
}

inline section()
{
	inside++;
	assert(inside <= UNITS);
	inside--
}

#ifdef RANDOM
#define WAKES_ALL
#define FREE 0
#define HELD 1
#define CONTENDED 2

inline acquire()
{
	got = 0;
	do
	:: got || r == 2 -> break
	:: else ->
		atomic {
			if
			:: word == FREE -> word = HELD; got = 1
			:: else
			fi
		}
		if
		:: !got ->
			ok = 1;
			atomic {
				if
				:: word == HELD -> word = CONTENDED
				:: word == FREE -> ok = 0
				:: else
				fi
			}
			if
			:: ok -> futex_wait(word, CONTENDED, r)
			:: else
			fi
		:: else
		fi
	od
}

inline release()
{
	d_step { seen = word; word = FREE }
	if
	:: seen == CONTENDED ->
#ifdef MUT_WAKE_ONE
		wake_one(seen)
#else
		/* One by one: what happens in between is seen, too. */
		do
		:: wake_one(seen); if :: seen == 0 -> break :: else fi
		od
#endif
	:: else
	fi
}
#endif

#ifdef UPDOWN
/* 1 - count: 0 is available, 1 taken, 2 "and somebody sleeps". */
inline decrement()
{
	atomic {
		got = word == 0;
		if
		:: word < 2 -> word++
		:: else
		fi
	}
}

inline acquire()
{
	decrement();
	if
	:: !got ->
		do
		:: futex_wait(word, 2, r);
			if
			:: r == 2 -> break
			:: else
			fi;
			decrement();
			if
			:: got ->
#ifndef MUT_NO_NEXT
				wake_one(seen);
#endif
				break
			:: else
			fi
		od
	:: else
	fi
}

inline release()
{
	d_step { seen = word; word-- }
	if
	:: seen != 1 -> /* one call, and two steps here */
		word = 0;
		wake_one(seen)
	:: else
	fi
}
#endif

#ifdef FAIR
#define FREE 0
#define HELD 1
#define CONTENDED 2
#define PASSED 3

inline acquire()
{
	got = 0;
	do
	:: got || r == 2 -> break
	:: else ->
		seen = word;
		if
		:: seen == FREE ->
			atomic {
				if
				:: word == FREE -> word = CONTENDED; got = 1
				:: else
				fi
			}
		:: else ->
			ok = 1;
			if
			:: seen == HELD ->
				atomic {
					if
					:: word == HELD -> word = CONTENDED; seen = CONTENDED
					:: else -> ok = 0
					fi
				}
			:: else
			fi;
			if
			:: ok ->
				futex_wait(word, seen, r);
				if
				:: r == 0 ->
#ifdef MUT_CLAIM
					if
					:: word == PASSED -> word = CONTENDED; got = 1
					:: else
					fi
#else
					atomic {
						if
						:: word == PASSED -> word = CONTENDED; got = 1
						:: else
						fi
					}
#endif
				:: else
				fi
			:: else
			fi
		fi
	od
}

#ifndef EITHER
#define release_fairly release
#endif

inline release_fairly()
{
	ok = 0;
	atomic {
		if
		:: word == HELD -> word = FREE; ok = 1
		:: else
		fi
	}
	if
	:: !ok ->
		word = PASSED;
		wake_one(seen);
#ifndef MUT_NO_FALLBACK
		if
		:: seen == 0 ->
			atomic {
				if
				:: word == PASSED -> word = FREE; ok = 1
				:: else
				fi
			}
			if
			:: ok -> wake_one(seen)
			:: else
			fi
		:: else
		fi
#endif
	:: else
	fi
}

#ifdef EITHER
inline release()
{
	if
	:: release_fairly()
	:: d_step { seen = word; word = FREE }
		if
		:: seen == CONTENDED -> wake_one(seen)
		:: else
		fi
	fi
}
#endif
#endif

#if defined(USEMA) || defined(ULOCK)
inline take_token()
{
	r = 1;
	do
	:: r == 0 || r == 2 -> break
	:: else ->
		atomic {
			if
			:: tokens > 0 -> tokens--; r = 0
			:: else
			fi
		}
		if
		:: r == 1 ->
#ifdef USEMA
			sleepers++;
#endif
			futex_wait(tokens, 0, r);
#ifdef USEMA
			sleepers--;
#endif
			if
			:: r == 0 -> r = 1
			:: else
			fi
		:: else
		fi
	od
}

/* The token that is on its way. */
inline take_token_certainly()
{
	do
	:: atomic { tokens > 0 -> tokens--; break }
	od
}
#endif

#ifdef USEMA
inline acquire()
{
	d_step { seen = word; word++ }
	got = seen < UNITS;
	if
	:: !got ->
		take_token();
		got = r == 0;
		if
		:: r == 2 ->
#ifdef MUT_GIVE_UP
			word--
#else
			atomic {
				if
				:: word > UNITS -> word--; ok = 1
				:: else -> ok = 0
				fi
			}
			if
			:: !ok -> take_token_certainly(); got = 1
			:: else
			fi
#endif
		:: else
		fi
	:: else
	fi
}

inline release()
{
	d_step { seen = word; word-- }
	if
	:: seen > UNITS ->
#ifdef MUT_LOOK_FIRST
		seen = sleepers;
		tokens++;
#else
		d_step { tokens++; seen = sleepers }
#endif
		if
		:: seen > 0 -> wake_one(seen)
		:: else
		fi
	:: else
	fi
}
#endif

#ifdef ULOCK
/* The units that are taken, and WAITER for each that waits. */
#define WAITER (UNITS + 1)
inline acquire()
{
	got = 0;
	do
	:: got || r == 2 -> break
	:: else ->
#ifdef MUT_SEPARATE
		atomic {
			if
			:: word % WAITER < UNITS -> word++; got = 1
			:: else
			fi
		}
		if
		:: !got -> word = word + WAITER
		:: else
		fi;
#else
		atomic {
			if
			:: word % WAITER < UNITS -> word++; got = 1
			:: else -> word = word + WAITER
			fi
		}
#endif
		if
		:: !got -> take_token()
		:: else
		fi
	od;
	if
	:: r == 2 && !got ->
#ifdef MUT_GIVE_UP
		atomic { word >= WAITER -> word = word - WAITER }
#else
		atomic {
			if
			:: word >= WAITER -> word = word - WAITER; ok = 1
			:: else -> ok = 0
			fi
		}
		if
		:: !ok ->
			take_token_certainly();
			atomic {
				if
				:: word % WAITER < UNITS -> word++; got = 1
				:: else
				fi
			}
		:: else
		fi
#endif
	:: else
	fi
}

inline release()
{
	d_step {
		seen = word;
		word = word - 1;
		if
		:: word >= WAITER -> word = word - WAITER
		:: else
		fi
	}
	if
	:: seen >= WAITER -> tokens++; wake_one(seen)
	:: else
	fi
}
#endif

proctype thread(byte me)
{
	byte rounds, r;
	short seen;
	bit got, ok;

	do
	:: rounds < R ->
		r = 1;
		acquire();
		if
		:: got -> section(); release()
		:: else
		fi;
		rounds++
	:: else -> break
	od;
	ended++;
	if
	:: ended == N -> /* free, and nobody waits */
		assert(word == 0 && tokens == 0)
	:: else
	fi
}

init {
	byte k;

	atomic {
		do
		:: k < N -> run thread(k); k++
		:: else -> break
		od
	}
}
