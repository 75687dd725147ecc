// SPDX-License-Identifier: MIT
mod common;
use common::{hammer, until, Pair, LONG, SHORT};
use flexguard::lock_api::RawMutex as _;
use flexguard::{lock_api, Mutex, MutexGuard, RawMutex, ReentrantMutex};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// More threads than CPUs, whatever the machine has.
fn many() -> usize {
    2 * thread::available_parallelism().map_or(4, |n| n.get()) + 3
}

/// Sections under `R` in which another thread was seen at work.
fn intrusions<R: lock_api::RawMutex + Sync>(threads: usize, calls: usize) -> u64 {
    let (lock, pair) = (R::INIT, Pair::new());
    let seen = AtomicU64::new(0);
    hammer(threads, calls, |i| {
        lock.lock();
        if pair.read().is_none() {
            seen.fetch_add(1, Ordering::Relaxed);
        }
        pair.write(i % 3 == 0);
        // SAFETY: locked above.
        unsafe { lock.unlock() };
    });
    let lost = pair.read() != Some((threads * calls) as u64);
    seen.into_inner() + u64::from(lost)
}

#[test]
fn one_at_a_time() {
    assert_eq!(intrusions::<RawMutex>(2, 2_000), 0);
    assert_eq!(intrusions::<RawMutex>(many(), 500), 0);
}

/// A lock that anybody gets: the check above has to see it.
struct Broken;

unsafe impl lock_api::RawMutex for Broken {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Broken = Broken;
    type GuardMarker = lock_api::GuardNoSend;
    fn lock(&self) {}
    fn try_lock(&self) -> bool {
        true
    }
    unsafe fn unlock(&self) {}
}

#[test]
fn a_lock_that_does_not_exclude_is_seen() {
    until(|| intrusions::<Broken>(many(), 500) > 0);
}

#[test]
fn a_try_does_not_wait() {
    let mutex = Mutex::new(1);
    let guard = mutex.lock();
    assert!(mutex.is_locked());
    thread::scope(|s| {
        s.spawn(|| assert!(mutex.try_lock().is_none()));
    });
    drop(guard);
    assert!(!mutex.is_locked());
    assert_eq!(*mutex.try_lock().unwrap(), 1);
}

#[test]
fn a_time_limit_ends_a_wait() {
    let mutex = Mutex::new(());
    let guard = mutex.lock();
    thread::scope(|s| {
        s.spawn(|| {
            let begun = Instant::now();
            assert!(mutex.try_lock_for(SHORT).is_none());
            assert!(begun.elapsed() >= SHORT);
            let end = Instant::now() + SHORT;
            assert!(mutex.try_lock_until(end).is_none());
            assert!(Instant::now() >= end);
            assert!(mutex.try_lock_for(Duration::ZERO).is_none());
            assert!(mutex.try_lock_until(begun).is_none());
        });
    });
    drop(guard);
    // What has passed makes a try of it; what never comes, a lock.
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    assert!(mutex.try_lock_for(Duration::MAX).is_some());
    assert!(mutex.try_lock_until(Instant::now() + LONG).is_some());
}

#[test]
fn a_wait_ends_when_it_is_released() {
    let mutex = Mutex::new(0);
    let waits = AtomicBool::new(false);
    thread::scope(|s| {
        let mut guard = mutex.lock();
        s.spawn(|| {
            waits.store(true, Ordering::Relaxed);
            assert_eq!(*mutex.try_lock_for(LONG).unwrap(), 1);
        });
        until(|| waits.load(Ordering::Relaxed));
        thread::sleep(SHORT);
        *guard = 1;
    });
}

#[test]
fn a_panic_releases_it() {
    let mutex = Mutex::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = mutex.lock();
        *guard = 1;
        panic!("in the section");
    }));
    assert!(result.is_err());
    assert_eq!(*mutex.try_lock().expect("released"), 1);
}

#[test]
fn it_can_be_moved_and_taken_apart() {
    let mutex = Mutex::new(String::from("a"));
    mutex.lock().push('b');
    let moved = Box::new(mutex);
    moved.lock().push('c');
    assert_eq!(moved.into_inner(), "abc");
}

