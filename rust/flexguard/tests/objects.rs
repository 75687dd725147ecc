// SPDX-License-Identifier: MIT
//! Condition variables, barriers, semaphores and what is done once.
mod common;
use common::{hammer, until, LONG, SHORT};
use flexguard::{Barrier, Condvar, Mutex, Once, OnceState, Semaphore};
use flexguard::{RawMutex, RawRwLock, RawUpgradableRwLock};
use std::collections::VecDeque;
use std::panic::{catch_unwind, RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn what_is_put_in_comes_out_once() {
    const EACH: u64 = 2_000;
    let queue = Mutex::new(VecDeque::new());
    let (not_empty, not_full) = (Condvar::new(), Condvar::new());
    let sum = Mutex::new(0);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for i in 0..EACH {
                    let mut items = queue.lock();
                    not_full.wait_while(&mut items, |items| items.len() == 4);
                    items.push_back(i);
                    not_empty.notify_one();
                }
            });
            s.spawn(|| {
                for _ in 0..EACH {
                    let mut items = queue.lock();
                    not_empty.wait_while(&mut items, |items| items.is_empty());
                    *sum.lock() += items.pop_front().unwrap();
                    not_full.notify_one();
                }
            });
        }
    });
    assert_eq!(*sum.lock(), 4 * EACH * (EACH - 1) / 2);
    assert!(queue.lock().is_empty());
}

#[test]
fn all_that_wait_are_woken() {
    let state = (Mutex::new((0, false)), Condvar::new());
    thread::scope(|s| {
        for _ in 0..20 {
            s.spawn(|| {
                let mut guard = state.0.lock();
                guard.0 += 1;
                state.1.wait_while(&mut guard, |(_, go)| !*go);
            });
        }
        until(|| state.0.lock().0 == 20);
        state.0.lock().1 = true;
        state.1.notify_all();
    });
}

#[test]
fn a_wait_has_a_time_limit() {
    let (mutex, cond) = (Mutex::new(0), Condvar::new());
    let mut guard = mutex.lock();
    let begun = Instant::now();
    while !cond.wait_for(&mut guard, SHORT).timed_out() {}
    assert!(begun.elapsed() >= SHORT);
    assert!(cond.wait_until(&mut guard, begun).timed_out());
    assert!(cond.wait_while_for(&mut guard, |n| *n == 0, SHORT).timed_out());
    assert!(!cond.wait_while_for(&mut guard, |n| *n == 1, SHORT).timed_out());
    assert!(!cond.wait_while_until(&mut guard, |n| *n == 1, begun).timed_out());
    // It has the mutex again each time.
    assert!(mutex.try_lock().is_none());
    *guard = 1;
}

/// Two mutexes of one condition variable, one after the other.
#[test]
fn another_mutex_may_be_used() {
    let cond = Condvar::default();
    for mutex in [Mutex::new(()), Mutex::new(())] {
        while !cond.wait_for(&mut mutex.lock(), Duration::from_millis(1)).timed_out() {}
    }
}

#[test]
fn a_barrier_has_one_leader_a_round() {
    const ROUNDS: usize = 200;
    let barrier = Barrier::new(5);
    let (leaders, came) = (AtomicUsize::new(0), AtomicUsize::new(0));
    hammer(5, ROUNDS, |_| {
        let before = came.fetch_add(1, Ordering::Relaxed);
        if barrier.wait().is_leader() {
            leaders.fetch_add(1, Ordering::Relaxed);
        }
        // All of the round have come.
        assert!(came.load(Ordering::Relaxed) >= (before / 5 + 1) * 5);
    });
    assert_eq!(leaders.into_inner(), ROUNDS);
    assert!(Barrier::new(0).wait().is_leader());
    assert!(catch_unwind(|| Barrier::new(usize::MAX)).is_err());
}

/// Its rounds go along, to whatever address its type may have: the library counts them in the middle
/// of a barrier that is only aligned to four bytes.
#[test]
fn a_barrier_may_be_moved() {
    #[repr(C, align(8))]
    struct Behind(u32, Barrier);
    let barrier = Box::new(Barrier::new(1));
    for _ in 0..3 {
        assert!(barrier.wait().is_leader());
    }
    let moved = Box::new(Behind(0, *barrier));
    // And dropped, there.
    let thread = thread::spawn(move || assert!(moved.0 == 0 && moved.1.wait().is_leader()));
    until(|| thread.is_finished());
    thread.join().unwrap();
}

#[test]
fn permits_are_neither_lost_nor_made() {
    let sem = Semaphore::new(3);
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    hammer(9, 500, |i| {
        sem.acquire();
        most.fetch_max(inside.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        if i % 5 == 0 {
            thread::yield_now();
        }
        inside.fetch_sub(1, Ordering::Relaxed);
        sem.release();
    });
    assert!(most.into_inner() <= 3);
    for _ in 0..3 {
        assert!(sem.try_acquire_for(Duration::ZERO));
    }
    assert!(!sem.try_acquire());
    assert!(!sem.try_acquire_for(SHORT));
    assert!(!sem.try_acquire_until(Instant::now()));
    thread::scope(|s| {
        s.spawn(|| assert!(sem.try_acquire_for(LONG)));
        sem.release();
    });
    let full = Semaphore::new(Semaphore::MAX_PERMITS);
    assert!(catch_unwind(|| full.release()).is_err());
}

#[test]
fn once_is_once() {
    static ONCE: Once = Once::new();
    let calls = AtomicUsize::new(0);
    hammer(8, 100, |_| {
        ONCE.call_once(|| {
            assert_eq!(ONCE.state(), OnceState::InProgress);
            thread::sleep(SHORT);
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    });
    assert_eq!(ONCE.state(), OnceState::Done);
}

#[test]
fn a_panic_poisons_once() {
    let once = Once::default();
    assert_eq!(once.state(), OnceState::New);
    let fails = || once.call_once(|| panic!("the first"));
    assert!(catch_unwind(fails).is_err());
    assert_eq!(once.state(), OnceState::Poisoned);
    assert!(catch_unwind(|| once.call_once(|| {})).is_err());
    once.call_once_force(|state| assert_eq!(state, OnceState::Poisoned));
    assert_eq!(once.state(), OnceState::Done);
    once.call_once(|| unreachable!());
}

/// As std's and parking_lot's: a program that has one across `catch_unwind` compiles on these, too.
#[test]
fn what_has_no_data_is_unwind_safe() {
    fn is_unwind_safe<T: RefUnwindSafe + UnwindSafe>() {}
    is_unwind_safe::<(Barrier, Condvar, Once, Semaphore)>();
    is_unwind_safe::<(RawMutex, RawRwLock, RawUpgradableRwLock)>();
}
