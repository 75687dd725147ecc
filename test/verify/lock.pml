/* SPDX-License-Identifier: MIT */
/*
 * The FlexGuard lock as it stands in src/lock: word, queue, sleepers.  Each
 * step is one access to shared memory, under sequential consistency.  Names in
 * brackets, [file:function], say which function a part mirrors; `check` tests
 * that it exists.  What is asked of the lock, and results: docs/design/lock.md.
 *
 *   N threads, K queue nodes each, R acquisitions each (R1: of thread 1)
 *   -DTIMED    an acquisition may have a deadline, which may pass at any wait;
 *              -DTIMERS=n: of the first n threads only
 *   -DEINTR=n  n waits in all end by a signal or a stray wake-up
 *   -DFORKED   start as the child of a fork: thread 1 holds the lock, the word
 *              has the flags and the tail the node of threads that do not exist
 *   -DRMW      a compare-and-swap that is repeated until it succeeds is one step
 *   -DSTANDBY     a head may hand its role over before it has the lock
 *   -DUNASKED  no head asks for the lock (HANDOFF), and nobody behind it looks at the word
 *   -DUNDESIGNATED nobody becomes the designated waiter, as with the policy "block"
 *   -DCHECK    the periodic check of all but the designated waiter; without, it is taken to be for
 *              ever away
 *   -DSTOP     any one thread is stopped for ever, at any instruction: "Stopped threads" below
 *   -DFAIR     two threads: each release that wakes ends a turn, and a thread that yields waits for
 *              as long as the other needs.  Then the woken thread has the lock before the one that
 *              woke it has it again
 *   -DMON      with the monitor and preemption; -DP=n: n preemptions in all
 *
 * What fg_decide() answers is open at each question, and so are the hints about
 * who is off CPU, the lengths of turns and of sleeps, and whether a release
 * finds the lock busy.  With MON the hint about CPUs is the monitor's.
 * -DLAX asks nothing of the flags of the word, so that a fault has to show in
 * a thread that is never woken.  -DASK_SPINNER and -DASK_WAKER ask for
 * more than is promised: docs/design/lock.md, "Not proved".
 *
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

/* [protocol.h:fg_node_state], and the word and tail of [lock.h:fg_lock]. */
#define FREE    0
#define WAITING 1
#define GRANTED 2
#define HEAD    3
#define LEFT    4
#define ID(w)   ((w) & 7)
#define WAITERS 8
#define SPINNER 16
#define DESIGNATED 32
#define HANDOFF 64
#define FLAGS   (WAITERS | SPINNER | DESIGNATED | HANDOFF)
#define HANDED  255
#define OTHER_EPOCH 254 /* a tail from before a fork */
#define OWNER(n) (((n) - 1) / K + 1)

/* The lock. */
byte word, tail;
/* Queue nodes, 1..N*K; index 0 is nobody's. */
byte nx[N * K + 1], st[N * K + 1];
/*
 * Whose offer a GRANTED node has.  Stands for the incarnation number: 29 bits
 * are taken not to come round while one hand-over looks at a node.  A few bits
 * do come round, within the four critical sections of three threads.
 */
byte granter[N * K + 1];
/*
 * fg_lock.wakes has not changed since the thread read it.  All that is ever
 * asked of the count; 32 bits are taken not to come round while a thread is on
 * its way to sleep.
 */
bit same[N + 1];
/* In futex_wait on the count. */
bit asleep[N + 1];

/*
 * Ghost variables (Owicki, Gries 1976): what the properties are about; no step of the lock depends
 * on them.
 */
