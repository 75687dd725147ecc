/* SPDX-License-Identifier: MIT */
/*
 * The waiters that are left aside (src/lock/near.c): an owner that gives the lock and the head's
 * role to the node behind it (offer.pml) gives them to one that is near, and moves those before
 * that one to a second list, which goes with the role and comes back in front of the queue (Dice,
 * Kogan, "Compact NUMA-aware Locks", EuroSys 2019).  Each step is one access to shared memory, or
 * some that nobody can come between, under sequential consistency: the list, and links that stand,
 * are only read and changed by who has the role.
 *
 *   N threads, one node each, R acquisitions each (R1: of thread 1)
 *   T          the first T of them may leave while they wait, or be passed over
 *   BOUND      how many gifts may go past those that are aside
 *   LOOKS      how many nodes an owner looks at, at most
 *   -DWATCH    also of thread N: how many come past it in all
 *   -DFOREIGN  an owner may leave its release to another thread, and comes back for the lock
 *
 * Where a thread is (but with -DFAR=bits) and who is off its CPU is open.  Asked for: one head and
 * one owner at a time; no more than BOUND come past those that are aside, nor past any waiter for
 * itself and for each that is before it; nobody waits for ever, no role is lost, and in the end all
 * nodes are free.  MUT_* are faults that have to be found:
 *
 *   MUT_STALE       who joins does not forget what was aside of its node
 *   MUT_NO_PUT_BACK who passes the role on forgets those that are aside
 *   MUT_LAST        the last of these keeps its link
 *   MUT_TAIL        the tail does not move to it
 *   MUT_FREES       a node that goes to the end is used again
 *   MUT_NO_BOUND    they never come back in front of one that is near
 *   MUT_MOVES_LAST  the last of the queue is moved as well
 *   MUT_GIVES_ON    one that gives, and could not put them back, as somebody was about to link
 *                   itself to its node, looks at its link again: once more than BOUND
 *   MUT_TWICE       a node that has been given the lock in vain stays so in the queue
 */
#ifndef N
#define N 4
#endif
#ifndef R
#define R 1
#endif
#ifndef R1
#define R1 R
#endif
#ifndef T
#define T 1
#endif
#ifndef BOUND
#define BOUND 1
#endif
#ifndef LOOKS
#define LOOKS 2
#endif

#define FREE       0
#define WAITING    1
#define GRANTED    2
#define HEAD       3
#define LEFT       4
#define KEPT       5
#define LEFT_TWICE 6
#define STATES     8      /* the next is another incarnation's first */
#define GIVES      2
#define HANDED     255

#ifdef WATCH
#define ALIKE(i) ((i) > 2 && (i) > T + 1 && (i) < N)
#else
#define ALIKE(i) ((i) > 2 && (i) > T + 1)
#endif
#define IS_NEAR(i) (far[i] == far[me])

byte tail, owner, nx[N + 1], st[N + 1];
bit far[N + 1];
/* Of a node that has the role: what is aside, and how many gifts have gone past it. */
byte first[N + 1], last[N + 1], count[N + 1];

/*
 * Ghost variables.  `past`: those that have had the lock while others are aside.  Of thread N,
 * which waits: who has joined since, how many of these have had the lock, and how many may.
 */
byte heads, ndone, asked, past, waiting;
#ifdef WATCH
byte over, may;
#endif
bit is_aside;
#ifdef WATCH
bit later[N + 1];
#endif

inline role_taken() { heads++; assert(heads == 1) }
inline node_free(i) {
	assert(st[i] == HEAD || st[i] == LEFT || st[i] == LEFT_TWICE);
	st[i] = FREE
}
inline forget(i) { first[i] = 0; last[i] = 0; count[i] = 0 }

/* The lock is now that of thread i, which has been given it, or is the head. */
inline own(i, gift) {
	assert(owner == 0);
	owner = i;
	waiting--;
	if
	:: is_aside && gift -> past++; assert(past <= BOUND)
	:: else
	fi
#ifdef WATCH
	; if
	:: i == N -> may = 0; over = 0
	:: i != N && may != 0 && later[i] ->
		over++;
		assert(over <= may)
	:: else
	fi
#endif
}

