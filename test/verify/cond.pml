/* SPDX-License-Identifier: MIT */
/*
 * The condition variable of src/lock/cond.c.  Each step is one access to shared
 * memory, under sequential consistency; the list operations, which the inner
 * lock guards, are one step each.  That lock is taken to be right (lock.pml).
 * Names in brackets: see lock.pml.
 *
 *   W waiters, S signals
 *   -DTIMED, -DCANCEL   all waiters but the last may time out, be cancelled
 *   -DURGENT  a signal goes to any one that waits, not to the first
 *   -DDUE     a signaller with the mutex may leave sleepers to be woken at its release; the last
 *             waiter that returns takes the mutex's memory away
 *
 * -DITEMS: a producer makes S items and signals each, with or without the mutex;
 * consumers wait for one item each.  Those that time out or are cancelled take
 * none.  Nobody may be left asleep while an item lies there.
 *
 * Otherwise: each waiter waits once; when all do, somebody signals, then
 * broadcasts, and destroys the condition variable at once.  Everybody has to
 * return, and nobody may touch the condition variable after the destruction.
 *
 * With -DITEMS sleepers at the end are right, so pan needs -E; the assertions at
 * the end tell which are not.
 */
#ifndef W
#define W 3
#endif
#ifndef S
#define S 2
#endif

/* [cond.h:fg_waiter] word, and the link fields; index 0 is NULL. */
#define WAITING  0
#define ASLEEP   1
#define SIGNALED 2
#define LAST     3
#define GONE     4
#define WAITS(w) ((w) == WAITING || (w) == ASLEEP)
byte word[W + 1], next[W + 1], prev[W + 1];
bit asleep[W + 1];

/* [cond.h:fg_cond] */
byte first, last, signaled; /* the last is lock.tag */
bit lock;

bit mutex;                /* the user's */
byte due;                 /* [mutex.h:fg_mutex] guarded by it; the waiters' next links them */
byte items, entered, ndone;

/* Ghosts. */
bit alive[W + 1];         /* the waiter's node, on its stack */
bit gone;                 /* the condition variable is destroyed */
/* the last waiter has returned, released the mutex, and taken its memory away */
bit mutex_gone;
byte returned;

#define TOUCH    assert(!gone)
#define NODE(i)  assert((i) == 0 || alive[i])

/* [cond.c:cond_lock] and the release of its lock, which touches nothing afterwards. */
inline cond_lock() { atomic { TOUCH; !lock -> lock = 1 } }
inline cond_unlock() { atomic { TOUCH; lock = 0 } }
inline mutex_lock() { atomic { !mutex -> mutex = 1 } }
inline mutex_unlock() { mutex = 0 }

/* [cond.c:list_append] */
inline list_append(i) {
	d_step {
		TOUCH;
		NODE(last);
		next[i] = 0;
		prev[i] = last;
		if
		:: last != 0 -> next[last] = i
		:: else -> first = i
		fi;
		last = i
	}
}

/* [cond.c:list_remove] */
inline list_remove(before, after) {
	d_step {
		TOUCH;
		NODE(before);
		NODE(after);
		if
		:: (before) != 0 -> next[before] = after
		:: else -> first = after
		fi;
		if
		:: (after) != 0 -> prev[after] = before
		:: else -> last = before
		fi
	}
}

inline wake(i) { asleep[i] = 0 }

/*
 * [cond.c:give] with [cond.c:add_to_history]  ok: the waiter has its signal; state: what it did
 * before.
 */
inline give(i, what) {
	atomic { NODE(i); state = word[i] };
	do
	:: WAITS(state) ->
		atomic {
			NODE(i);
			if
#ifdef MUT_STALE_STATE
			:: WAITS(word[i]) -> word[i] = what; ok = 1
#endif
#ifdef MUT_BLIND
			:: true -> word[i] = what; ok = 1
#else
			:: word[i] == state -> word[i] = what; ok = 1
#endif
			:: else -> state = word[i]
			fi
		};
		if
#ifdef MUT_LATE_HISTORY
		:: ok -> atomic { NODE(i); TOUCH }; break
#else
		:: ok -> atomic { TOUCH }; break
#endif
		:: else
		fi
	:: else -> break
	od
}

/* [mutex.c:_fg_mutex_wakes_at_release]  Whether somebody sleeps for the mutex is open. */
inline look(all) {
#ifdef DUE
	if
	:: is_last && !(all) && word[n] == ASLEEP -> assert(!mutex_gone); at_release = inside
	:: true
	fi
#else
	skip
#endif
}

/* [mutex.c:_fg_mutex_wake_at_release] */
inline later() {
	if
	:: at_release && state == ASLEEP ->
		atomic { NODE(n); assert(!mutex_gone); next[n] = due; due = n; state = 0 }
	:: else
	fi
}

