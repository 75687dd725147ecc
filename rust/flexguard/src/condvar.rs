// SPDX-License-Identifier: MIT
use crate::mutex::MutexGuard;
use crate::tsan::{given, taken};
use core::cell::UnsafeCell;
use flexguard_sys as sys;

/// Where threads that hold a [`Mutex`](crate::Mutex) wait for what it guards to change.
///
/// A wait may end without a signal: [`Condvar::wait_while`] looks at the condition each time.
/// Different mutexes may be used with one condition variable.
///
/// ```
/// use flexguard::{Condvar, Mutex};
///
/// let ready = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         *ready.0.lock() = true;
///         ready.1.notify_one();
///     });
///     let mut is_ready = ready.0.lock();
///     ready.1.wait_while(&mut is_ready, |is_ready| !*is_ready);
///     assert!(*is_ready);
/// });
/// ```
pub struct Condvar {
    cond: UnsafeCell<sys::fg_cond_t>,
}

// SAFETY: what is inside is the library's, which any thread may call.
unsafe impl Send for Condvar {}
unsafe impl Sync for Condvar {}

// A panic never leaves it half changed.
impl core::panic::RefUnwindSafe for Condvar {}

impl Condvar {
    /// With nobody waiting.
    pub const fn new() -> Condvar {
        Condvar { cond: UnsafeCell::new(sys::FG_COND_INIT) }
    }

    /// Wakes one of the threads that wait now, if any does.
    #[inline]
    pub fn notify_one(&self) {
        unsafe { sys::fg_cond_signal(self.cond.get()) };
    }

    /// Wakes all threads that wait now.
    #[inline]
    pub fn notify_all(&self) {
        unsafe { sys::fg_cond_broadcast(self.cond.get()) };
    }

    /// Releases the mutex, sleeps until woken (or without a reason), and has the mutex again.
    #[inline]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        let mutex = mutex_of(guard);
        given(mutex);
        // SAFETY: the guard says that this thread has the mutex locked, once.
        unsafe { sys::fg_cond_wait(self.cond.get(), mutex) };
        taken(mutex);
    }

    /// Waits as long as `condition` is true of what the mutex guards.
    pub fn wait_while<T, F>(&self, guard: &mut MutexGuard<'_, T>, mut condition: F)
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut **guard) {
            self.wait(guard);
        }
    }
}

fn mutex_of<T: ?Sized>(guard: &mut MutexGuard<'_, T>) -> *mut sys::fg_mutex_t {
    // SAFETY: only its address is used, by the library, in the way of its own condition variables.
    unsafe { MutexGuard::mutex(guard).raw() }.mutex.get()
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl core::fmt::Debug for Condvar {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Condvar { .. }")
    }
}

#[cfg(feature = "std")]
pub use timed::WaitTimeoutResult;

#[cfg(feature = "std")]
mod timed {
    use super::{given, mutex_of, sys, taken, Condvar};
    use crate::{deadline, MutexGuard};
    use libc::timespec;
    use std::time::{Duration, Instant};

    /// Whether the time was up.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct WaitTimeoutResult(bool);

    impl WaitTimeoutResult {
        /// Whether the wait ended because its time was up.
        #[inline]
        pub fn timed_out(self) -> bool {
            self.0
        }
    }

    impl Condvar {
        fn wait_before<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            deadline: Option<timespec>,
        ) -> WaitTimeoutResult {
            let (cond, mutex) = (self.cond.get(), mutex_of(guard));
            given(mutex);
            // SAFETY: as in wait.
            let status = match deadline {
                Some(at) => unsafe {
                    sys::fg_cond_timedwait(cond, mutex, libc::CLOCK_MONOTONIC, &at)
                },
                None => unsafe { sys::fg_cond_wait(cond, mutex) },
            };
            taken(mutex);
            WaitTimeoutResult(status == libc::ETIMEDOUT)
        }

        /// [`Condvar::wait`], but not longer than `timeout`; it has the mutex again either way.
        pub fn wait_for<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            timeout: Duration,
        ) -> WaitTimeoutResult {
            self.wait_before(guard, deadline::after(timeout))
        }

        /// [`Condvar::wait`], but not after `timeout`; it has the mutex again either way.
        pub fn wait_until<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            timeout: Instant,
        ) -> WaitTimeoutResult {
            self.wait_before(guard, deadline::at(timeout))
        }

        /// [`Condvar::wait_while`], but not longer than `timeout`.  The time was up only if the
        /// condition is still true.
        pub fn wait_while_for<T, F>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            condition: F,
            timeout: Duration,
        ) -> WaitTimeoutResult
        where
            T: ?Sized,
            F: FnMut(&mut T) -> bool,
        {
            self.wait_while_before(guard, condition, deadline::after(timeout))
        }

        /// [`Condvar::wait_while`], but not after `timeout`.  The time was up only if the condition
        /// is still true.
        pub fn wait_while_until<T, F>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            condition: F,
            timeout: Instant,
        ) -> WaitTimeoutResult
        where
            T: ?Sized,
            F: FnMut(&mut T) -> bool,
        {
            self.wait_while_before(guard, condition, deadline::at(timeout))
        }

        fn wait_while_before<T, F>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            mut condition: F,
            deadline: Option<timespec>,
        ) -> WaitTimeoutResult
        where
            T: ?Sized,
            F: FnMut(&mut T) -> bool,
        {
            let mut result = WaitTimeoutResult(false);
            while condition(&mut **guard) {
                if result.timed_out() {
                    return result;
                }
                result = self.wait_before(guard, deadline);
            }
            WaitTimeoutResult(false)
        }
    }
}
