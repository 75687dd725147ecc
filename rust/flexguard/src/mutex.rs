// SPDX-License-Identifier: MIT
use crate::tsan::{given, taken, taken_if};
use core::cell::UnsafeCell;
use core::num::NonZeroUsize;
use flexguard_sys as sys;

/// The lock itself, without data: 40 bytes.  To be used through [`Mutex`] and [`ReentrantMutex`],
/// or where a type takes any [`lock_api::RawMutex`].
///
/// One whose guard was forgotten (`mem::forget`) is released when it is dropped, if it is where it
/// was locked: until then the library knows its address, and its thread looks as if others might
/// wait for it.  Where it was moved in between, the library never writes to the old address
/// (`FG_MUTEX_MOVABLE`).
pub struct RawMutex {
    pub(crate) mutex: UnsafeCell<sys::fg_mutex_t>,
}

// SAFETY: what is inside is the library's, which any thread may call.
unsafe impl Send for RawMutex {}
unsafe impl Sync for RawMutex {}

// A panic never leaves it half changed.
impl core::panic::RefUnwindSafe for RawMutex {}

impl Drop for RawMutex {
    /// The thread that has it would say of itself, for ever, that others may wait for it.
    #[inline]
    fn drop(&mut self) {
        let mutex = self.mutex.get();
        unsafe {
            if sys::fg_mutex_destroy(mutex) != 0 {
                sys::fg_mutex_unlock(mutex);
            }
        }
    }
}

// SAFETY: a mutex of FG_MUTEX_MOVABLE excludes; it reports no error but EBUSY of the try, and any
// thread may release it.
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawMutex = RawMutex { mutex: UnsafeCell::new(sys::FG_MOVABLE_MUTEX_INIT) };

    #[cfg(feature = "send_guard")]
    type GuardMarker = lock_api::GuardSend;
    #[cfg(not(feature = "send_guard"))]
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        unsafe { sys::fg_mutex_lock(self.mutex.get()) };
        taken(self.mutex.get());
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let mutex = self.mutex.get();
        taken_if(mutex, unsafe { sys::fg_mutex_trylock(mutex) == 0 })
    }

    #[inline]
    unsafe fn unlock(&self) {
        given(self.mutex.get());
        sys::fg_mutex_unlock(self.mutex.get());
    }
}

#[cfg(feature = "std")]
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = std::time::Duration;
    type Instant = std::time::Instant;

    fn try_lock_for(&self, timeout: std::time::Duration) -> bool {
        self.lock_before(crate::deadline::after(timeout))
    }

    fn try_lock_until(&self, timeout: std::time::Instant) -> bool {
        self.lock_before(crate::deadline::at(timeout))
    }
}

#[cfg(feature = "std")]
impl RawMutex {
    fn lock_before(&self, deadline: Option<libc::timespec>) -> bool {
        let mutex = self.mutex.get();
        let locked = match deadline {
            Some(at) => unsafe { sys::fg_mutex_timedlock(mutex, libc::CLOCK_MONOTONIC, &at) == 0 },
            None => unsafe { sys::fg_mutex_lock(mutex) == 0 },
        };
        taken_if(mutex, locked)
    }
}

/// Who owns a [`ReentrantMutex`]: the thread's `pthread_self`.
pub struct RawThreadId;

// SAFETY: no two living threads have the same, and it is an address, which is not 0.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: RawThreadId = RawThreadId;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        NonZeroUsize::new(unsafe { libc::pthread_self() } as usize).expect("pthread_self")
    }
}

/// One thread at a time.  See [`lock_api::Mutex`] for what it can do.
///
/// ```
/// static NAMES: flexguard::Mutex<Vec<String>> = flexguard::const_mutex(Vec::new());
///
/// NAMES.lock().push("Ada".to_string());
/// # #[cfg(feature = "std")] // the time limit
/// if let Some(names) = NAMES.try_lock_for(std::time::Duration::from_millis(10)) {
///     assert_eq!(names.len(), 1);
/// }
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// Releases its [`Mutex`] when it goes out of scope.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// A [`MutexGuard`] of a part of what the mutex guards.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// One thread at a time, which may lock it again; what it guards is therefore shared, not mutable.
///
/// ```
/// let log = flexguard::ReentrantMutex::new(std::cell::RefCell::new(Vec::new()));
/// let outer = log.lock();
/// let inner = log.lock();
/// outer.borrow_mut().push(1);
/// assert_eq!(inner.borrow().len(), 1);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;

/// Releases its [`ReentrantMutex`], once, when it goes out of scope.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// A [`ReentrantMutexGuard`] of a part of what the mutex guards.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// A mutex for a `static`.
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, value)
}

/// A reentrant mutex for a `static`.
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, RawThreadId, value)
}
