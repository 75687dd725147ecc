/* SPDX-License-Identifier: MIT */
/*
 * The FlexGuard lock as it stands in src/lock: word, queue, sleepers.  Each
 * step is one access to shared memory, under sequential consistency.  Names in
 * brackets, [file:function], say which function a part mirrors; `check` tests
 * that it exists.  What is asked of the lock, and results: docs/design/lock.md.
 *
 *   N threads, K queue nodes each, R acquisitions each (R1: of thread 1)
 *   -DTIMED    an acquisition may have a deadline, which may pass at any wait
 *   -DEINTR=n  n waits in all end by a signal or a stray wake-up
 *   -DFORKED   start as the child of a fork: thread 1 holds the lock, the word
 *              has the flags and the tail the node of threads that do not exist
 *   -DRMW      a compare-and-swap that is repeated until it succeeds is one step
 *   -DMON      with the monitor and preemption; -DP=n: n preemptions in all
 *
 * What fg_decide() answers is open at each question, as are the hints about who
 * is off CPU, the end of a turn and fg_critical_path_preempted().  With MON the
 * hints are the monitor's, and fg_decide() blocks iff the count is not 0.
 * MUT_* and FG_BROKEN_* are faults that the properties below have to catch.
 */
#ifndef N
#define N 2
#endif
#ifndef K
#define K 1
#endif
#ifndef R
#define R 2
#endif
#ifndef R1
#define R1 R
#endif

/* [protocol.h:fg_node_state], and the word of [lock.h:fg_lock]. */
#define FREE    0
#define WAITING 1
#define GRANTED 2
#define HEAD    3
#define LEFT    4
#define STATE(s)   ((s) & 7)
#define WITH(s, x) (((s) & 24) | (x))
#ifdef MUT_NO_INCARNATION
#define NEXT_USE(s) WAITING
#else
#define NEXT_USE(s) ((((s) + 8) & 24) | WAITING) /* modulo 4; real ones have 29 bits */
#endif
#define ID(w)   ((w) & 7)
#define WAITERS 8
#define SPINNER 16
#define FLAGS   (WAITERS | SPINNER)
#define HANDED  255
#define OTHER_EPOCH 254 /* a tail from before a fork */
#define OWNER(n) (((n) - 1) / K + 1)

/* The lock. */
byte word, tail;
/* Queue nodes, 1..N*K; index 0 is nobody's. */
byte nx[N * K + 1], st[N * K + 1];
/* In futex_wait on the word. */
bit asleep[N + 1];

/* Ghosts: what the properties are about; no step of the lock depends on them. */
byte inside;              /* threads in the critical section */
byte heads;               /* threads that have the head's role */
byte granter[N * K + 1];  /* who has offered the role to the node, until it is claimed */
byte users = N;           /* threads that will use the lock again or are inside */
bit gone;                 /* the last user has destroyed it */
byte ndone;

#ifdef EINTR
byte interrupts;
#endif

#define RN_NONE    0
#define RN_LINKING 1
#define RN_WAITING 2
#define RN_HEAD    3
#ifdef MON
/* What [protocol.h:fg_slot] says of each thread. */
bit pending[N + 1], cs[N + 1];
byte role[N + 1], node[N + 1];
bit off[N + 1];           /* slot.state: off CPU */
bit runs[N + 1] = 1;      /* the truth about it */
bit counted[N + 1];
byte count;               /* fg_counters.dom[].p */
byte switching;           /* switches in flight */
byte preemptions;
/* Ghosts */
byte has_role;            /* whose the head's role is, offered ones included */
byte behind[N * K + 1];   /* the thread that joined behind the node */
bit owes[N + 1];          /* has released, has to wake somebody, has not yet */
bit must[N + 1];          /* may have left SPINNER set, has to take the lock or clear it */
#ifndef P
#define P 2
#endif
#define GATE provided (runs[me])
#define PUB(x) x
#define SPINS  (count == 0)
#define BLOCKS (count != 0)
#define IS_OFF(i) (off[i])
#define IS_ON(i)  (!off[i])
#define PATH_PREEMPTED (count != 0)
#else
#define GATE
#define PUB(x) skip
#define SPINS  true
#define BLOCKS true
#define IS_OFF(i) true
#define IS_ON(i)  true
#endif