byte inside;              /* threads in the critical section */
byte heads;               /* threads that have the head's role */
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
byte count;               /* fg_counters.dom[].preempted */
byte switching;           /* switches in flight */
byte preemptions;
/* Ghost variables */
byte has_role;            /* whose the head's role is, offered ones included */
byte behind[N * K + 1];   /* the thread that joined behind the node */
bit owes[N + 1];
bit spinner[N + 1];       /* has set SPINNER, has neither taken the lock nor cleared it yet */
#ifndef P
#define P 2
#endif
#define GATE provided (runs[me])
#define PUB(x) x
#define GHOST_OF(x) x
#define IS_OFF(i) (off[i])
#define IS_ON(i)  (!off[i])
#else
#ifdef STOP
#define GATE provided (runs[me])
#define GHOST_OF(x) x
/*
 * Stopped threads.  In the end each thread that is not stopped is through, or the stopped one holds
 * the lock.  Without CHECK there is more that only the periodic check finds (EXCUSED): the stopped
 * one has cleared WAITERS and has not woken anybody yet; it was woken and has not set WAITERS
 * again; it is the designated waiter (DESIGNATED stands, and no other one is there whose time limit
 * would pass).
 */
byte stopped;
bit runs[N + 1] = 1;
bit through[N + 1];
bit owes[N + 1];          /* has released, has to wake somebody, has not yet */
bit woken[N + 1];
#ifdef CHECK
#define EXCUSED false
#else
#define EXCUSED (owes[stopped] || woken[stopped] || (word & DESIGNATED))
#endif
#else
#define GATE
#define GHOST_OF(x) skip
#endif
#define PUB(x) skip
#define IS_OFF(i) true
#define IS_ON(i)  true
#endif

#ifdef FAIR
bit woken[N + 1];
#define COMES_FIRST assert(!over || !woken[3 - me]); over = 0;
#else
#define COMES_FIRST
#endif

#ifndef FORKED_FLAGS
#define FORKED_FLAGS FLAGS
#endif
#ifdef UNDESIGNATED
#define NEVER_DESIGNATED true
#else
#define NEVER_DESIGNATED false
#endif

#define ACQUIRED  1
#define UNDECIDED 2
#define SLEEP_AGAIN 3
#define TIMED_OUT 4
#ifndef TIMERS
#define TIMERS N
#endif
#ifdef TIMED
#define TIMED_WAIT (timed)
#else
#define TIMED_WAIT false
#endif

#if defined(MUT_WAKES_NOBODY)
#define LOOKED_AFTER(w) true /* sleepers sleep on although nobody looks after the lock */
#elif defined(MUT_SPINNER_IS_ENOUGH)
#define LOOKED_AFTER(w) ((w) & (SPINNER | DESIGNATED)) /* the head may be stopped */
#else
#define LOOKED_AFTER(w) ((w) & DESIGNATED)
#endif

/* Each access to the lock's memory. */
#define TOUCH assert(!gone)

/*
 * No SPINNER without WAITERS; on a free word no WAITERS without somebody who looks after it: a
 * thread that has just set it, or cleared what stood for itself, awake, looks at the word next.
 */
byte setting;             /* such threads */
#ifdef LAX
#define SANE skip
#else
#define SANE assert((!(word & SPINNER) || (word & WAITERS)) && \
	(ID(word) != 0 || !(word & WAITERS) || LOOKED_AFTER(word) || setting))
#endif

/* [atomic.h:fg_load_relaxed] and the compare-and-swaps of the same file, on the word. */
inline load_word() { TOUCH; w = word }
inline cas_word(new) {
	TOUCH;
	if
	:: word == w -> word = new; ok = 1
	:: else -> w = word; ok = 0
	fi;
	SANE
}

/* [lock_paths.h:take]  ok: taken; if not, w was not free. */
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

/* [lock_paths.h:barge]  ok: taken. */
inline barge(drop) {
	atomic { load_word(); ok = 0 };
	if
	:: !(w & HANDOFF) && ID(w) == 0 -> take(drop, 0)
	:: else -> w = 0
	fi
}

/* [atomic.h:fg_or_relaxed], [atomic.h:fg_and_relaxed] and their likes, of the word. */
inline or_word(bits) { atomic { TOUCH; word = word | (bits); SANE } }
inline and_word(bits) { atomic { TOUCH; word = word & (bits); SANE } }

