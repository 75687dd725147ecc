// SPDX-License-Identifier: MIT
//! ThreadSanitizer does not see into the library: under it (`-Zsanitizer=thread`, build.rs) calls
//! tell it what they order, as those of `flexguard_tsan.h` do in C.

#[cfg(flexguard_tsan)]
extern "C" {
    fn __tsan_acquire(object: *mut core::ffi::c_void);
    fn __tsan_release(object: *mut core::ffi::c_void);
}

/// What follows comes after those that gave the object.
#[inline(always)]
pub(crate) fn taken<T>(object: *mut T) {
    #[cfg(flexguard_tsan)]
    unsafe {
        __tsan_acquire(object.cast())
    };
    let _ = object;
}

/// What was done before comes before those that take the object.
#[inline(always)]
pub(crate) fn given<T>(object: *mut T) {
    #[cfg(flexguard_tsan)]
    unsafe {
        __tsan_release(object.cast())
    };
    let _ = object;
}

/// The object is taken, if `is`.
#[inline(always)]
pub(crate) fn taken_if<T>(object: *mut T, is: bool) -> bool {
    if is {
        taken(object);
    }
    is
}
