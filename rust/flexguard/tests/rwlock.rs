// SPDX-License-Identifier: MIT
mod common;
use common::{hammer, until, Pair, LONG, SHORT};
use flexguard::lock_api::{
    self, RawRwLock as Raw, RawRwLockDowngrade as _, RawRwLockUpgrade as _,
    RawRwLockUpgradeDowngrade as _,
};
use flexguard::{
    RawRwLock, RawUpgradableRwLock, RwLock, UpgradableRwLock,
    UpgradableRwLockUpgradableReadGuard as Upgradable, UpgradableRwLockWriteGuard as Write,
};
use std::mem::ManuallyDrop;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What readers saw of a half-made change; `write_share`: one call in so many writes.
fn half_changes<R: Raw + Sync>(threads: usize, calls: usize, write_share: usize) -> u64 {
    let (lock, pair) = (R::INIT, Pair::new());
    let (seen, writes) = (AtomicU64::new(0), AtomicU64::new(0));
    hammer(threads, calls, |i| {
        if i % write_share == 0 {
            lock.lock_exclusive();
            pair.write(true);
            unsafe { lock.unlock_exclusive() };
            writes.fetch_add(1, Ordering::Relaxed);
        } else {
            lock.lock_shared();
            let whole = pair.read();
            unsafe { lock.unlock_shared() };
            if whole.is_none() {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let lost = pair.read() != Some(writes.into_inner());
    seen.into_inner() + u64::from(lost)
}

/// A lock that anybody gets: the check above has to see it.
struct Broken;

unsafe impl Raw for Broken {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Broken = Broken;
    type GuardMarker = lock_api::GuardNoSend;
    fn lock_shared(&self) {}
    fn try_lock_shared(&self) -> bool {
        true
    }
    unsafe fn unlock_shared(&self) {}
    fn lock_exclusive(&self) {}
    fn try_lock_exclusive(&self) -> bool {
        true
    }
    unsafe fn unlock_exclusive(&self) {}
}

/// What lock_api promises of these: while another thread reads they do not wait, though a writer
/// does, whose turn a plain read would leave it for 10 ms.
#[test]
fn a_recursive_read_passes_a_waiting_writer() {
    fn check<R: lock_api::RawRwLockRecursiveTimed<Duration = Duration> + Sync>() {
        let (lock, asks) = (R::INIT, AtomicUsize::new(0));
        lock.lock_shared();
        thread::scope(|s| {
            s.spawn(|| {
                asks.store(1, Ordering::SeqCst);
                lock.lock_exclusive();
                unsafe { lock.unlock_exclusive() };
            });
            s.spawn(|| {
                until(|| asks.load(Ordering::SeqCst) == 1);
                thread::sleep(SHORT);
                let got = lock.try_lock_shared_recursive_for(Duration::from_millis(1));
                if got {
                    unsafe { lock.unlock_shared() };
                }
                asks.store(if got { 2 } else { 3 }, Ordering::SeqCst);
            });
            until(|| asks.load(Ordering::SeqCst) > 1);
            unsafe { lock.unlock_shared() };
        });
        assert_eq!(asks.into_inner(), 2);
    }
    check::<RawRwLock>();
    check::<RawUpgradableRwLock>();
}

#[test]
fn writers_exclude_all() {
    for write_share in [2, 16] {
        assert_eq!(half_changes::<RawRwLock>(9, 500, write_share), 0);
        assert_eq!(half_changes::<RawUpgradableRwLock>(9, 500, write_share), 0);
    }
}

#[test]
fn a_lock_that_does_not_exclude_is_seen() {
    until(|| half_changes::<Broken>(9, 500, 2) > 0);
}

#[test]
fn readers_share_it() {
    let lock = RwLock::new(0);
    let inside = AtomicUsize::new(0);
    thread::scope(|s| {
        for _ in 0..5 {
            s.spawn(|| {
                let _guard = lock.read();
                inside.fetch_add(1, Ordering::Relaxed);
                until(|| inside.load(Ordering::Relaxed) == 5);
            });
        }
    });
    assert!(lock.try_write().is_some());
}

#[test]
fn tries_and_time_limits() {
    let lock = RwLock::new(());
    let never = |f: &(dyn Fn() -> bool + Sync)| thread::scope(|s| s.spawn(f).join().unwrap());
    let reader = lock.read();
    assert!(never(&|| lock.try_write().is_none()));
    assert!(never(&|| lock.try_write_for(SHORT).is_none()));
    assert!(never(&|| lock.try_write_until(Instant::now() + SHORT).is_none()));
    assert!(never(&|| lock.try_read().is_some()));
    assert!(never(&|| lock.try_read_for(LONG).is_some()));
    drop(reader);
    let writer = lock.write();
    assert!(never(&|| lock.try_read().is_none()));
    assert!(never(&|| lock.try_read_for(SHORT).is_none()));
    assert!(never(&|| lock.try_read_recursive_for(Duration::ZERO).is_none()));
    drop(writer);
    assert!(lock.try_read_for(Duration::MAX).is_some());
    assert!(lock.try_write_for(Duration::MAX).is_some());
}

#[test]
fn a_reader_reads_again_though_a_writer_waits() {
    let lock = RwLock::new(0);
    thread::scope(|s| {
        let outer = lock.read();
        s.spawn(|| *lock.write() = 1);
        // Whether the writer waits by now nobody can see; it cannot have been let in.
        thread::sleep(SHORT);
        assert_eq!(*lock.read_recursive(), 0);
        drop(outer);
    });
    assert_eq!(*lock.read(), 1);
}

#[test]
fn a_writer_that_asks_again_is_told() {
    let lock = RwLock::new(());
    let _guard = lock.write();
    for again in [&(|| drop(lock.read())) as &dyn Fn(), &|| drop(lock.write())] {
        assert!(catch_unwind(AssertUnwindSafe(again)).is_err());
    }
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
}

#[test]
fn an_upgradable_reader_is_alone_of_its_kind() {
    let lock = UpgradableRwLock::new(1);
    let first = lock.upgradable_read();
    assert!(lock.try_upgradable_read().is_none());
    assert!(lock.try_upgradable_read_for(SHORT).is_none());
    assert!(lock.try_write().is_none());
    assert_eq!(*lock.try_read().expect("beside readers"), 1);
    drop(first);
    assert!(lock.try_upgradable_read_for(Duration::MAX).is_some());
}

#[test]
fn a_reader_in_the_way_of_an_upgrade() {
    let lock = UpgradableRwLock::new(1);
    let reader = lock.read();
    let first = lock.upgradable_read();
    let first = Upgradable::try_upgrade(first).expect_err("a reader is in its way");
    let first = Upgradable::try_upgrade_for(first, SHORT).expect_err("still");
    // It reads still, and is the one that may upgrade.
    assert_eq!((*first, *reader), (1, 1));
    assert!(lock.try_upgradable_read().is_none());
    drop(reader);
    let mut writer = Upgradable::try_upgrade(first).expect("nobody is in its way");
    *writer = 2;
    let reader = Write::downgrade(writer);
    assert_eq!((*reader, *lock.read()), (2, 2));
}

/// What is seen before an upgrade or a downgrade is there after it, whoever writes beside it.
#[test]
fn nobody_writes_between() {
    let (lock, pair) = (RawUpgradableRwLock::INIT, Pair::new());
    let wrong = AtomicU64::new(0);
    hammer(6, 400, |i| {
        // SAFETY: by the lock.
        unsafe {
            if i % 3 == 0 {
                lock.lock_exclusive();
                pair.write(true);
                lock.unlock_exclusive();
                return;
            }
            lock.lock_upgradable();
            let before = pair.read();
            lock.upgrade();
            let here = pair.read();
            pair.write(false);
            let after = if i % 3 == 1 {
                lock.downgrade();
                let after = pair.read();
                lock.unlock_shared();
                after
            } else {
                lock.downgrade_to_upgradable();
                let after = pair.read();
                lock.unlock_upgradable();
                after
            };
            if before.is_none() || before != here || after != before.map(|n| n + 1) {
                wrong.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert_eq!(wrong.into_inner(), 0);
}

/// By several threads, so that readers are found in the library's table (the bias).
fn read_often(lock: &RwLock<i32>) {
    for _ in 0..40 {
        thread::scope(|s| {
            s.spawn(|| drop(lock.read()));
        });
        drop(lock.read());
    }
}

/// Nor does its thread say for ever that it is in a section, whoever drops it.
#[test]
fn a_forgotten_writer_is_none_of_a_dropped_lock() {
    for by_another in [false, true] {
        let mut place = Box::new(ManuallyDrop::new(RawRwLock::INIT));
        place.lock_exclusive();
        // SAFETY: it is dropped once, and only its words are read after that.
        if by_another {
            thread::scope(|s| {
                s.spawn(|| unsafe { ManuallyDrop::drop(&mut place) });
            });
        } else {
            unsafe { ManuallyDrop::drop(&mut place) };
        }
        let left = std::ptr::addr_of!(*place).cast::<flexguard_sys::fg_rwlock_t>();
        assert_eq!(unsafe { (*left).fg_state[0] }, 0, "by another thread: {by_another}");
    }
}

#[test]
fn a_forgotten_reader_is_none_of_the_next_lock() {
    let mut lock = Box::new(RwLock::new(0));
    read_often(&lock);
    std::mem::forget(lock.read());
    *lock = RwLock::new(0);
    read_often(&lock);
    assert!(lock.try_write_for(LONG).is_some());
}