#[test]
fn a_part_of_it_can_be_guarded() {
    let mutex = Mutex::new((1, 2));
    *MutexGuard::map(mutex.lock(), |pair| &mut pair.1) = 3;
    assert_eq!(*mutex.lock(), (1, 3));
    let mut guard = mutex.lock();
    MutexGuard::unlocked(&mut guard, || assert!(mutex.try_lock().is_some()));
    assert!(mutex.try_lock().is_none());
}

#[test]
fn in_a_static() {
    static SUM: Mutex<u64> = flexguard::const_mutex(0);
    hammer(many(), 1000, |_| *SUM.lock() += 1);
    assert_eq!(*SUM.lock(), 1000 * many() as u64);
}

/// One that another thread releases: by the raw lock, which may.
#[test]
fn another_thread_may_release_it() {
    let raw = RawMutex::INIT;
    raw.lock();
    thread::scope(|s| {
        s.spawn(|| unsafe { raw.unlock() });
    });
    assert!(raw.try_lock());
    unsafe { raw.unlock() };
}

/// Nobody looks into its memory any more, whoever drops it.
#[test]
fn a_forgotten_one_is_released_when_it_is_dropped() {
    for by_another in [false, true] {
        let mut place = Box::new(ManuallyDrop::new(RawMutex::INIT));
        place.lock();
        // SAFETY: it is dropped once, and only its words are read after that.
        if by_another {
            thread::scope(|s| {
                s.spawn(|| unsafe { ManuallyDrop::drop(&mut place) });
            });
        } else {
            unsafe { ManuallyDrop::drop(&mut place) };
        }
        let left = std::ptr::addr_of!(*place).cast::<flexguard_sys::fg_mutex_t>();
        assert_eq!(unsafe { (*left).fg_state }, [0; 2], "by another thread: {by_another}");
    }
}

#[test]
fn a_reentrant_one_is_locked_again_by_its_owner_only() {
    let mutex = ReentrantMutex::new(Cell::new(0));
    let outer = mutex.lock();
    let inner = mutex.lock();
    inner.set(1);
    let refused = || thread::scope(|s| s.spawn(|| mutex.try_lock().is_none()).join().unwrap());
    assert!(refused());
    drop(inner);
    assert!(refused());
    assert!(mutex.is_owned_by_current_thread());
    assert_eq!(outer.get(), 1);
    drop(outer);
    assert!(!refused());
    assert!(mutex.try_lock_for(SHORT).is_some());
}

#[test]
fn a_reentrant_one_in_a_static() {
    static DEPTH: ReentrantMutex<Cell<u64>> = flexguard::const_reentrant_mutex(Cell::new(0));
    let outer = DEPTH.lock();
    outer.set(outer.get() + 1);
    let inner = DEPTH.lock();
    inner.set(inner.get() + 1);
    assert_eq!(outer.get(), 2);
}

/// By parking_lot's names, which are lock_api's.
#[cfg(feature = "arc_lock")]
#[test]
fn a_guard_may_own_its_lock() {
    use flexguard::{ArcMutexGuard, ArcReentrantMutexGuard, RawThreadId};
    use std::sync::Arc;
    let mutex = Arc::new(Mutex::new(1));
    let guard: ArcMutexGuard<RawMutex, i32> = mutex.lock_arc();
    assert!(mutex.try_lock().is_none());
    drop(guard);
    assert_eq!(*mutex.try_lock().unwrap(), 1);
    let mutex = Arc::new(ReentrantMutex::new(2));
    let guard: ArcReentrantMutexGuard<RawMutex, RawThreadId, i32> = mutex.lock_arc();
    assert_eq!((*guard, *mutex.lock()), (2, 2));
}

/// Threads that come and go while others wait: no memory of an ended thread is in the way.
#[test]
fn threads_may_end() {
    let mutex = Mutex::new(0);
    for _ in 0..200 {
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| *mutex.lock() += 1);
            }
        });
    }
    assert_eq!(*mutex.lock(), 800);
}
