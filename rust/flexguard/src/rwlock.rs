// SPDX-License-Identifier: MIT
use crate::tsan::{given, taken, taken_if};
use core::cell::UnsafeCell;
use flexguard_sys as sys;

/// The lock itself, without data: 56 bytes.  To be used through [`RwLock`].
///
/// Readers let a writer that waits go first, so that writers do not starve; a thread may read again
/// what it reads already.  A thread that writes and asks for the lock again gets a panic, one that
/// reads and asks to write waits for itself.  More than 2^28 - 2^23 readers abort the program.
///
/// Readers may stand in a table of the library, by the address of the lock.  So a read guard that was
/// forgotten (`mem::forget`) may keep no writer out any more once the lock has been moved, and keep
/// those of the next lock at the old address out.  Who holds a lock without its guard
/// (`force_unlock_read`) has it where it stays: in a `static`, a `Box`, an `Arc`.
pub struct RawRwLock {
    rwlock: UnsafeCell<sys::fg_rwlock_t>,
}

// SAFETY: what is inside is the library's, which any thread may call.
unsafe impl Send for RawRwLock {}
unsafe impl Sync for RawRwLock {}

// A panic never leaves it half changed.
impl core::panic::RefUnwindSafe for RawRwLock {}

impl Drop for RawRwLock {
    /// The thread that has it to write would say of itself, for ever, that others may wait for it.
    #[inline]
    fn drop(&mut self) {
        unsafe { sys::fg_rwlock_destroy(self.rwlock.get()) };
    }
}

/// What the library says of a lock, not of a try or a time limit: the caller is wrong (EDEADLK), or
/// there are 2^28 - 2^23 readers (EAGAIN).  These are guards that were forgotten; it ends as an `Arc`
/// of too many does, since a panic in the middle of an upgrade would release what is not locked.
#[cold]
#[inline(never)]
fn refused(error: i32) -> ! {
    match error {
        libc::EDEADLK => panic!("flexguard::RwLock: this thread has it to write already"),
        libc::EAGAIN => unsafe { libc::abort() },
        _ => panic!("flexguard::RwLock: error {error}"),
    }
}

#[inline]
fn granted(error: i32) {
    if error != 0 {
        refused(error);
    }
}

// SAFETY: writers exclude all, readers writers; what cannot be had panics and is not locked.
unsafe impl lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawRwLock = RawRwLock { rwlock: UnsafeCell::new(sys::FG_RWLOCK_INIT) };

    // Whoever has locked it releases it.
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        granted(unsafe { sys::fg_rwlock_rdlock(self.rwlock.get()) });
        taken(self.rwlock.get());
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        let rwlock = self.rwlock.get();
        taken_if(rwlock, unsafe { sys::fg_rwlock_tryrdlock(rwlock) == 0 })
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        given(self.rwlock.get());
        sys::fg_rwlock_unlock(self.rwlock.get());
    }

    #[inline]
    fn lock_exclusive(&self) {
        granted(unsafe { sys::fg_rwlock_wrlock(self.rwlock.get()) });
        taken(self.rwlock.get());
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        let rwlock = self.rwlock.get();
        taken_if(rwlock, unsafe { sys::fg_rwlock_trywrlock(rwlock) == 0 })
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        given(self.rwlock.get());
        sys::fg_rwlock_unlock(self.rwlock.get());
    }
}

// SAFETY: the default kind lets a reader in again, whoever waits; a try also passes a writer that
// waits for another thread that reads, without the time that a plain lock gives that writer.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) {
        if !lock_api::RawRwLock::try_lock_shared(self) {
            lock_api::RawRwLock::lock_shared(self);
        }
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        lock_api::RawRwLock::try_lock_shared(self)
    }
}

#[cfg(feature = "std")]
mod timed {
    use super::{refused, sys, taken, RawRwLock};
    use crate::deadline;
    use libc::timespec;
    use std::time::{Duration, Instant};

    type Timed =
        unsafe extern "C" fn(*mut sys::fg_rwlock_t, libc::clockid_t, *const timespec) -> i32;

    impl RawRwLock {
        fn before(&self, deadline: Option<timespec>, lock: Timed) -> bool {
            // The end of its time is never seen by anybody who asks for no end.
            let never = timespec { tv_sec: libc::time_t::MAX, tv_nsec: 0 };
            let at = deadline.unwrap_or(never);
            match unsafe { lock(self.rwlock.get(), libc::CLOCK_MONOTONIC, &at) } {
                0 => {
                    taken(self.rwlock.get());
                    true
                }
                libc::ETIMEDOUT => false,
                error => refused(error),
            }
        }
    }

    unsafe impl lock_api::RawRwLockTimed for RawRwLock {
        type Duration = Duration;
        type Instant = Instant;

        fn try_lock_shared_for(&self, timeout: Duration) -> bool {
            self.before(deadline::after(timeout), sys::fg_rwlock_timedrdlock)
        }

        fn try_lock_shared_until(&self, timeout: Instant) -> bool {
            self.before(deadline::at(timeout), sys::fg_rwlock_timedrdlock)
        }

        fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
            self.before(deadline::after(timeout), sys::fg_rwlock_timedwrlock)
        }

        fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
            self.before(deadline::at(timeout), sys::fg_rwlock_timedwrlock)
        }
    }

    unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
        fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
            lock_api::RawRwLock::try_lock_shared(self)
                || lock_api::RawRwLockTimed::try_lock_shared_for(self, timeout)
        }

        fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
            lock_api::RawRwLock::try_lock_shared(self)
                || lock_api::RawRwLockTimed::try_lock_shared_until(self, timeout)
        }
    }
}

/// Many readers or one writer.  See [`lock_api::RwLock`] for what it can do.
///
/// ```
/// let words = flexguard::RwLock::new(vec!["spin"]);
/// {
///     let (one, another) = (words.read(), words.read_recursive());
///     assert_eq!(one.len(), another.len());
/// }
/// words.write().push("sleep");
/// assert_eq!(words.read().len(), 2);
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// Releases its [`RwLock`], which it reads, when it goes out of scope.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;

/// Releases its [`RwLock`], which it writes, when it goes out of scope.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// A [`RwLockReadGuard`] of a part of what the lock guards.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;

/// A [`RwLockWriteGuard`] of a part of what the lock guards.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// A reader-writer lock for a `static`.
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::const_new(<RawRwLock as lock_api::RawRwLock>::INIT, value)
}
