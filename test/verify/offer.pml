/* SPDX-License-Identifier: MIT */
/*
 * The hand-over by one line (src/lock/offer.h): an owner gives the lock to a head or to the standby
 * that offers to take it, and one that was given it as the head gives it, with the role, to the
 * node behind its own.  The word goes on having the id of an earlier owner.  Each step is one
 * access to shared memory, or some that nobody can come between, under sequential consistency.
 * Notices are hints (standby.pml) and left out: whoever waits may look at the word at any time.
 * Incarnations and the revoked grant: queue.pml, lock.pml.
 *
 *   N threads, one node each, R acquisitions each (R1: of thread 1)
 *   T          the first T of them may leave while they wait, once each; all other waits have to
 *              end by themselves
 *   -DFOREIGN  an owner may leave its release to another thread, and comes back for the lock
 *
 * What is off its CPU, who looks at the word behind the head, and which release may give the lock
 * away is open.  Asked for: one owner at a time, and the word is not 0 while there is one; a lock
 * that is given away is not lost; nobody touches one that others have released for it; in the end
 * nothing is held or offered, no role is lost and all nodes are free.  BROKEN_*: faults that have
 * to be found.
 */
#ifndef N
#define N 3
#endif
#ifndef R
#define R 2
#endif
#ifndef R1
#define R1 R
#endif
#ifndef T
#define T 1
#endif

#define FREE       0
#define WAITING    1
#define GRANTED    2
#define HEAD       3
#define LEFT       4
#define KEPT       5
#define LEFT_TWICE 6
#define GIVES      2
#define HANDED     255
#define MADE       1      /* an offer */
#define GIVEN      2
#define BOTH       3

byte word, tail, nx[N + 1], st[N + 1], offer[N + 1], notifies[N + 1];
bit kept[N + 1], passes[N + 1];

/*
 * Ghost variables.  `asked`: the owner, when it has left its release to others.  `passes`: on the
 * role of a lock that it has.
 */
byte owner, heads, inside, ndone, asked;
byte told[N + 1];         /* how many locks of it others say that they have released */

inline role_taken() { heads++; assert(heads == 1) }
inline take_word() { assert(owner == 0); word = me; owner = me }
inline node_free(i) {
	assert(st[i] == HEAD || st[i] == LEFT || st[i] == LEFT_TWICE);
	st[i] = FREE
}

/* [queue.c:_fg_queue_join]  head, or not yet. */
inline join() {
	atomic {
		nx[me] = 0;
		st[me] = WAITING;
		at = tail;
		tail = me;
		if :: at == 0 -> role_taken(); st[me] = HEAD; head = 1 :: else fi
	};
	atomic {
		if
		:: at == 0
		:: else ->
			next = nx[at];
			nx[at] = me;
			if
			:: next == HANDED -> node_free(at); role_taken(); st[me] = HEAD; head = 1
			:: else -> assert(next == 0)
			fi
		fi;
		at = 0; next = 0
	}
}

/*
 * [queue.c:pass_on] with [queue.c:grant], from node i on; `to`: who is the head now, 0: nobody.
 * What was WAITING when it was read and has left since is passed as if it had been read later.
 */
