// SPDX-License-Identifier: MIT
//! What several tests share.
#![allow(dead_code)]
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Long: nothing waits so long in a test that holds.
pub const LONG: Duration = Duration::from_secs(60);
/// Short, for what is to time out.
pub const SHORT: Duration = Duration::from_millis(20);

/// Two words that are equal whenever nobody writes, and a yield between the writes.  What keeps
/// their order is the lock alone.
pub struct Pair(AtomicU64, AtomicU64);

impl Pair {
    pub const fn new() -> Pair {
        Pair(AtomicU64::new(0), AtomicU64::new(0))
    }

    /// To be called by one thread at a time.
    pub fn write(&self, pause: bool) {
        let next = self.0.load(Ordering::Relaxed) + 1;
        self.0.store(next, Ordering::Relaxed);
        if pause {
            thread::yield_now();
        }
        self.1.store(next, Ordering::Relaxed);
    }

    /// Its value, or None: somebody writes.
    pub fn read(&self) -> Option<u64> {
        let one = self.0.load(Ordering::Relaxed);
        thread::yield_now();
        let other = self.1.load(Ordering::Relaxed);
        (one == other).then_some(one)
    }
}

/// Waits until it is true; a test that waits for ever has failed.
pub fn until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "nothing came of it in {LONG:?}");
        thread::yield_now();
    }
}

/// `threads` threads that call `f` so often; how many calls there were.
pub fn hammer(threads: usize, calls: usize, f: impl Fn(usize) + Sync) -> usize {
    let done = AtomicUsize::new(0);
    thread::scope(|s| {
        for thread in 0..threads {
            let (f, done) = (&f, &done);
            s.spawn(move || {
                for call in 0..calls {
                    f(thread + call);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    done.into_inner()
}
