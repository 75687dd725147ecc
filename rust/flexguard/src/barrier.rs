// SPDX-License-Identifier: MIT
use crate::tsan::{given, taken};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use flexguard_sys as sys;

/// Lets nobody pass until so many threads have come, again and again.
///
/// ```
/// let barrier = flexguard::Barrier::new(2);
/// std::thread::scope(|s| {
///     let other = s.spawn(|| barrier.wait().is_leader());
///     let this = barrier.wait().is_leader();
///     assert_ne!(this, other.join().unwrap());
/// });
/// ```
// What the library has in it lies where a 64-bit word can, which the four bytes that the C type is
// aligned to leave open: with eight it is the same place wherever a barrier is moved to.
#[repr(align(8))]
pub struct Barrier {
    barrier: UnsafeCell<sys::fg_barrier_t>,
}

// SAFETY: what is inside is the library's, which any thread may call.
unsafe impl Send for Barrier {}
unsafe impl Sync for Barrier {}

// A panic never leaves it half changed.
impl core::panic::RefUnwindSafe for Barrier {}

/// Which one of the threads that have passed a [`Barrier`] together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// True of one thread in each round.
    #[inline]
    pub fn is_leader(self) -> bool {
        self.0
    }
}

impl Barrier {
    /// For `n` threads; 0 is the same as 1, which never waits.
    ///
    /// # Panics
    ///
    /// If `n` is more than 2^31 - 2.
    pub fn new(n: usize) -> Barrier {
        let count = u32::try_from(n.max(1)).unwrap_or(u32::MAX);
        let mut barrier = MaybeUninit::uninit();
        // SAFETY: it fills what it is given, which may be moved: see the alignment.
        let error = unsafe { sys::fg_barrier_init(barrier.as_mut_ptr(), count) };
        assert!(error == 0, "flexguard::Barrier: more than 2^31 - 2 threads");
        Barrier { barrier: UnsafeCell::new(unsafe { barrier.assume_init() }) }
    }

    /// Waits until all have come.
    #[inline]
    pub fn wait(&self) -> BarrierWaitResult {
        given(self.barrier.get());
        let status = unsafe { sys::fg_barrier_wait(self.barrier.get()) };
        taken(self.barrier.get());
        BarrierWaitResult(status == sys::FG_BARRIER_SERIAL)
    }
}

impl Drop for Barrier {
    /// Waits for those of the last round that have not left it.
    fn drop(&mut self) {
        unsafe { sys::fg_barrier_destroy(self.barrier.get()) };
    }
}

impl core::fmt::Debug for Barrier {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Barrier { .. }")
    }
}
