// SPDX-License-Identifier: MIT
//! What each lock orders, for ThreadSanitizer (rust/tsan): numbers that are no atomics, and nothing
//! of std's but threads, which it does not see into either.  With `unlocked` nothing orders one.
use flexguard::lock_api::RawRwLockUpgrade as _;
use flexguard::lock_api::{RawMutex as _, RawMutexTimed as _, RawRwLock as _, RawRwLockTimed as _};
use flexguard::{
    Barrier, Condvar, Mutex, Once, RawMutex, RawRwLock, RawUpgradableRwLock, Semaphore,
};
use std::cell::UnsafeCell;
use std::thread;
use std::time::Duration;

const THREADS: u64 = 4;
const ROUNDS: u64 = 300;
const LONG: Duration = Duration::from_secs(60);

/// What a lock guards, in plain memory.
struct Plain(UnsafeCell<u64>);

// SAFETY: each use stands between two calls that order it.
unsafe impl Sync for Plain {}

impl Plain {
    const fn new() -> Plain {
        Plain(UnsafeCell::new(0))
    }
    fn add(&self) {
        unsafe { *self.0.get() += 1 };
    }
    fn get(&self) -> u64 {
        unsafe { *self.0.get() }
    }
}

/// Their ends are seen, by pthread_join(): that of a scope is std's own.
fn by_all(f: impl Fn(u64) + Sync) {
    thread::scope(|s| {
        let threads: Vec<_> = (0..THREADS).map(|_| s.spawn(|| (0..ROUNDS).for_each(&f))).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

fn mutex(n: &Plain) {
    let raw = RawMutex::INIT;
    by_all(|i| {
        match i % 3 {
            0 => raw.lock(),
            1 => while !raw.try_lock() {},
            _ => assert!(raw.try_lock_for(LONG)),
        }
        n.add();
        unsafe { raw.unlock() };
    });
}

fn rwlock(n: &Plain) {
    let raw = RawRwLock::INIT;
    by_all(|i| {
        match i % 3 {
            0 => raw.lock_exclusive(),
            1 => while !raw.try_lock_exclusive() {},
            _ => assert!(raw.try_lock_exclusive_for(LONG)),
        }
        n.add();
        unsafe { raw.unlock_exclusive() };
        match i % 3 {
            0 => raw.lock_shared(),
            1 => while !raw.try_lock_shared() {},
            _ => assert!(raw.try_lock_shared_for(LONG)),
        }
        assert!(n.get() > i);
        unsafe { raw.unlock_shared() };
    });
}

fn upgradable(n: &Plain) {
    let raw = RawUpgradableRwLock::INIT;
    by_all(|i| {
        raw.lock_upgradable();
        assert!(n.get() >= i);
        unsafe { raw.upgrade() };
        n.add();
        unsafe { raw.unlock_exclusive() };
    });
}

fn semaphore(n: &Plain) {
    let one = Semaphore::new(1);
    by_all(|i| {
        match i % 3 {
            0 => one.acquire(),
            1 => while !one.try_acquire() {},
            _ => assert!(one.try_acquire_for(LONG)),
        }
        n.add();
        one.release();
    });
}

fn barrier(n: &Plain) {
    let all = Barrier::new(THREADS as usize);
    by_all(|_| {
        if all.wait().is_leader() {
            n.add();
        }
        all.wait();
        assert!(n.get() > 0);
    });
}

/// In turn; the number itself is what they wait for.
fn condvar(n: &Plain) {
    let (mutex, changed) = (Mutex::new(()), Condvar::new());
    by_all(|i| {
        let mut guard = mutex.lock();
        while n.get() < i * THREADS {
            if i % 2 == 0 {
                changed.wait(&mut guard);
            } else {
                changed.wait_for(&mut guard, LONG);
            }
        }
        n.add();
        changed.notify_all();
    });
}

fn once(n: &Plain) {
    let once = Once::new();
    by_all(|_| {
        once.call_once(|| n.add());
        assert_eq!(n.get(), 1);
    });
}

fn main() {
    let all = THREADS * ROUNDS;
    let tests = [
        (mutex as fn(&Plain), all),
        (rwlock, all),
        (upgradable, all),
        (semaphore, all),
        (barrier, ROUNDS),
        (condvar, all),
        (once, 1),
    ];
    for (test, sum) in tests {
        let n = Plain::new();
        test(&n);
        assert_eq!(n.get(), sum);
    }
    if std::env::args().any(|a| a == "unlocked") {
        let n = Plain::new();
        by_all(|_| n.add());
    }
}