#define ACQUIRED  1
#define UNDECIDED 2
#define TIMED_OUT 3
#ifdef TIMED
#define TIMED_WAIT (timed)
#else
#define TIMED_WAIT false
#endif

/* Each access to the lock's memory. */
#define TOUCH assert(!gone)

/* [atomic.h:fg_load_relaxed] and the compare-and-swaps of the same file, on the word. */
inline load_word() { TOUCH; w = word }
inline cas_word(new) {
	TOUCH;
	if
	:: word == w -> word = new; ok = 1
	:: else -> w = word; ok = 0
	fi;
	/* SPINNER without WAITERS does not occur, nor WAITERS alone on a free word. */
	assert((word & FLAGS) != SPINNER && word != WAITERS)
}

/* [lock.c:take]  ok: taken; if not, w was not free. */
#ifdef RMW
inline take(drop, set) {
	atomic {
		load_word();
		if
		:: ID(w) == 0 -> cas_word((w & (255 - (drop))) | (set) | me)
		:: else -> ok = 0
		fi;
		w = 0
	}
}
#else
inline take(drop, set) {
	atomic { load_word(); ok = 0 };
	do
	:: atomic { !ok && ID(w) == 0 -> cas_word((w & (255 - (drop))) | (set) | me) }
	:: else -> break
	od;
	w = 0
}
#endif

/* [lock.c:stand_down]  ok: got the lock after all. */
inline stand_down() {
#ifdef MUT_KEEP_SPINNER
	ok = 0;
#else
	atomic { load_word(); ok = 0 };
	do
	:: !(w & SPINNER) -> break
	:: atomic { (w & SPINNER) && ID(w) == 0 -> cas_word((w & ~SPINNER) | me) }
	   if
	   :: ok -> break
	   :: else
	   fi
	:: atomic { (w & SPINNER) && ID(w) != 0 -> cas_word(w & ~SPINNER) }
	   if
	   :: ok -> ok = 0; break
	   :: else
	   fi
	od;
#endif
	PUB(must[me] = 0);
	w = 0
}

/* Offers, takes, gives up the role of the head. */
#ifdef MON
#define ROLE_TO(i) has_role = i
#else
#define ROLE_TO(i) skip
#endif
inline role_taken() { heads++; assert(heads == 1); ROLE_TO(me) }

/* [queue.c:node_free] */
inline node_free(i) {
	atomic { assert(STATE(st[i]) == HEAD || STATE(st[i]) == LEFT); st[i] = WITH(st[i], FREE) }
}

/* [queue.c:become_head] */
inline become_head() {
	st[n] = WITH(st[n], HEAD);
	PUB(role[me] = RN_HEAD);
	head = 1
}

/* [queue.c:fg_queue_join] with [queue.c:node_alloc].  n: 0 if there is no node. */
inline queue_join() {
	if
	:: STATE(st[(me - 1) * K + 1]) == FREE -> n = (me - 1) * K + 1
#if K > 1
	:: STATE(st[(me - 1) * K + 1]) != FREE && STATE(st[(me - 1) * K + 2]) == FREE -> n = (me - 1) * K + 2
#endif
	:: else /* the nodes cannot become free in between: that only costs a sleep */
	fi;
	if
	:: n != 0 ->
		/* Nobody else refers to the node. */
		d_step { nx[n] = 0; st[n] = NEXT_USE(st[n]); granter[n] = 0; PUB(node[me] = n) };
		PUB(role[me] = RN_LINKING);
		atomic {
			TOUCH;
			at = tail;
			tail = n;
			if
			:: at == 0 || at == OTHER_EPOCH -> at = 0; role_taken()
			:: else -> PUB(behind[at] = me)
			fi
		};
		if
		:: at == 0 -> become_head()
		:: else ->
			atomic {
				assert(STATE(st[at]) != FREE);
				next = nx[at];
				nx[at] = n;
				if
				:: next == HANDED -> role_taken()
				:: else -> assert(next == 0)
				fi
			};
			if
			:: next == HANDED -> node_free(at); become_head()
			:: else -> PUB(role[me] = RN_WAITING)
			fi
		fi;
		at = 0;
		next = 0
	:: else
	fi
}

