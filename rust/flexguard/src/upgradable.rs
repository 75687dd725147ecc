// SPDX-License-Identifier: MIT
//! A reader-writer lock whose reader may become its writer, out of two locks: all that write, or
//! may come to write, take their turn first.  Who has the turn may let go of the other lock and
//! take it again in another way, and nobody writes in between.
use crate::mutex::RawMutex;
use crate::rwlock::RawRwLock;
use lock_api::{RawMutex as _, RawRwLock as _};

/// The lock itself, without data.  To be used through [`UpgradableRwLock`].
pub struct RawUpgradableRwLock {
    turn: RawMutex,
    lock: RawRwLock,
}

// SAFETY: that of RawRwLock; the turn is held by at most one of the writers and upgradable readers.
unsafe impl lock_api::RawRwLock for RawUpgradableRwLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawUpgradableRwLock =
        RawUpgradableRwLock { turn: RawMutex::INIT, lock: RawRwLock::INIT };

    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        self.lock.lock_shared();
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.lock.try_lock_shared()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        self.lock.unlock_shared();
    }

    #[inline]
    fn lock_exclusive(&self) {
        self.turn.lock();
        self.lock.lock_exclusive();
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.turn.try_lock() && (self.lock.try_lock_exclusive() || self.no_turn())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        self.lock.unlock_exclusive();
        self.turn.unlock();
    }
}

impl RawUpgradableRwLock {
    /// Gives the turn back, for want of the lock.
    fn no_turn(&self) -> bool {
        // SAFETY: its callers have taken it.
        unsafe { self.turn.unlock() };
        false
    }

    /// Readers were in the way of its upgrade; nobody writes, so it is one of them again at once.
    fn reads_again(&self) -> bool {
        self.lock.lock_shared();
        false
    }

    /// SAFETY: the caller has the turn and the lock to write.
    #[inline]
    unsafe fn write_to_read(&self) {
        self.lock.unlock_exclusive();
        self.lock.lock_shared();
    }
}

// SAFETY: that of RawRwLock; readers do not take the turn.
unsafe impl lock_api::RawRwLockRecursive for RawUpgradableRwLock {
    #[inline]
    fn lock_shared_recursive(&self) {
        lock_api::RawRwLockRecursive::lock_shared_recursive(&self.lock);
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        self.lock.try_lock_shared()
    }
}

// SAFETY: the turn keeps all other writers away, the lock shared those that have the turn.
unsafe impl lock_api::RawRwLockUpgrade for RawUpgradableRwLock {
    #[inline]
    fn lock_upgradable(&self) {
        self.turn.lock();
        self.lock.lock_shared();
    }

    #[inline]
    fn try_lock_upgradable(&self) -> bool {
        self.turn.try_lock() && (self.lock.try_lock_shared() || self.no_turn())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        self.lock.unlock_shared();
        self.turn.unlock();
    }

    #[inline]
    unsafe fn upgrade(&self) {
        self.lock.unlock_shared();
        self.lock.lock_exclusive();
    }

    #[inline]
    unsafe fn try_upgrade(&self) -> bool {
        self.lock.unlock_shared();
        self.lock.try_lock_exclusive() || self.reads_again()
    }
}

// SAFETY: as with upgrade, nobody can write between the two.
unsafe impl lock_api::RawRwLockDowngrade for RawUpgradableRwLock {
    #[inline]
    unsafe fn downgrade(&self) {
        self.write_to_read();
        self.turn.unlock();
    }
}

unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawUpgradableRwLock {
    #[inline]
    unsafe fn downgrade_upgradable(&self) {
        self.turn.unlock();
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self) {
        self.write_to_read();
    }
}

#[cfg(feature = "std")]
mod timed {
    use super::RawUpgradableRwLock;
    use lock_api::{RawMutexTimed as _, RawRwLock as _, RawRwLockTimed};
    use std::time::{Duration, Instant};

    /// None: never.
    fn end(timeout: Duration) -> Option<Instant> {
        Instant::now().checked_add(timeout)
    }

    unsafe impl lock_api::RawRwLockTimed for RawUpgradableRwLock {
        type Duration = Duration;
        type Instant = Instant;

        fn try_lock_shared_for(&self, timeout: Duration) -> bool {
            self.lock.try_lock_shared_for(timeout)
        }

        fn try_lock_shared_until(&self, timeout: Instant) -> bool {
            self.lock.try_lock_shared_until(timeout)
        }

        fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
            match end(timeout) {
                Some(at) => self.try_lock_exclusive_until(at),
                None => {
                    self.lock_exclusive();
                    true
                }
            }
        }

        fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
            self.turn.try_lock_until(timeout)
                && (self.lock.try_lock_exclusive_until(timeout) || self.no_turn())
        }
    }

    unsafe impl lock_api::RawRwLockRecursiveTimed for RawUpgradableRwLock {
        fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
            self.lock.try_lock_shared_recursive_for(timeout)
        }

        fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
            self.lock.try_lock_shared_recursive_until(timeout)
        }
    }

    unsafe impl lock_api::RawRwLockUpgradeTimed for RawUpgradableRwLock {
        fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
            match end(timeout) {
                Some(at) => lock_api::RawRwLockUpgradeTimed::try_lock_upgradable_until(self, at),
                None => {
                    lock_api::RawRwLockUpgrade::lock_upgradable(self);
                    true
                }
            }
        }

        fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
            self.turn.try_lock_until(timeout)
                && (self.lock.try_lock_shared_until(timeout) || self.no_turn())
        }

        unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
            self.lock.unlock_shared();
            self.lock.try_lock_exclusive_for(timeout) || self.reads_again()
        }

        unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
            self.lock.unlock_shared();
            self.lock.try_lock_exclusive_until(timeout) || self.reads_again()
        }
    }
}

/// Many readers or one writer, and one of the readers may become the writer without anybody
/// writing in between.  A writer may become a reader in the same way.
///
/// ```
/// let names = flexguard::UpgradableRwLock::new(vec![]);
/// let found = names.upgradable_read();
/// if !found.contains(&"Ada") {
///     let mut names = flexguard::UpgradableRwLockUpgradableReadGuard::upgrade(found);
///     names.push("Ada");
///     let names = flexguard::UpgradableRwLockWriteGuard::downgrade(names);
///     assert_eq!(*names, ["Ada"]);
/// }
/// ```
pub type UpgradableRwLock<T> = lock_api::RwLock<RawUpgradableRwLock, T>;

/// Releases its [`UpgradableRwLock`], which it reads.
pub type UpgradableRwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawUpgradableRwLock, T>;

/// Releases its [`UpgradableRwLock`], which it writes.
pub type UpgradableRwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawUpgradableRwLock, T>;

/// Releases its [`UpgradableRwLock`], which it reads and may come to write.
pub type UpgradableRwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, RawUpgradableRwLock, T>;