/* [queue.c:_fg_queue_join]  head, or not yet. */
inline join() {
	atomic {
		nx[me] = 0;
#ifndef MUT_STALE
		forget(me);
#endif
		st[me] = WAITING;
#ifdef WATCH
		if
		:: me == N ->
			may = (waiting + 1) * BOUND;
			for (k : 1 .. N) { later[k] = 0 };
			k = 0
		:: else -> later[me] = (may != 0)
		fi;
#endif
		waiting++;
		at = tail;
		tail = me;
		if :: at == 0 -> role_taken(); st[me] = HEAD; head = 1 :: else fi
	};
	atomic {
		if
		:: at == 0
		:: else ->
			assert(st[at] != FREE);
			next = nx[at];
			nx[at] = me;
			if
			:: next == HANDED ->
				node_free(at);
				role_taken();
				st[me] = HEAD;
				head = 1
			:: else -> assert(next == 0)
			fi
		fi;
		at = 0; next = 0
	}
}

/*
 * [near.c:_fg_queue_put_back]  What is aside of node i comes back in front of what is behind that.
 * If nobody is, the tail moves to the last of them.  But if somebody is about to link itself to i:
 * `to`, the first of them is next, and i is behind them, not to be freed; or, if that need not be,
 * they stay aside.
 */
inline put_back(i, has_to_be) {
	atomic {
		if
		:: first[i] == 0
		:: first[i] != 0 && nx[i] != 0 ->
			assert(nx[i] != HANDED);
			nx[last[i]] = nx[i];
			nx[i] = first[i];
			forget(i);
			past = 0; is_aside = 0
		:: else ->
#ifndef MUT_LAST
			nx[last[i]] = 0;
#endif
			alone = 1
		fi
	};
	if
	:: alone ->
		atomic {
			alone = 0;
			if
			:: tail == i ->
#ifndef MUT_TAIL
				tail = last[i];
#endif
				nx[i] = first[i];
				forget(i);
				past = 0; is_aside = 0
			:: tail != i && has_to_be ->
				nx[last[i]] = i;
				to = first[i];
				forget(i);
				past = 0; is_aside = 0;
				assert(st[i] == HEAD);
				st[i] = LEFT
			:: else
			fi
		}
	:: else
	fi
}

/*
 * [queue.c:pass_on] with [queue.c:grant], from node i on.  What was WAITING when it was read and
 * has left since is passed as if it had been read later.
 */
inline pass_on(i) {
	at = i;
#ifndef MUT_NO_PUT_BACK
	put_back(i, true);
#endif
	do
	:: atomic {
		if
		:: to != 0 ->
#ifdef MUT_FREES
			node_free(at);
#endif
			at = to; to = 0; next = at
		:: else ->
			next = nx[at];
			if :: next != 0 -> node_free(at); at = next :: else fi
		fi;
		if
		:: next != 0 ->
			assert(st[at] == WAITING || st[at] == LEFT || st[at] == LEFT_TWICE);
			if
			:: st[at] == WAITING -> st[at] = GRANTED; heads--; break
			/* off its CPU */
			:: st[at] == WAITING && at <= T -> st[at] = LEFT; waiting--
			:: st[at] != WAITING
			fi
		:: else
		fi
	   };
	   if
	   :: next == 0 ->
		atomic { if :: tail == at -> tail = 0; node_free(at); heads--; break :: else fi };
		atomic { if :: nx[at] == 0 -> nx[at] = HANDED; heads--; break :: else fi }
	   :: else
	   fi
	od;
	atomic { at = 0; next = 0 }
}

/* [queue.c:is_kept_no_longer]  Its thread, or one that releases the lock for it: one of them. */
inline is_kept_no_longer(i) {
	atomic { mine = (st[i] == KEPT); if :: mine -> st[i] = HEAD :: else fi }
}

inline pass_on_kept(i) {
	is_kept_no_longer(i);
	if :: mine -> mine = 0; pass_on(i) :: else fi
}

/*
 * [near.c:_fg_queue_choose] with [near.c:leave_aside].  Whom to give it to.  A link that is read as
 * 0, here, is as if all had been read then.
 */
inline choose() {
	atomic {
		next = nx[me];
		if
#ifndef MUT_NO_BOUND
		:: first[me] != 0 && count[me] >= BOUND -> back = 1
		:: !(first[me] != 0 && count[me] >= BOUND) ->
#else
		:: true ->
#endif
			if
			:: next == 0 -> back = 1
			:: next != 0 && IS_NEAR(next) ->
				if :: first[me] != 0 && count[me] <= BOUND -> count[me]++ :: else fi
			:: next != 0 && !IS_NEAR(next) ->
				at = next;
				do
				:: nx[at] == 0 ->
#ifdef MUT_MOVES_LAST
					moves = 1;
#else
					back = 1;
#endif
					break
				:: nx[at] != 0 && k != 0 -> back = 1; break
				:: nx[at] != 0 && k < LOOKS ->
					if
					:: IS_NEAR(nx[at]) -> moves = 1; break
					:: else -> at = nx[at]; k++
					fi
				od;
				if
				:: moves ->
					if
					:: first[me] == 0 -> first[me] = next
					:: else -> nx[last[me]] = next
					fi;
					last[me] = at;
					nx[me] = nx[at];
					count[me]++;
					is_aside = 1
				:: else
				fi
			fi
		fi;
		at = 0; next = 0; k = 0; moves = 0
	};
	if
#ifdef MUT_GIVES_ON
	:: back -> back = 0; put_back(me, false)
#else
	:: back -> back = 0; put_back(me, false); stuck = (first[me] != 0)
#endif
	:: else
	fi
}