/* [queue.c:fg_queue_poll], of a node that no longer waits.  head, or n = 0: lost. */
inline queue_poll() {
	s = st[n];
	if
	:: STATE(s) == GRANTED ->
		atomic {
			if
			:: st[n] == s -> st[n] = WITH(s, HEAD); granter[n] = 0; role_taken(); head = 1
			:: else
			fi
		}
	:: else
	fi;
	s = 0;
	if
	:: head -> PUB(role[me] = RN_HEAD)
	:: else -> PUB(role[me] = RN_NONE); n = 0 /* [queue.c:node_drop] */
	fi
}

/* [queue.c:fg_queue_leave]  n = 0: out; else head. */
inline queue_leave() {
	s = st[n];
	do
	:: STATE(s) == WAITING ->
		atomic {
			if
#ifdef MUT_NO_LEFT
			:: st[n] == s -> st[n] = WITH(s, FREE); ok = 1
#else
			:: st[n] == s -> st[n] = WITH(s, LEFT); ok = 1
#endif
			:: else -> s = st[n]; ok = 0
			fi
		}
		if
		:: ok -> PUB(role[me] = RN_NONE); n = 0; break
		:: else
		fi
	:: else -> queue_poll(); break
	od;
	ok = 0;
	s = 0
}

/* [queue.c:fg_queue_hand_over]; is_off_cpu is [decide.c:fg_is_off_cpu]. */
inline hand_over() {
	at = n;
	do
	:: atomic { assert(STATE(st[at]) != FREE); next = nx[at] };
	   if
	   :: next == 0 ->
		atomic {
			TOUCH;
			if
			:: tail == at -> tail = 0; heads--; ROLE_TO(0); ok = 1
			:: else -> ok = 0
			fi
		};
		if
		:: ok -> node_free(at); break
		:: else
		fi;
#ifdef MUT_FREE_EARLY
		node_free(at);
#endif
		atomic {
			assert(STATE(st[at]) != FREE);
			if
			:: nx[at] == 0 -> nx[at] = HANDED; heads--; ROLE_TO(behind[at]); ok = 1
			:: else -> next = nx[at]; ok = 0
			fi
		};
		if
		:: ok -> break
		:: else
		fi
	   :: else
	   fi;
	   node_free(at);
	   at = next;
	   atomic { s = st[at]; assert(STATE(s) == WAITING || STATE(s) == LEFT) };
	   if
	   :: STATE(s) != WAITING
	   :: else ->
		if
#ifndef MUT_NO_SKIP
		:: IS_OFF(OWNER(at)) ->
			atomic {
				if
				:: st[at] == s -> st[at] = WITH(s, LEFT)
				:: else -> assert(STATE(st[at]) == LEFT)
				fi
			}
		:: IS_ON(OWNER(at)) ->
#else
		:: true ->
#endif
			atomic {
				if
				:: st[at] == s -> st[at] = WITH(s, GRANTED); granter[at] = me; heads--; ok = 1
				:: else -> ok = 0
				fi
			};
			if
			:: !ok
#ifdef MUT_NO_SKIP
			:: ok -> ROLE_TO(OWNER(at)); break
#else
			:: atomic { ok && IS_OFF(OWNER(at)) ->
				ok = 0 }
#ifdef MUT_NO_REVOKE
			   ROLE_TO(OWNER(at)); break
#else
			   atomic {
				if
				:: st[at] == WITH(s, GRANTED) ->
					assert(granter[at] == me); /* this grant, not a later one */
					st[at] = WITH(s, LEFT); granter[at] = 0; role_taken()
				:: else -> ok = 1
				fi
			   };
			   if
			   :: ok -> break
			   :: else
			   fi
#endif
			:: atomic { ok && IS_ON(OWNER(at)) ->
#ifdef MON
				/* The role may have gone further meanwhile. */
				if
				:: has_role == me -> has_role = OWNER(at)
				:: else
				fi
#else
				skip
#endif
			   };
			   break
#endif
			fi
		fi
	   fi
	od;
	PUB(role[me] = RN_NONE); /* [queue.c:node_drop] */
	atomic { at = 0; next = 0; s = 0; ok = 0; n = 0; head = 0 }
}