/* [mutex.c:unlock_beside_waiters]  The addresses first; the wake-ups without the mutex. */
inline mutex_release() {
	n = due;
#ifdef MUT_DUE_AFTER
	mutex_unlock();
#endif
	do
	:: n != 0 -> atomic { NODE(n); sleeping[n] = 1; n = next[n] }
	:: else -> break
	od;
	due = 0;
	mutex_unlock();
	n = 1;
	do
#ifdef MUT_DUE_LOST
	:: n <= W -> sleeping[n] = 0; n++
#else
	:: n <= W && sleeping[n] -> atomic { wake(n); sleeping[n] = 0; n++ }
	:: n <= W && !sleeping[n] -> n++
#endif
	:: n > W -> break
	od;
	n = 0
}

/*
 * [cond.c:most_urgent]  Any one that waits, since priorities are open.  One step: who has gone, or
 * waits no longer, does not come back.
 */
inline first_of(all) {
	atomic {
		TOUCH;
		n = first;
#ifdef URGENT
		do
		:: !(all) && n != 0 && WAITS(word[n]) -> break
		:: !(all) && n != 0 ->
			NODE(n);
			if
			:: WAITS(word[n]) -> p = n
			:: else
			fi;
			n = next[n]
		:: all -> break
		:: !(all) && n == 0 -> n = p; break
		od;
		p = 0
#endif
	}
}

/* [cond.c:signal_first]  n: the waiter, or 0; state: ASLEEP if it has to be woken. */
inline signal_first(all) {
	first_of(all);
	do
	:: n != 0 ->
		d_step {
			NODE(n);
			p = prev[n];
			q = next[n];
			is_last = (all || first == last)
		};
#ifdef MUT_ALL_LAST
		is_last = 1;
#endif
#ifndef MUT_LATE_LOOK
		atomic { NODE(n); look(all) };
#endif
		if
		:: !is_last -> atomic { TOUCH; signaled++ }
		:: else
		fi;
		give(n, (is_last -> LAST : SIGNALED));
		if
#ifdef MUT_LATE_LOOK
		:: ok ->
			list_remove(p, q);
			atomic { if :: is_last && !(all) -> assert(!mutex_gone) :: else fi }; break
#else
		:: ok -> list_remove(p, q); later(); break
#endif
		:: else
		fi;
		if
		:: !is_last -> atomic { TOUCH; signaled-- }
		:: else
		fi;
#ifdef URGENT
		if
		:: all -> n = q
#ifdef MUT_URGENT_ONCE
		:: else -> n = 0
#else
		:: else -> first_of(all)
#endif
		fi
#else
		n = q
#endif
	:: else -> break
	od;
	atomic { p = 0; q = 0; ok = 0; is_last = 0; at_release = 0 }
}

/* [cond.c:_fg_cond_signal_slow] behind [cond.h:_fg_cond_nobody_waits] */
inline cond_signal() {
	atomic { TOUCH; n = first };
	if
	:: n != 0 ->
		cond_lock();
		signal_first(false);
		cond_unlock();
		if
		:: n != 0 && state == ASLEEP -> wake(n)
		:: else
		fi;
		atomic { n = 0; state = 0 }
	:: else
	fi
}

/*
 * [cond.c:_fg_cond_broadcast_slow]  Sleepers are remembered by address, and woken without the lock.
 */
inline cond_broadcast() {
	atomic { TOUCH; n = first };
	if
	:: n != 0 ->
		cond_lock();
		do
		:: true ->
			signal_first(true);
			if
			:: n != 0 && state == ASLEEP -> sleeping[n] = 1
			:: n != 0 && state != ASLEEP
			:: n == 0 -> break
			fi
		od;
		cond_unlock();
		atomic { n = 1; state = 0 };
		do
		:: n <= W && sleeping[n] -> atomic { wake(n); sleeping[n] = 0; n++ }
		:: n <= W && !sleeping[n] -> n++
		:: n > W -> break
		od;
		n = 0
	:: else
	fi
}

/* [cond.c:go]  ok: the wait has ended by itself. */
inline go() {
	atomic {
		if
		:: WAITS(word[me]) -> word[me] = GONE; ok = 1
		:: else -> ok = 0
		fi
	};
	if
	:: ok ->
		cond_lock();
		list_remove(prev[me], next[me]);
		cond_unlock()
	:: else
	fi
}

/* [cond.c:confirm] */
inline confirm() {
	if
#ifdef MUT_LAST_CONFIRMS
	:: word[me] == SIGNALED || word[me] == LAST ->
		atomic { TOUCH; signaled = signaled - (signaled > 0 -> 1 : 0) }
#else
	:: word[me] == SIGNALED -> atomic { TOUCH; assert(signaled > 0); signaled-- }
#endif
	:: else
	fi
}

/* [cond.c:pass_on] */
inline pass_on() {
#ifndef MUT_NO_PASS_ON
	if
	:: word[me] == SIGNALED -> cond_signal()
	:: else
	fi;
#endif
	confirm()
}

#define BY_SIGNAL 0
#define BY_TIME   1
#define BY_CANCEL 2