inline pass_on(i) {
	at = i;
	to = 0;
	do
	:: atomic {
		next = nx[at];
		if
		:: next != 0 ->
			node_free(at);
			at = next;
			assert(st[at] == WAITING || st[at] == LEFT || st[at] == LEFT_TWICE);
			if
			:: st[at] == WAITING -> st[at] = GRANTED; heads--; to = at; break
			:: st[at] == WAITING -> st[at] = LEFT /* off its CPU */
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

/* [queue.c:_fg_queue_pass_on], [queue.c:_fg_queue_give] of the role alone */
inline pass_on_kept(i) {
	is_kept_no_longer(i);
	if :: mine -> pass_on(i) :: else fi;
	atomic { mine = 0; to = 0 }
}

/* [offer.c:_fg_offer_settle]  By the owner: the word is not free. */
inline settle() { atomic { assert(word != 0 && owner == me); word = me } }

/* [offer.c:_fg_offer_end] with [offer.c:kept_no_longer] */
inline end_offer() {
	if :: kept[me] -> kept[me] = 0; pass_on_kept(me) :: else fi;
	settle();
	offer[me] = 0
}

/* [offer.c:_fg_offer_put_away]  Others may release the lock for it meanwhile, and free it. */
inline put_away() {
	if
	:: kept[me] ->
#ifndef BROKEN_UNMARKED
		atomic { if :: offer[me] == GIVEN -> offer[me] = BOTH; gave = 1 :: else fi };
#endif
		is_kept_no_longer(me); /* [offer.c:kept_node] */
		if
		:: mine ->
			kept[me] = 0; /* [queue.c:_fg_queue_give] */
			passes[me] = 1; pass_on(me); atomic { passes[me] = 0; to = 0 }
		:: else
		fi;
		mine = 0;
		kept[me] = 0;
		if :: gave -> atomic { offer[me] = GIVEN; gave = 0 } :: else fi
	:: else
	fi
}

/* [queue.c:_fg_queue_give] of both, with [queue.c:give_behind].  What is behind may have left. */
inline give_behind() {
	next = nx[me];
	if
	:: next != 0 ->
		atomic {
			assert(owner == me && (st[next] == WAITING || st[next] == LEFT));
#ifdef BROKEN_BLIND
			gave = 1;
#else
			gave = (st[next] == WAITING);
#endif
			st[next] = st[next] + GIVES;
			if :: gave -> owner = next :: else fi
		}
	:: true /* nobody there, or off its CPU */
	fi;
	if
	:: gave -> atomic { next = 0; node_free(me) }
#ifdef BROKEN_ROLE
	:: !gave -> atomic { next = 0; node_free(me) }
#else
	:: !gave -> pass_on(me); to = 0
#endif
	fi
}

/* [offer.c:_fg_offer_give] with [offer.c:give_as_promised] */
inline give() {
#ifndef BROKEN_LATE
	/* First: from then on it may be another thread's, and even released for that one. */
	offer[me] = 0;
#endif
	if
	:: given && kept[me] ->
		kept[me] = 0;
		is_kept_no_longer(me);
		if :: mine -> give_behind() :: else fi;
		mine = 0
	:: !(given && kept[me]) && notifies[me] != 0 ->
		atomic {
			gave = (offer[notifies[me]] == MADE);
			if
			:: gave ->
				assert(owner == me);
				owner = notifies[me];
				offer[owner] = GIVEN
			:: else
			fi
		};
		if :: gave -> notifies[me] = 0 :: else fi
	:: else
	fi
#ifdef BROKEN_LATE
	; if :: gave -> offer[me] = 0 :: else fi
#endif
}

/* [lock_release.c:_fg_unlock_slow], [lock_release.c:unlock_by_offer] with [held.h:was_given] */
inline unlock() {
	given = (offer[me] == GIVEN);
	if
	:: !several && (given || notifies[me] != 0) -> give()
	:: true /* others sleep, or its rounds are short */
	fi;
	if :: !gave && given -> end_offer() :: else fi;
	if
#ifdef BROKEN_TWICE
	:: gave -> word = 0
#else
	:: gave
#endif
	:: else ->
		atomic { assert(word == me && owner == me); word = 0; owner = 0 };
		notifies[me] = 0
	fi;
	atomic { gave = 0; given = 0 }
}

proctype Thread(byte me) {
	byte it, at, next, to;
	byte left;              /* releases that it has left to others and was not told of */
	bit head, offers, gave, given, mine, several, stays = (me > T);

	do
	:: it < (me == 1 -> R1 : R) ->
		it++;
#ifdef FOREIGN
		/* [held.h:announce]  Not told yet: as if it had two, and is not given this one. */
		atomic { left = left - told[me]; told[me] = 0; several = (left != 0) };
#endif
		/* past others */
		atomic { if :: word == 0 -> take_word(); goto section :: else fi };
queues:		put_away();
		if :: st[me] == FREE -> join() :: else -> goto sleep fi; /* it has no other node */
		/* [lock_spin.c:spin_in_queue], [queue.c:_fg_queue_poll],
		 * [queue.c:_fg_queue_leave] */
		do
		:: head -> break
		:: !head && st[me] == HEAD -> goto accept
		:: atomic { !head && st[me] == GRANTED -> role_taken(); st[me] = HEAD; head = 1 }
		:: !head && (st[me] == LEFT || st[me] == FREE) -> goto sleep
		:: !head && !stays ->
			stays = 1;
			atomic { if :: st[me] == WAITING -> st[me] = LEFT; goto sleep :: else fi }
		:: atomic { !head && !stays && word == 0 -> stays = 1; take_word() };
		   atomic { /* [lock_spin.c:take_in_queue], and leaves */
			if
			:: st[me] == WAITING -> st[me] = LEFT; goto section
			:: st[me] == GRANTED -> role_taken(); st[me] = HEAD; head = 1; goto taken
			:: st[me] == LEFT || st[me] == FREE -> goto section
			fi
		   }
		od;
		/* [lock_spin.c:spin_as_head], [offer.c:_fg_offer_make] */
		if
		:: !several -> atomic { offer[me] = MADE; offers = 1 }
		:: true
		fi;
		do
		:: offers && offer[me] == GIVEN -> goto accept /* [lock_spin.c:is_given] */
		:: atomic { word == 0 -> take_word(); goto taken } /* [lock_spin.c:look] */
		:: head && nx[me] != 0 -> /* [lock_spin.c:become_standby], [queue.c:promise] */
			pass_on(me);
			atomic { head = 0; notifies[me] = to; to = 0 }
		:: !stays -> break
		od;
		stays = 1;
		if
#ifdef BROKEN_WITHDRAW
		:: offers -> offer[me] = 0
#else
		:: atomic { offers -> /* [offer.c:_fg_offer_withdraw] */
			if :: offer[me] == MADE -> offer[me] = 0 :: else -> goto accept fi }
#endif
		:: !offers
		fi;
		if
		:: head -> pass_on(me); atomic { head = 0; to = 0 }
		:: else -> notifies[me] = 0 /* [lock_spin.c:tell] */
		fi;
sleep:		offers = 0; /* until the lock is free, or it comes back to spin */
		if
		:: atomic { word == 0 -> take_word(); goto section }
		:: st[me] == FREE -> goto queues
		fi;
taken:		/* by the word: nobody can give it */
#ifndef BROKEN_STALE
		offer[me] = 0;
#endif
		goto pass;
accept:		/* [lock_spin.c:accept] */
		assert(owner == me && word != 0);
		if
		:: several -> settle(); head = (st[me] == HEAD); goto pass
		:: !several -> settle() /* to learn whether others sleep */
		:: !several && !offers -> /* [near.c:_fg_queue_next_is_far] */
			settle(); head = (st[me] == HEAD); goto pass
		:: !several
		fi;
		/* [offer.c:_fg_offer_keep], [queue.c:_fg_queue_keep]; the standby has no node */
		atomic {
			if
			:: head || !offers -> offer[me] = GIVEN; st[me] = KEPT; kept[me] = 1
			:: else
			fi
		};
		goto section;
pass:		/* [lock_spin.c:_fg_lock_spin], [queue.c:_fg_queue_hand_over] */
		if
		:: head -> pass_on(me); if :: true -> notifies[me] = to :: true fi; to = 0
		:: !head
		:: !head -> notifies[me] = 0
		fi;
section:	atomic {
			assert(owner == me && word != 0 && inside == 0);
			head = 0; offers = 0; inside++
		};
		if
		:: true -> inside--; unlock()
#ifdef FOREIGN
		:: atomic { true -> inside--; left++; asked = me }
#endif
		fi;
		several = 0
	:: else -> break
	od;
	ndone++
}

#ifdef FOREIGN
/* [lock_release.c:released_for], [lock_release.c:is_forgotten] */
active proctype Releaser() {
	byte i, at, next, to, looked;
	bit mine;

end:	do
	:: asked != 0 ->
#ifdef BROKEN_WORD
		i = word;
#else
		i = 1;
		do /* [offer.c:_fg_offer_take_back], [offer.c:take_from] */
		:: i > N -> i = word; break
		:: i <= N ->
			looked = offer[i];
			if
			:: looked == BOTH ->
				offer[i] != BOTH; /* [offer.c:wait_for_change], without its end */
			:: looked == GIVEN ->
#ifdef BROKEN_LOOKS
				if
				:: offer[i] != GIVEN -> i++
				:: offer[i] == GIVEN ->
#endif
				if :: kept[i] -> pass_on_kept(i) :: else fi;
				atomic {
					if
					:: offer[i] == GIVEN -> offer[i] = 0; break
#ifdef BROKEN_ONCE
					:: else -> i++
#else
					:: else /* it puts its node away just now */
#endif
					fi
				}
#ifdef BROKEN_LOOKS
				fi
#endif
			:: looked != BOTH && looked != GIVEN -> i++
			fi
		od;
#endif
		atomic { assert(i == asked); told[i]++; i = 0 }; /* whose it was is told so */
		/* Who has it next may free it. */
		atomic { assert(owner == asked && !passes[asked]); asked = 0; owner = 0; word = 0 }
	od
}
#endif

init {
	byte k = 1;

	atomic { do :: k <= N -> run Thread(k); k++ :: else -> break od };
	ndone == N && asked == 0;
	assert(word == 0 && tail == 0 && heads == 0 && owner == 0);
	d_step { for (k : 1 .. N) { assert(st[k] == FREE && offer[k] == 0) } }
}