/*
 * [lock.c:spin_as_head]  `stay`: fg_decide() will say "spin" for ever, and the
 * deadline is far.  Then the thread must get on without, or it is a deadlock.
 */
inline spin_as_head() {
	do
	:: atomic {
		ID(word) == 0 || (word & FLAGS) == WAITERS || !stay || BLOCKS -> load_word() }
	   if
	   :: ID(w) == 0 ->
		take(SPINNER, 0);
		if
		:: ok -> o = ACQUIRED; PUB(must[me] = 0); break
		:: else
		fi
	   :: else ->
		if
		:: (w & FLAGS) == WAITERS -> atomic { cas_word(w | SPINNER); PUB(must[me] = ok | must[me]) }
		:: else
		fi;
		w = 0;
		if
		:: SPINS
		:: BLOCKS && !stay -> o = UNDECIDED; break
		:: TIMED_WAIT && !stay ->
			stand_down();
			if
			:: ok -> o = ACQUIRED
			:: else -> o = TIMED_OUT
			fi;
			break
		fi
	   fi
	od;
	w = 0;
	ok = 0
}

/* [lock.c:spin_in_queue] */
inline spin_in_queue() {
	do
	:: STATE(st[n]) != WAITING -> queue_poll(); break
	:: BLOCKS && !stay -> queue_leave(); break
	:: TIMED_WAIT && !stay ->
		queue_leave();
		if
		:: n == 0 -> o = TIMED_OUT
		:: else
		fi;
		break
	od
}

/* [lock.c:spin] */
inline spin() {
	choose_stay();
	queue_join();
	if
	:: n != 0 && !head -> spin_in_queue()
	:: else
	fi;
	if
	:: n != 0 && head ->
		choose_stay();
		spin_as_head();
		hand_over()
	:: else
	fi;
	stay = 0
}

inline choose_stay() {
#ifdef MON
	stay = 0
#else
	if
	:: stay = 0
	:: stay = 1
	fi
#endif
}

/* [futex.c:fg_futex_wait]  ok: woken, which a timeout or a signal never hides. */
inline futex_wait(expected) {
	atomic {
		TOUCH;
		if
		:: word == (expected) -> asleep[me] = 1
		:: else
		fi;
		ok = asleep[me];
		w = 0
	}
	if
	:: ok ->
		if
		:: !asleep[me] /* woken */
#ifdef TIMED
#ifdef MUT_TIMEOUT_HIDES
		:: atomic { TIMED_WAIT -> asleep[me] = 0; o = TIMED_OUT; ok = 0 }
#else
		:: atomic { TIMED_WAIT && asleep[me] -> asleep[me] = 0; o = TIMED_OUT; ok = 0 }
#endif
#endif
#ifdef EINTR
		:: atomic { asleep[me] && interrupts < EINTR -> asleep[me] = 0; interrupts++;
			if
			:: ok = 0
			:: ok = 1
			fi }
#endif
		fi
	:: else
	fi
}