/* [queue.c:_fg_queue_give] of both, with [queue.c:give_behind]. */
inline give() {
	choose();
	atomic {
		if
		:: stuck -> next = 0
		:: else -> next = nx[me]
		fi;
		if
		:: next != 0 ->
			assert(st[next] == WAITING || st[next] == LEFT);
			first[next] = first[me]; last[next] = last[me]; count[next] = count[me];
			gave = (st[next] == WAITING);
			if
			:: gave -> owner = 0; own(next, true)
			:: else
			fi;
			st[next] = (st[next] + GIVES) % STATES
		:: next == 0
		:: next != 0 && next <= T /* off its CPU */
		fi
	};
	if
	:: gave ->
		atomic {
			node_free(me);
			next = 0
		}
	:: else ->
#ifndef MUT_TWICE
		atomic { if :: next != 0 && st[next] == LEFT_TWICE -> st[next] = LEFT :: else fi };
#endif
		atomic { next = 0; stuck = 0 };
		pass_on(me)
	fi
}

proctype Thread(byte me) {
	byte it, at, next, to, k;
	bit head, gave, mine, kept, back, moves, alone, stuck;

	do
	:: it < (me == 1 -> R1 : R) ->
		it++;
#ifdef FOREIGN
		pass_on_kept(me); /* others release the lock for it */
#endif
		if
		:: me > T -> st[me] == FREE
		:: me <= T && st[me] == FREE
		:: me <= T && st[me] != FREE -> goto next_time /* it has no other node */
		fi;
		join();
		/* [queue.c:_fg_queue_poll], [queue.c:_fg_queue_leave] */
		do
		:: head -> break
		:: !head && st[me] == HEAD -> break
		:: atomic { !head && st[me] == GRANTED -> role_taken(); st[me] = HEAD; head = 1 }
		:: atomic { !head && me <= T && st[me] == WAITING -> st[me] = LEFT; waiting-- };
		   goto next_time
		:: !head && (st[me] == LEFT || st[me] == FREE) -> assert(me <= T); goto next_time
		od;
		if
		:: head -> atomic { owner == 0 -> own(me, false) }
		:: else -> assert(owner == me)
		fi;
		/* [queue.c:_fg_queue_keep], [queue.c:_fg_queue_hand_over] */
		if
		:: st[me] = KEPT; kept = 1
		:: head -> pass_on(me)
		fi;
		head = 0;
		assert(owner == me);
		if
		:: kept ->
			is_kept_no_longer(me);
			assert(mine);
			mine = 0;
			give()
		:: true -> pass_on_kept(me)
#ifdef FOREIGN
		:: atomic { true -> asked = me; goto next_time }
#endif
		fi;
		if
		:: gave
		:: else -> atomic { assert(owner == me); owner = 0 }
		fi;
next_time:	atomic { gave = 0; kept = 0; head = 0 }
	:: else -> break
	od;
	ndone++
}

#ifdef FOREIGN
/* [queue.c:_fg_queue_pass_on] */
active proctype Releaser() {
	byte at, next, to, me;
	bit mine, alone;

end:	do
	:: asked != 0 ->
		me = asked;
		pass_on_kept(me);
		atomic { assert(owner == me); asked = 0; owner = 0; me = 0 }
	od
}
#endif

init {
	byte i = 2;

	atomic {
		do
#ifdef FAR
		:: i <= N -> far[i] = (FAR >> i) & 1; i++
#else
		:: i <= N -> /* those that are alike: in one order */
			if
			:: far[i] = 1
			:: !(ALIKE(i) && far[i - 1]) -> true
			fi;
			i++
#endif
		:: else -> break
		od;
		i = 1;
		do :: i <= N -> run Thread(i); i++ :: else -> break od
	};
	ndone == N && asked == 0;
	d_step {
		assert(tail == 0 && heads == 0 && owner == 0 && waiting == 0);
		for (i : 1 .. N) { assert(st[i] == FREE) }
	}
}
