// SPDX-License-Identifier: MIT
use crate::tsan::{given, taken, taken_if};
use core::cell::UnsafeCell;
use flexguard_sys as sys;

/// A number of permits, which threads take and add.
///
/// ```
/// static PERMITS: flexguard::Semaphore = flexguard::Semaphore::new(1);
///
/// PERMITS.acquire();
/// assert!(!PERMITS.try_acquire());
/// PERMITS.release();
/// ```
pub struct Semaphore {
    sem: UnsafeCell<sys::fg_sem_t>,
}

// SAFETY: what is inside is the library's, which any thread may call.
unsafe impl Send for Semaphore {}
unsafe impl Sync for Semaphore {}

// A panic never leaves it half changed.
impl core::panic::RefUnwindSafe for Semaphore {}

impl Semaphore {
    /// The most permits that there can be: 2^31 - 1.
    pub const MAX_PERMITS: u32 = i32::MAX as u32;

    /// With so many permits.
    ///
    /// # Panics
    ///
    /// If they are more than [`Semaphore::MAX_PERMITS`].
    pub const fn new(permits: u32) -> Semaphore {
        assert!(permits <= Semaphore::MAX_PERMITS, "flexguard::Semaphore: too many permits");
        Semaphore { sem: UnsafeCell::new(sys::fg_sem_t { fg_state: permits as u64 }) }
    }

    /// Takes a permit; waits until there is one.
    #[inline]
    pub fn acquire(&self) {
        unsafe { sys::fg_sem_wait(self.sem.get()) };
        taken(self.sem.get());
    }

    /// Takes a permit if there is one.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        let sem = self.sem.get();
        taken_if(sem, unsafe { sys::fg_sem_trywait(sem) == 0 })
    }

    /// Adds a permit.  May be called from a signal handler.
    ///
    /// # Panics
    ///
    /// If there are [`Semaphore::MAX_PERMITS`] already.
    #[inline]
    pub fn release(&self) {
        given(self.sem.get());
        let error = unsafe { sys::fg_sem_post(self.sem.get()) };
        assert!(error == 0, "flexguard::Semaphore: too many permits");
    }
}

#[cfg(feature = "std")]
impl Semaphore {
    /// Takes a permit if there is one within that time.
    pub fn try_acquire_for(&self, timeout: std::time::Duration) -> bool {
        self.acquire_before(crate::deadline::after(timeout))
    }

    /// Takes a permit if there is one by then.
    pub fn try_acquire_until(&self, timeout: std::time::Instant) -> bool {
        self.acquire_before(crate::deadline::at(timeout))
    }

    fn acquire_before(&self, deadline: Option<libc::timespec>) -> bool {
        let sem = self.sem.get();
        let acquired = match deadline {
            Some(at) => unsafe { sys::fg_sem_timedwait(sem, libc::CLOCK_MONOTONIC, &at) == 0 },
            None => unsafe { sys::fg_sem_wait(sem) == 0 },
        };
        taken_if(sem, acquired)
    }
}

impl core::fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Semaphore { .. }")
    }
}