/* [lock.c:sleep_on] */
#ifdef MUT_SLEEPER_KEEPS
#define MARKED(w) ((w) | WAITERS)
#else
#define MARKED(w) (((w) & ~SPINNER) | WAITERS)
#endif
inline sleep_on() {
	atomic { load_word() };
	do
	:: ID(w) == 0 ->
		take(SPINNER, 0);
		if
		:: ok -> o = ACQUIRED; PUB(must[me] = 0); break
		:: else -> atomic { load_word() }
		fi
	:: ID(w) != 0 && w == MARKED(w) -> break
	:: ID(w) != 0 && w != MARKED(w) ->
		atomic {
			next = w;
			cas_word(MARKED(w));
			if
			:: ok -> w = MARKED(next)
			:: else
			fi;
			next = 0
		}
		if
		:: ok -> break
		:: else
		fi
	od;
	if
	:: o != ACQUIRED ->
		PUB(must[me] = 0);
		futex_wait(w);
#ifndef MUT_NO_RESET
		if
		:: ok ->
			atomic { load_word() };
			do
			:: ID(w) == 0 ->
				take(0, WAITERS);
				if
				:: ok -> o = ACQUIRED; break
				:: else -> atomic { load_word() }
				fi
			:: ID(w) != 0 && (w & WAITERS) -> break
			:: ID(w) != 0 && !(w & WAITERS) ->
				atomic { cas_word(w | WAITERS) }
				if
				:: ok -> break
				:: else
				fi
			od
		:: else
		fi
#endif
	:: else
	fi;
	atomic { w = 0; ok = 0 }
}

/* [futex.c:fg_futex_wake] of one sleeper, any; an address, not an access. */
inline futex_wake() {
	atomic {
		if
		:: asleep[1] -> asleep[1] = 0
#if N > 1
		:: asleep[2] -> asleep[2] = 0
#endif
#if N > 2
		:: asleep[3] -> asleep[3] = 0
#endif
		:: else
		fi;
		PUB(owes[me] = 0)
	}
}

/* [lock.c:release]  w: what the word was.  [lock.c:turn_is_over] is open. */
#ifdef MUT_WAKES_NOBODY
#define KEEPS(w) ((w) & WAITERS) /* sleepers sleep on although nobody spins */
#else
#define KEEPS(w) (((w) & FLAGS) == FLAGS)
#endif
inline release() {
	do
	:: atomic {
		next = w;
		if
		:: KEEPS(w) -> at = w & FLAGS
		:: else -> at = 0
		fi;
		cas_word(at);
		at = 0;
		if
		:: ok -> w = next; PUB(owes[me] = ((next & FLAGS) == WAITERS))
		:: else
		fi;
		next = 0
	   }
	   if
	   :: ok -> break
	   :: else
	   fi
	od
}

/* [lock.c:fg_lock_slow] */
inline lock_slow() {
#ifdef MUT_BARGE_CLEARS
	take(FLAGS, 0);
#else
	take(0, 0);
#endif
	if
	:: ok -> o = ACQUIRED
	:: else -> o = UNDECIDED
	fi;
	ok = 0;
	do
	:: o == UNDECIDED ->
		if
		:: SPINS -> spin()
		:: true /* fg_decide() says "block", or give_way */
		fi;
		if
		:: o == UNDECIDED -> sleep_on()
		:: else
		fi
	:: else -> break
	od
}

/* [lock.h:fg_lock_until] with [lock.h:fg_announce] and [lock.h:fg_take_free] */
inline lock_until() {
	PUB(pending[me] = 1);
	atomic {
		TOUCH;
#ifdef FG_BROKEN_LOCK
		word = me; o = ACQUIRED
#else
		if
		:: word == 0 -> word = me; o = ACQUIRED
		:: else
		fi
#endif
	};
	if
	:: o != ACQUIRED -> lock_slow()
	:: else
	fi;
	if
	:: o == TIMED_OUT -> PUB(pending[me] = 0)
	:: else
	fi
}

/* [lock.h:fg_unlock], [lock.c:fg_unlock_slow], [lock.c:wake_one] */
inline unlock() {
	atomic { load_word(); ok = 0 };
	if
	:: w == me -> atomic { cas_word(0) }
	:: else
	fi;
	if
	:: !ok ->
		atomic { load_word(); assert(ID(w) == me) };
		PUB(cs[me] = ((w & WAITERS) -> 1 : 0));
		release();
#ifdef MUT_TOUCH
		TOUCH;
#endif
#ifndef FG_BROKEN_WAKE
		if
		:: (w & WAITERS) && !KEEPS(w) -> futex_wake()
#ifdef MON
		:: KEEPS(w) && PATH_PREEMPTED -> futex_wake()
#else
		:: KEEPS(w) -> futex_wake()
#endif
		:: !(w & WAITERS) || KEEPS(w)
		fi;
#endif
		PUB(cs[me] = 0)
	:: else
	fi;
	PUB(pending[me] = 0);
	atomic { w = 0; ok = 0 }
}