/* [attempt.h:take_over] */
#ifdef MUT_KEEP_OBLIGATION
#define DROPPED 0
#else
#define DROPPED obligation
#endif
inline take_over() {
	take(DROPPED | HANDOFF, 0);
	if
	:: ok -> obligation = 0; PUB(spinner[me] = 0)
	:: else
	fi
}

/* [lock_wait.c:drop_obligation]  ok: got the lock after all. */
inline drop_obligation() {
#ifdef MUT_STAYS_OBLIGED
	ok = 0;
#else
	atomic { load_word(); ok = 0; s = obligation; obligation = 0 };
	if
	:: w & s ->
#ifdef MUT_DROPS_WAITERS
		atomic { setting++; and_word(255 - s - (word & WAITERS)) };
#else
		atomic { setting++; and_word(255 - s) };
#endif
		take_over();
		setting--
	:: else
	fi;
#endif
	atomic { obligation = 0; PUB(spinner[me] = 0); s = 0; w = 0 }
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
	atomic { assert(st[i] == HEAD || st[i] == LEFT); st[i] = FREE }
}

/* [queue.c:become_head] */
inline become_head() {
	st[n] = HEAD;
	PUB(role[me] = RN_HEAD);
	head = 1
}

/* [queue.c:_fg_queue_join] with [queue.c:node_alloc].  n: 0 if there is no node. */
inline queue_join() {
	if
	:: st[(me - 1) * K + 1] == FREE -> n = (me - 1) * K + 1
#if K > 1
	:: st[(me - 1) * K + 1] != FREE && st[(me - 1) * K + 2] == FREE -> n = (me - 1) * K + 2
#endif
	:: else /* the nodes cannot become free in between: that only costs a sleep */
	fi;
	if
	:: n != 0 ->
		/* Nobody else refers to the node. */
		d_step { nx[n] = 0; st[n] = WAITING; PUB(node[me] = n) };
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
				assert(st[at] != FREE);
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

/* [queue.c:_fg_queue_poll], of a node that no longer waits.  head, or n = 0: lost. */
inline queue_poll() {
	s = st[n];
	if
	:: s == GRANTED ->
		atomic {
			if
			:: st[n] == s -> st[n] = HEAD; granter[n] = 0; role_taken(); head = 1
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

/* [queue.c:_fg_queue_leave]  n = 0: out; else head. */
inline queue_leave() {
	s = st[n];
	do
	:: s == WAITING ->
		atomic {
			if
#ifdef MUT_NO_LEFT
			:: st[n] == s -> st[n] = FREE; ok = 1
#else
			:: st[n] == s -> st[n] = LEFT; ok = 1
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

/* [queue.c:_fg_queue_hand_over] with [queue.c:grant]; is_off_cpu is [decide.c:fg_is_off_cpu]. */
inline hand_over() {
	at = n;
	do
	:: atomic { assert(st[at] != FREE); next = nx[at] };
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
			assert(st[at] != FREE);
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
	   atomic { s = st[at]; assert(s == WAITING || s == LEFT) };
	   if
	   :: s != WAITING
	   :: else ->
		if
#ifndef MUT_NO_SKIP
		:: IS_OFF(OWNER(at)) ->
			atomic {
				if
				:: st[at] == s -> st[at] = LEFT
				:: else -> assert(st[at] == LEFT)
				fi
			}
		:: IS_ON(OWNER(at)) ->
#else
		:: true ->
#endif
			atomic {
				if
				:: st[at] == s ->
					st[at] = GRANTED; granter[at] = me; heads--; ok = 1
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
#ifdef MUT_NO_INCARNATION
				:: st[at] == GRANTED ->
					assert(granter[at] == me); /* this offer, not a later one */
#else
				:: st[at] == GRANTED && granter[at] == me ->
#endif
					st[at] = LEFT; granter[at] = 0; role_taken()
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
 * [lock_spin.c:spin_as_head]  `stay`: fg_decide() will say "spin" for ever, and the
 * deadline is far.  Then the thread must get on without, or it is a deadlock.  `due`: it has asked
 * for the lock; others may have taken HANDOFF from it.  [queue.c:_fg_queue_look_behind] reads what
 * hand_over() reads, earlier: behind[] there.
 *
 * STANDBY: one that has somebody behind it may hand its role over while it waits
 * [lock_spin.c:become_standby], and goes on as the standby.  What it is told [lock_spin.c:tell] is
 * a hint: when it looks at the word [lock_spin.c:look], [lock_spin.c:look_as_told],
 * [lock_spin.c:take_told] is open.
 */
#ifdef MUT_KEEPS_HANDOFF
#define HANDOFF_DONE skip
#else
#define HANDOFF_DONE if :: due -> and_word(255 - HANDOFF) :: else fi
#endif
#ifdef MUT_STANDBY_STAYS
#define HEIRS_NODE it_was
#else
#define HEIRS_NODE 0
#endif
inline spin_as_head() {
	if
	:: due = 0
#ifndef UNASKED
	:: due = 1
#endif
	fi;
	do
	:: atomic {
		ID(word) == 0 || (word & (WAITERS | SPINNER)) == WAITERS || !stay ||
		(due && !(word & HANDOFF)) -> load_word() }
	   if
	   :: ID(w) == 0 ->
		take(DROPPED | HANDOFF, 0);
		if
		:: ok -> obligation = 0; PUB(spinner[me] = 0); o = ACQUIRED; break
		:: else
		fi
	   :: else ->
		if
		:: (w & (WAITERS | SPINNER)) == WAITERS ->
			atomic {
				cas_word((w & (255 - obligation)) | SPINNER);
				if
				:: ok -> obligation = SPINNER; PUB(spinner[me] = 1)
				:: else
				fi
			}
		:: else
		fi;
		if
		:: due && !(w & HANDOFF) -> or_word(HANDOFF)
		:: else
		fi;
		w = 0;
		if
		:: true /* ask again */
		:: !stay -> o = UNDECIDED; break
		:: TIMED_WAIT && !stay -> o = TIMED_OUT; break
		fi
	   fi
#ifdef STANDBY
	:: n != 0 && nx[n] != 0 && nx[n] != HANDED ->
		it_was = n;
		hand_over();
		n = HEIRS_NODE;
		it_was = 0;
		PUB(role[me] = RN_HEAD)
#endif
	od;
	if
	:: o != ACQUIRED -> HANDOFF_DONE
	:: else
	fi;
	w = 0;
	ok = 0;
	due = 0
}

/* [lock_spin.c:spin_in_queue]; its rare look [lock_spin.c:take_in_queue] */
inline spin_in_queue() {
	do
	:: st[n] != WAITING -> queue_poll(); break
#ifndef UNASKED
	:: !stay ->
		/* a rare look: free, perhaps promised to a head that does not come */
#ifndef MUT_WAITS_ON
		PUB(role[me] = RN_LINKING);
#endif
		take(obligation | HANDOFF, 0);
		if
		:: ok -> obligation = 0; o = ACQUIRED; queue_leave(); break
		:: else -> PUB(role[me] = RN_WAITING)
		fi
#endif
	:: !stay -> queue_leave(); break
	:: TIMED_WAIT && !stay ->
		queue_leave();
		if
		:: n == 0 -> o = TIMED_OUT
		:: else
		fi;
		break
	od
}

/* [lock_spin.c:_fg_lock_spin] */
inline spin() {
	choose_stay();
	queue_join();
	if
	:: n != 0 && !head -> spin_in_queue()
	:: else
	fi;
	if
	:: n != 0 && head ->
		if
		:: o != ACQUIRED -> choose_stay(); spin_as_head()
		:: else
		fi;
		if
		:: n != 0 -> hand_over()
		:: else -> PUB(role[me] = RN_NONE)
		fi
	:: else
	fi;
	stay = 0
}

inline choose_stay() {
#if defined(MON) || defined(STOP) /* no wait is for ever */
	stay = 0
#else
	if
	:: stay = 0
	:: stay = 1
	fi
#endif
}

/* Time limits of a sleep. */
#define NONE     0
/* a short sleep, the designated waiter's check, or part of the way to a deadline */
#define SOON     1
#define PARENTS  2 /* time for a designated waiter that may be in the parent */
#define DEADLINE 3
#define PERIODIC 4 /* the others' check */

/*
 * [futex.c:fg_futex_wait]  ok: woken, which no timeout and no signal hides.
 * limit: NONE unless the time is over.
 */
inline futex_wait() {
	atomic {
		TOUCH;
		if
		:: same[me] -> asleep[me] = 1; ok = 1
		:: else -> limit = NONE; ok = 0
		fi;
		same[me] = 0;
		w = 0
	}
	if
	:: ok ->
		if
		:: atomic { !asleep[me] -> limit = NONE } /* woken */
#ifdef MUT_TIMEOUT_HIDES
		:: atomic { limit != NONE -> asleep[me] = 0; ok = 0 }
#else
		:: atomic { limit != NONE && asleep[me] -> asleep[me] = 0; ok = 0 }
#endif
#ifdef EINTR
		:: atomic { asleep[me] && interrupts < EINTR ->
			asleep[me] = 0; interrupts++; limit = NONE;
			if
			:: ok = 0
			:: ok = 1
			fi }
#endif
		fi
	:: else
	fi
}

#ifdef MUT_SLEEPER_KEEPS
#define UNSPUN(w) (w)
#else
#define UNSPUN(w) ((w) & (255 - SPINNER))
#endif

/* [attempt.h:take_read]  ok: taken; if not, w is held. */
inline take_read() {
	do
	:: atomic { !ok && ID(w) == 0 ->
		cas_word((w & (255 - (obligation | SPINNER | HANDOFF))) | me) }
	:: else -> break
	od
}

/* [lock_wait.c:may_leave_free] */
#ifdef MUT_LEAVES_FREE
#define MAY_LEAVE_FREE(w) (makes_room)
#else
#define MAY_LEAVE_FREE(w) (makes_room && !obligation && LOOKED_AFTER(w) && ((w) & WAITERS))
#endif

#ifdef RMW
#define STEP atomic
#else
#define STEP
#endif

/* The lock is held: bit by bit, and a last look.  ok: it has become free, and is taken. */
inline set_bits() {
	STEP {
		if
		:: !(w & WAITERS) -> atomic { setting++; or_word(WAITERS) }
		:: else -> setting++
		fi;
		if
		:: may && !(w & DESIGNATED) ->
			atomic {
				if
				:: !(word & DESIGNATED) -> s = DESIGNATED
				:: else
				fi;
				or_word(DESIGNATED)
			}
		:: may && !(w & DESIGNATED) /* the lock is not kept busy */
		:: else
		fi;
		atomic { load_word() };
#ifdef MUT_DESIGNATED_STAYS
		if
		:: !may -> s = 0
		:: else
		fi;
		if
		:: (w & (255 - UNSPUN(255))) ->
			and_word(UNSPUN(255)); atomic { load_word() }
		:: else
		fi;
#else
		if
		:: !may && (w & ((255 - UNSPUN(255)) | s)) ->
			and_word(UNSPUN(255) & (255 - s)); s = 0; atomic { load_word() }
		:: may && (w & (255 - UNSPUN(255))) ->
			and_word(UNSPUN(255)); atomic { load_word() }
		:: else ->
			if
			:: !may -> s = 0
			:: else
			fi
		fi;
#endif
		atomic { obligation = s; ok = 0 };
		take_read();
		setting--
	}
}

/*
 * [lock_wait.c:prepare_sleep]  `may`: may be the designated waiter.  With o == UNDECIDED, w is
 * the word as it was then.
 */
inline read_wakes() { atomic { TOUCH; same[me] = 1 } }
inline prepare_sleep() {
#ifndef MUT_READ_LATE
	read_wakes();
#endif
	atomic { load_word(); s = obligation & DESIGNATED; ok = 0 };
	if
	:: MAY_LEAVE_FREE(w) /* as if it had slept on before the release */
	:: else ->
		take_read();
		if
		:: !ok -> set_bits()
		:: else
		fi
	fi;
	atomic {
		if
		:: ok -> o = ACQUIRED; obligation = 0
		:: else
		fi;
		ok = 0;
		s = 0
	};
#ifdef MUT_READ_LATE
	read_wakes();
#endif
	PUB(spinner[me] = 0)
}


/* [lock_wait.c:retake]  ok: has the lock. */
inline retake() {
#ifdef MUT_NO_RESET
	ok = 0
#else
	atomic { load_word(); ok = 0 };
	do
	:: atomic { !ok && ID(w) == 0 ->
		cas_word((w & (255 - (obligation | HANDOFF))) | WAITERS | me) }
	:: else -> break
	od;
	if
	:: ok -> obligation = 0
	:: !ok && !(w & WAITERS) ->
		atomic { setting++; or_word(WAITERS) };
		take_over();
		setting--
	:: else
	fi
#endif
}

/*
 * [lock_wait.c:sleep_on] with [lock_wait.c:time_limit] and [lock_wait.c:time_is_up].
 * [lock_wait.c:reason_to_look], [lock_wait.c:note_owner], the number of short sleeps and
 * [decide.c:fg_has_room] are open; [lock_wait.c:found_free] is take_over().
 */
inline sleep_on() {
	o = UNDECIDED;
	if
	:: may = 0
	:: !NEVER_DESIGNATED -> may = 1
	fi;
	prepare_sleep();
	makes_room = 0;
	if
	:: o == UNDECIDED ->
		if
		:: TIMED_WAIT -> limit = DEADLINE
		:: TIMED_WAIT -> limit = SOON
		:: may && (w & DESIGNATED) -> limit = SOON /* a short sleep */
		:: (obligation & DESIGNATED) -> limit = SOON
		:: !TIMED_WAIT && !(obligation & DESIGNATED) ->
#if defined(FORKED)
			limit = ((w & DESIGNATED) -> PARENTS : NONE)
#elif defined(CHECK) && !defined(MUT_NO_CHECK)
			limit = PERIODIC
#else
			skip
#endif
		fi;
		futex_wait();
		if
		:: ok ->
			retake();
#if defined(STOP) || defined(FAIR)
			woken[me] = 0;
#endif
			if
			:: ok -> o = ACQUIRED
			:: else
			fi
		:: !ok && limit == DEADLINE -> o = TIMED_OUT
		:: !ok && limit == PARENTS ->
			obligation = DESIGNATED;
			drop_obligation();
			if
			:: ok -> o = ACQUIRED
			:: else
			fi
		:: !ok && limit == SOON && !obligation -> /* no CPU to spare */
			makes_room = 1; o = SLEEP_AGAIN
		:: !ok && (limit == SOON || limit == PERIODIC) ->
			take_over();
			if
			:: ok -> o = ACQUIRED
			:: !ok && limit == SOON
			:: !ok -> o = SLEEP_AGAIN
			fi
		:: !ok && limit == NONE
		fi
	:: else
	fi;
	atomic { w = 0; ok = 0; may = 0; limit = NONE; same[me] = 0 }
}

/* [futex.c:fg_futex_wake] of one sleeper, any; an address, not an access. */
#if defined(STOP) || defined(FAIR)
#define AWAKE(i) asleep[i] = 0; woken[i] = 1
#else
#define AWAKE(i) asleep[i] = 0
#endif
inline futex_wake() {
	atomic {
		if
		:: asleep[1] -> AWAKE(1)
#if N > 1
		:: asleep[2] -> AWAKE(2)
#endif
#if N > 2
		:: asleep[3] -> AWAKE(3)
#endif
#if N > 3
		:: asleep[4] -> AWAKE(4)
#endif
		:: else
		fi;
		GHOST_OF(owes[me] = 0)
	}
}

/*
 * [lock_release.c:release]  wake: a sleeper has to be woken.  [lock_release.c:leave_asleep] is
 * open; `asked`: it has been asked, `leave`: it said yes.
 */
inline count_up() {
	atomic {
		TOUCH;
		same[1] = 0;
#if N > 1
		same[2] = 0;
#endif
#if N > 2
		same[3] = 0;
#endif
#if N > 3
		same[4] = 0;
#endif
	}
}
inline release() {
	do
	:: atomic { !(w & WAITERS) -> cas_word(w & (DESIGNATED | HANDOFF)) }
	   if
	   :: ok -> break
	   :: else
	   fi
	:: (w & WAITERS) ->
		atomic {
			if
			:: !asked && LOOKED_AFTER(w) ->
				asked = 1;
				if
				:: leave = 1
				:: leave = 0
				fi
			:: else
			fi
		}
		if
		:: leave && LOOKED_AFTER(w) ->
			atomic { cas_word(w & FLAGS) }
			if
			:: ok -> break
			:: else
			fi
		:: else ->
#ifdef MUT_COUNT_FIRST
			count_up();
#endif
			atomic {
				cas_word(w & (7 | DESIGNATED | HANDOFF));
				if
				:: ok ->
					w = w & (7 | DESIGNATED | HANDOFF); wake = 1;
					GHOST_OF(owes[me] = 1)
				:: else
				fi
			}
#ifndef MUT_COUNT_FIRST
			if
			:: ok -> count_up()
			:: else
			fi
#endif
		fi
	od
}

/* [lock_wait.c:wait_for] */
inline lock_contended() {
#ifdef MUT_BARGE_CLEARS
	barge(FLAGS);
#else
	barge(0);
#endif
	if
	:: ok -> COMES_FIRST o = ACQUIRED
	:: !ok -> o = UNDECIDED
#if !defined(MON) && !defined(STOP)
	:: !ok -> /* turn_over */
#ifndef FG_BROKEN_WAKE
		futex_wake();
#endif
		o = SLEEP_AGAIN
#endif
	fi;
	ok = 0;
	do
	:: o == UNDECIDED || o == SLEEP_AGAIN ->
		if
		:: o == UNDECIDED -> spin()
		:: true /* SLEEP_AGAIN, or fg_decide() says "block" */
		fi;
		if
		:: o == UNDECIDED || o == SLEEP_AGAIN -> sleep_on()
		:: else
		fi
	:: else -> break
	od;
	if
	:: o == TIMED_OUT ->
		drop_obligation();
		if
		:: !ok -> take_over()
		:: else
		fi;
		if
		:: ok -> o = ACQUIRED; ok = 0
		:: else
		fi
	:: else
	fi;
	obligation = 0
}

/*
 * [lock.h:_fg_lock_fast] with [lock.h:_fg_take_free], [lock.c:barge_or_wait],
 * [held.h:announce].  The general path begins with a take(), lock_contended here.
 */
inline fast() {
	atomic {
		TOUCH;
#ifdef FG_BROKEN_LOCK
		word = me; o = ACQUIRED
#else
		if
		:: word == 0 -> word = me; COMES_FIRST o = ACQUIRED
		:: else
		fi
#endif
	}
}

/*
 * [lock.c:yield_to_woken]  Only a delay: nothing where all steps may take any time.  With FAIR its
 * time limit, `timeout`, passes when nobody else can get on; that one who came has gone again ends
 * it too, after what is asserted.  [lock_release.c:turn_is_over] is open, with FAIR always true.
 */
#if defined(FAIR) && !defined(MUT_BARGES) || defined(MUT_YIELDS_FOREVER)
inline yield_to_woken() {
	if
	:: over ->
		if
		:: ID(word) != 0
#ifndef MUT_YIELDS_FOREVER
		:: timeout
#endif
		fi
	:: else
	fi
}
#define YIELD_TO_WOKEN yield_to_woken();
#else
#define YIELD_TO_WOKEN
#endif

inline lock_any() {
	YIELD_TO_WOKEN
	PUB(pending[me] = 1);
	fast();
	if
	:: o != ACQUIRED -> lock_contended()
	:: else
	fi;
	if
	:: o == TIMED_OUT -> PUB(pending[me] = 0)
	:: else
	fi
}

#if defined(FAIR) || defined(MUT_YIELDS_FOREVER)
#define TURN_OVER over = 1;
#else
#define TURN_OVER
#endif

/*
 * [lock.h:_fg_unlock_fast], [lock_release.c:release_and_wake], [lock_paths.h:wake_one],
 * [held.h:publish]
 */
inline unlock() {
	if
	:: atomic { w = me; cas_word(0) }
	:: ok = 0 /* the general path at once: one of several locks, or taken under contention */
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
		:: wake -> TURN_OVER futex_wake()
		:: else
		fi;
#endif
		PUB(pending[me] = 0);
		PUB(cs[me] = 0)
	:: else -> PUB(pending[me] = 0)
	fi;
	atomic { w = 0; ok = 0; wake = 0; asked = 0; leave = 0 }
}

proctype Thread(byte me) GATE {
	byte it, o, w, n, at, next, s, obligation, limit;
#ifdef STANDBY
	byte it_was;
#endif
	bit ok, head, stay, last, may, wake, asked, leave, due, makes_room;
#ifdef TIMED
	bit timed;
#endif
#if defined(FAIR) || defined(MUT_YIELDS_FOREVER)
	bit over; /* its last release has woken somebody */
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
		:: me <= TIMERS -> timed = 1
		fi;
#endif
		lock_any();
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
#ifdef STOP
		through[me] = 1;
#endif
		ndone++ }
}

#ifdef STOP
active proctype Stop() {
	/* The first, since all threads do the same. */
	atomic { stopped = 1; runs[1] = 0 }
}

active proctype Watch() {
	timeout ->
	assert(ndone == N || (stopped != 0 && !through[stopped] &&
			      (ndone == N - 1 || ID(word) == stopped || EXCUSED)))
}
#endif

#ifdef MON
/*
 * [monitor.bpf.c:switched_out], [critical.h:is_critical], [monitor.bpf.c:switched_in]
 * on the CPU that the thread leaves, so the thread itself stands still.
 */
#define CRITICAL(i) (cs[i] || (role[i] != RN_WAITING && pending[i] && ID(word) == i) || \
	role[i] == RN_LINKING || role[i] == RN_HEAD || \
	(role[i] == RN_WAITING && (st[node[i]] == GRANTED || st[node[i]] == HEAD)))

proctype Cpu(byte i) {
	bit c;
	do
	:: atomic { preemptions < P && runs[i] && !asleep[i] ->
		runs[i] = 0; switching++; preemptions++ };
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
#define BAD(i) (UNSEEN(i) && spinner[i] && word == (WAITERS | SPINNER) && heads == 0 && \
		has_role == 0)
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
		word = 1 | FORKED_FLAGS;
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
#if defined(FORKED) || defined(LAX)
		assert(ID(word) == 0);
		assert(tail == 0 || tail == OTHER_EPOCH);
#else
		assert(word == 0);
		assert(tail == 0);
#endif
		assert(heads == 0);
		for (i : 1 .. N * K) { assert(st[i] == FREE) };
		for (i : 1 .. N) { assert(!asleep[i]) }
	}
}
