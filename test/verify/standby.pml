/* SPDX-License-Identifier: MIT */
/*
 * What an owner, the standby and the head tell each other ("A head, or the standby" in
 * lock_spin.c), with deadlines: a standby may give up between being promised and being told.  The
 * word and the queue are one step each here (lock.pml and queue.pml have those); what is modelled
 * is [thread.h:fg_notice]: plain stores, which anybody may overwrite.
 *
 *   N threads, each of which takes the lock R times; the first T of them have a deadline, which
 *   may pass at any moment of a wait
 *
 * Asked for: nobody waits for ever to be told, though nobody looks at the word all the same, now
 * and then, as the lock does (UNTOLD_EVERY): whoever promises to tell does.
 *
 * MUT_*: faults that have to be found.  MUT_NESTED: one with two locks promises for each, and has
 * room for one promise, so that not all releases tell [lock_spin.c:may_promise].
 */
#ifndef N
#define N 4
#endif
#ifndef R
#define R 1
#endif
#ifndef T
#define T 2
#endif

#define NONE    0
#define COMES   1
#define STANDBY 2
#define FREE    3

byte owner;
byte head;                /* who has the role; 0: the queue is empty */
byte q[N];                /* those behind it */
byte qlen;
byte notice[N + 1], notifies[N + 1];
byte inside, ndone;

inline take() {
	atomic {
		ok = (owner == 0);
		if
		:: ok -> owner = me
		:: else
		fi
	}
}

/* [queue.c:_fg_queue_hand_over] with [queue.c:grant]: the notice first, and it may have left. */
inline hand_over(note) {
	do
	:: atomic { qlen == 0 -> head = 0; break }
	:: atomic { qlen > 0 -> cand = q[0] };
	   if
	   :: note != NONE -> notice[cand] = note
	   :: else
	   fi;
	   atomic {
		ok = (qlen > 0 && q[0] == cand);
		if
		:: ok ->
			for (i : 1 .. N - 1) { q[i - 1] = q[i] }
			q[N - 1] = 0;
			qlen--;
			head = cand;
			i = 0
		:: else
		fi
	   };
	   if
	   :: ok && note != NONE -> notifies[me] = cand; break
	   :: ok && note == NONE -> break
	   :: else
	   fi
	od;
	atomic { cand = 0; ok = 0 }
}

/* [queue.c:_fg_queue_leave] */
inline leave() {
	atomic {
		if
		:: head != me ->
			i = 0;
			do
			:: q[i] != me -> i++
			:: else -> break
			od;
			do
			:: i < N - 1 -> q[i] = q[i + 1]; i++
			:: else -> break
			od;
			q[N - 1] = 0;
			qlen--;
			i = 0;
			left = 1
		:: else
		fi
	}
}

/* [lock_spin.c:tell] */
inline tell(what) {
	if
	:: notifies[me] != 0 -> notice[notifies[me]] = what
	:: else
	fi
}

proctype Thread(byte me) {
	byte it, i, cand;
	bit ok, node, left, got;

	do
	:: it < R ->
		it++;
		take(); /* past those that wait */
		got = ok;
		ok = 0;
		if
		:: got -> goto section
		:: else
		fi;
		/* [queue.c:_fg_queue_join] */
		notice[me] = NONE;
		atomic {
			if
			:: head == 0 -> head = me
			:: else -> q[qlen] = me; qlen++
			fi
		};
		/* [lock_spin.c:spin_in_queue] */
		do
		:: head == me -> break
		:: me <= T && head != me ->
			leave();
			if
			:: left -> break
			:: else
			fi
		od;
		if
		:: left -> goto late
		:: else
		fi;
		node = 1;
		/* [lock_spin.c:spin_as_head] */
		do
		/* [lock_spin.c:look] */
		:: atomic { notice[me] == NONE && owner == 0 -> owner = me; got = 1; break }
		:: notice[me] == FREE -> /* [lock_spin.c:take_told] */
			take();
			if
			:: ok -> got = 1; ok = 0; break
			:: else -> notice[me] = NONE
			fi
		/* [lock_spin.c:become_standby] [lock_spin.c:is_followed] */
		:: node && (notice[me] == STANDBY || notice[me] == NONE) && qlen > 0 ->
			hand_over(COMES);
			node = 0
		:: me <= T -> break /* its deadline */
		od;
		if
		:: node && got -> if :: true -> hand_over(STANDBY) :: true -> hand_over(NONE) fi
		:: node && !got -> hand_over(NONE)
		:: !node && got -> if :: true -> tell(STANDBY) :: true -> tell(FREE) fi
#ifdef MUT_SILENT
		:: !node && !got
#else
		:: !node && !got -> tell(FREE)
#endif
		fi;
		node = 0;
late:		/* [lock_wait.c:wait_for]: it takes a free lock all the same */
		left = 0;
		if
		:: !got -> take(); got = ok; ok = 0
		:: else
		fi;
section:
		if
		:: got ->
			assert(inside == 0);
			inside++;
			inside--;
			/* [lock_release.c:notify_and_unlock] */
#ifdef MUT_NESTED
			if
			:: true -> tell(FREE)
			:: true /* it has another lock as well */
			fi;
#else
			tell(FREE);
#endif
			owner = 0;
			notifies[me] = 0
		:: else
		fi;
		got = 0
	:: else -> break
	od;
	ndone++
}

init {
	byte k = 1;

	atomic {
		do
		:: k <= N -> run Thread(k); k++
		:: else -> break
		od
	};
	ndone == N;
	assert(owner == 0 && head == 0 && qlen == 0)
}