/* [cond.c:spin_for_signal]  How long is open; a cancellation point. */
inline spin_for_signal() {
	if
	:: word[me] != WAITING
#ifdef CANCEL
	:: me != W -> r = BY_CANCEL
#endif
	:: atomic {
#ifdef MUT_BLIND_SLEEP
		true -> word[me] = ASLEEP
#else
		if
		:: word[me] == WAITING -> word[me] = ASLEEP
		:: else
		fi
#endif
	   }
	fi
}

/*
 * [cond.c:_fg_cond_wait], [cond.c:wait_for_signal], [cond.c:wait_in_list], [cond.c:cancelled],
 * [futex.c:fg_futex_wait_cancellable]
 */
inline cond_wait() {
	d_step { alive[me] = 1; word[me] = WAITING; r = BY_SIGNAL };
	cond_lock();
	list_append(me);
	cond_unlock();
	mutex_unlock();
	spin_for_signal();
	do
	:: r != BY_SIGNAL || word[me] != ASLEEP -> break
	:: r == BY_SIGNAL && word[me] == ASLEEP ->
		atomic {
			if
			:: word[me] == ASLEEP -> asleep[me] = 1
			:: else
			fi
		};
		if
		:: !asleep[me] /* woken, or not ASLEEP any more */
#ifdef TIMED
		:: atomic { me != W && asleep[me] -> asleep[me] = 0 };
		   go();
		   if
		   :: ok -> r = BY_TIME; ok = 0; break
		   :: else
		   fi
#endif
#ifdef CANCEL
		/* Also if it has just been woken. */
		:: atomic { me != W -> asleep[me] = 0; r = BY_CANCEL }; break
#endif
		fi
	od;
	if
	:: r == BY_SIGNAL -> confirm()
	:: r == BY_TIME
	:: r == BY_CANCEL ->
		go();
		if
		:: !ok -> pass_on()
		:: else
		fi;
		ok = 0
	fi;
	mutex_lock();
	atomic { alive[me] = 0; prev[me] = 0; next[me] = 0; asleep[me] = 0 }
}

proctype Waiter(byte me) {
	byte n, p, q, r, state;
	bit ok, is_last, at_release, inside;

	mutex_lock();
#ifdef ITEMS
	do
	:: items == 0 && r == BY_SIGNAL -> cond_wait()
	:: r != BY_SIGNAL -> break
	:: items != 0 && r == BY_SIGNAL -> items--; break
	od;
#else
	entered++;
	cond_wait();
#endif
	mutex_unlock();
#ifndef ITEMS
	d_step {
		returned++;
		if
		:: returned == W -> mutex_gone = 1
		:: else
		fi
	};
#endif
	ndone++
}

#ifdef ITEMS
proctype Producer() {
	byte n, p, q, k, state;
	bit ok, is_last, at_release, inside, sleeping[W + 1];

	do
	:: k < S ->
		k++;
		if
		:: inside = 0
		:: inside = 1
		fi;
		mutex_lock();
		items++;
		if
		:: inside -> cond_signal(); mutex_release()
		:: else -> mutex_unlock(); cond_signal()
		fi;
		inside = 0
	:: else -> break
	od;
	ndone++
}

/* At the end of everything a waiter that is left has nothing to take and was not signalled. */
#define LOST(i) (alive[i] && (items > 0 || !WAITS(word[i])))
init {
	byte i = 1;
	atomic {
		do
		:: i <= W -> run Waiter(i); i++
		:: else -> break
		od;
		run Producer();
		i = 0
	};
	timeout;
	for (i : 1 .. W) { assert(!LOST(i)) };
	assert(!lock && !mutex)
}
#else
proctype Destroyer() {
	byte n, p, q, k, state;
	bit ok, is_last, at_release, drained, inside, sleeping[W + 1];

	(entered == W);
	mutex_lock(); /* the last of them has released the mutex, so it waits */
	if
#ifdef DUE
	:: inside = 1 /* all of it with the mutex */
#endif
	:: mutex_unlock()
	fi;
	do
	:: k < S -> k++; cond_signal()
	:: else -> break
	od;
	cond_broadcast();
	/* [cond.c:_fg_cond_destroy] */
	do
	:: cond_lock();
#ifdef MUT_NO_DRAIN
	   drained = 1;
#else
	   atomic { TOUCH; drained = (first == 0) };
	   if
	   :: drained -> atomic { TOUCH; drained = (signaled == 0) }
	   :: else
	   fi;
#endif
	   cond_unlock();
	   if
	   :: drained -> break
	   :: else
	   fi
	od;
	gone = 1;
	if
	:: inside -> mutex_release()
	:: else
	fi;
	ndone++
}

init {
	byte i = 1;
	atomic {
		do
		:: i <= W -> run Waiter(i); i++
		:: else -> break
		od;
		run Destroyer()
	};
	ndone == W + 1;
	assert(first == 0 && last == 0 && signaled == 0)
}
#endif
