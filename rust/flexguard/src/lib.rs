// SPDX-License-Identifier: MIT
//! Locks whose waiters spin while the critical path is running, and sleep the moment the scheduler
//! takes it off the CPU: FlexGuard's C library behind the types of [`lock_api`].
//!
//! ```
//! use std::sync::Arc;
//! use std::thread;
//!
//! let sum = Arc::new(flexguard::Mutex::new(0));
//! let threads: Vec<_> = (0..4)
//!     .map(|_| {
//!         let sum = Arc::clone(&sum);
//!         thread::spawn(move || *sum.lock() += 1)
//!     })
//!     .collect();
//! for thread in threads {
//!     thread.join().unwrap();
//! }
//! assert_eq!(*sum.lock(), 4);
//! ```
//!
//! - [`Mutex`], [`ReentrantMutex`], [`RwLock`], [`UpgradableRwLock`]: the types of `lock_api` over
//!   [`RawMutex`], [`RawRwLock`] and [`RawUpgradableRwLock`].  There is no poisoning: a panic
//!   releases what is locked.  Time limits are `try_lock_for`, `try_lock_until` and their like.
//! - [`Condvar`], [`Barrier`], [`Once`], [`Semaphore`].
//!
//! All can be made in a `static`, but for [`Barrier`], and none allocates.  What differs from
//! parking_lot: [`Condvar::notify_one`] and [`Condvar::notify_all`] do not tell how many they woke;
//! no lock is handed over by `unlock_fair`, and there is no `FairMutex`; a timed
//! [`Condvar::wait_while`] looks at its condition once more when the time is up, as std's does; and
//! only [`UpgradableRwLock`] can be upgraded and downgraded, for one more lock that its writers
//! take.
//!
//! Without the monitor (`flexguard monitor`, which needs no privilege of the programs that use it)
//! the locks are right, and decide by what they see themselves.
//!
//! Under ThreadSanitizer (`-Zsanitizer=thread`) the calls tell it what they order.
//!
//! A thread that waits must not be cancelled by `pthread_cancel`: Rust has no way to unwind there.
//! In the child of a `fork`, the forking thread may release what it held.
//!
//! # Features
//!
//! - `std` (on): time limits, by [`std::time::Instant`].  Without it the crate is `no_std`; it
//!   always links the C library.
//! - `send_guard`: a [`MutexGuard`] may be sent to another thread.
//! - `arc_lock`, `serde`: those of `lock_api`.
#![no_std]
#![warn(missing_docs)]
// flexguard_tsan, of build.rs; the oldest compilers know neither.
#![allow(unknown_lints, unexpected_cfgs)]

#[cfg(any(test, feature = "std"))]
extern crate std;

mod barrier;
mod condvar;
#[cfg(feature = "std")]
mod deadline;
mod mutex;
mod once;
mod rwlock;
mod semaphore;
mod tsan;
mod upgradable;

pub use lock_api;
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::Condvar;
#[cfg(feature = "std")]
pub use condvar::WaitTimeoutResult;
pub use mutex::{
    const_mutex, const_reentrant_mutex, MappedMutexGuard, MappedReentrantMutexGuard, Mutex,
    MutexGuard, RawMutex, RawThreadId, ReentrantMutex, ReentrantMutexGuard,
};
pub use once::{Once, OnceState};
pub use rwlock::{
    const_rwlock, MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLock,
    RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::Semaphore;
pub use upgradable::{
    RawUpgradableRwLock, UpgradableRwLock, UpgradableRwLockReadGuard,
    UpgradableRwLockUpgradableReadGuard, UpgradableRwLockWriteGuard,
};