proctype Thread(byte me) GATE {
	byte it, o, w, n, at, next, s;
	bit ok, head, stay, last;
#ifdef TIMED
	bit timed;
#endif
#ifdef FORKED
	if
	:: me == 1 -> goto cs_
	:: else
	fi;
#endif
	do
	:: it < (me == 1 -> R1 : R) ->
		it++;
#ifdef TIMED
		if
		:: timed = 0
		:: timed = 1
		fi;
#endif
		lock_until();
		if
		:: o == TIMED_OUT ->
			if
			:: it == (me == 1 -> R1 : R) -> users--
			:: else
			fi
		:: else ->
#ifdef FORKED
cs_:
#endif
			atomic {
				inside++;
				assert(inside == 1);
				if
				:: it == (me == 1 -> R1 : R) -> users--; last = (users == 0)
				:: else
				fi
			};
			inside--;
			unlock();
			if
			:: last -> gone = 1 /* whoever knows to be the last may destroy it */
			:: else
			fi
		fi;
		o = 0
	:: else -> break
	od;
	atomic { it = 0; last = 0;
#ifdef TIMED
		timed = 0;
#endif
		ndone++ }
}

#ifdef MON
/*
 * [monitor.bpf.c:switched_out], [monitor.bpf.c:is_critical], [monitor.bpf.c:switched_in]
 * on the CPU that the thread leaves, so the thread itself stands still.
 */
#define CRITICAL(i) (cs[i] || (pending[i] && ID(word) == i) || role[i] == RN_LINKING || role[i] == RN_HEAD || \
	(role[i] == RN_WAITING && (STATE(st[node[i]]) == GRANTED || STATE(st[node[i]]) == HEAD)))

proctype Cpu(byte i) {
	bit c;
	do
	:: atomic { preemptions < P && runs[i] && !asleep[i] -> runs[i] = 0; switching++; preemptions++ };
#ifdef MUT_NO_FENCE
	   c = CRITICAL(i);
	   off[i] = 1;
#else
	   off[i] = 1;
	   c = CRITICAL(i);
#endif
	   atomic {
		if
		:: c -> count++; counted[i] = 1; c = 0
		:: else
		fi;
		switching--
	   };
	   /* off CPU, for as long as it likes */
	   atomic {
		switching++;
		if
		:: counted[i] -> count--; counted[i] = 0
		:: else
		fi
	   };
	   off[i] = 0;
	   atomic { runs[i] = 1; switching-- }
	:: break
	od
}

#define UNSEEN(i) (!runs[i] && !counted[i])
#if defined(ASK_WAKER)
#define BAD(i) (UNSEEN(i) && owes[i])
#elif defined(ASK_SPINNER)
#define BAD(i) (UNSEEN(i) && must[i] && word == FLAGS && heads == 0 && has_role == 0)
#else
#define BAD(i) (UNSEEN(i) && (ID(word) == i || has_role == i))
#endif
active proctype Watch() {
end:	atomic { count == 0 && switching == 0 && (BAD(1) || BAD(2)
#if N > 2
		|| BAD(3)
#endif
		) -> assert(false) }
}
#endif

init {
	byte i = 1;

	atomic {
#ifdef FORKED
		word = 1 | FLAGS;
		tail = OTHER_EPOCH;
#endif
		do
		:: i <= N ->
			run Thread(i);
#ifdef MON
			run Cpu(i);
#endif
			i++
		:: else -> break
		od
	};
	ndone == N;
	/* Quiet at the end. */
	d_step {
#ifdef FORKED
		assert(word == 0 || word == FLAGS);
		assert(tail == 0 || tail == OTHER_EPOCH);
#else
		assert(word == 0);
		assert(tail == 0);
#endif
		assert(heads == 0);
		for (i : 1 .. N * K) { assert(STATE(st[i]) == FREE) };
		for (i : 1 .. N) { assert(!asleep[i]) }
	}
}
