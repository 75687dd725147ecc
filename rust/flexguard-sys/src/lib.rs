// SPDX-License-Identifier: MIT
//! The C API of FlexGuard as `flexguard.h` has it, which says what each function does and returns.
//! The crate `flexguard` has the types that a Rust program uses.
#![no_std]
#![allow(non_camel_case_types)]

use libc::{clockid_t, timespec};

/// `fg_mutex_t`; its contents are the library's.
#[repr(C)]
pub struct fg_mutex_t {
    pub fg_state: [u64; 2],
    pub fg_kind: u32,
    pub fg_more: [u32; 5],
}

/// `fg_cond_t`; its contents are the library's.
#[repr(C)]
pub struct fg_cond_t {
    pub fg_state: [u64; 6],
}

/// `fg_rwlock_t`; its contents are the library's.
#[repr(C)]
pub struct fg_rwlock_t {
    pub fg_state: [u64; 6],
    pub fg_kind: u32,
    pub fg_more: u32,
}

/// `fg_barrier_t`; its contents are the library's.
#[repr(C)]
pub struct fg_barrier_t {
    pub fg_state: [u32; 8],
}

/// `fg_once_t`; its contents are the library's.
#[repr(C)]
pub struct fg_once_t {
    pub fg_state: u32,
}

/// `fg_sem_t`; its contents are the library's.
#[repr(C)]
pub struct fg_sem_t {
    pub fg_state: u64,
}

/// `fg_spin_t`; its contents are the library's.
#[repr(C)]
pub struct fg_spin_t {
    pub fg_state: i32,
}

pub const FG_VERSION_MAJOR: i32 = 0;
pub const FG_VERSION_MINOR: i32 = 1;
pub const FG_VERSION_PATCH: i32 = 0;
/// Of these bindings; `fg_version` is that of the library.
pub const FG_VERSION_NUMBER: i32 =
    FG_VERSION_MAJOR * 10000 + FG_VERSION_MINOR * 100 + FG_VERSION_PATCH;

pub const FG_MUTEX_NORMAL: i32 = 0;
pub const FG_MUTEX_RECURSIVE: i32 = 1;
pub const FG_MUTEX_ERRORCHECK: i32 = 2;
pub const FG_MUTEX_MOVABLE: i32 = 0x100;
pub const FG_RWLOCK_DEFAULT: i32 = 0;
pub const FG_RWLOCK_WRITERS_FIRST: i32 = 2;
pub const FG_BARRIER_SERIAL: i32 = -1;

// Each use of one is a new object, as with the initialisers of C.
#[allow(clippy::declare_interior_mutable_const)]
pub const FG_MUTEX_INIT: fg_mutex_t =
    fg_mutex_t { fg_state: [0; 2], fg_kind: FG_MUTEX_NORMAL as u32, fg_more: [0; 5] };
pub const FG_RECURSIVE_MUTEX_INIT: fg_mutex_t =
    fg_mutex_t { fg_state: [0; 2], fg_kind: FG_MUTEX_RECURSIVE as u32, fg_more: [0; 5] };
pub const FG_ERRORCHECK_MUTEX_INIT: fg_mutex_t =
    fg_mutex_t { fg_state: [0; 2], fg_kind: FG_MUTEX_ERRORCHECK as u32, fg_more: [0; 5] };
pub const FG_MOVABLE_MUTEX_INIT: fg_mutex_t =
    fg_mutex_t { fg_state: [0; 2], fg_kind: FG_MUTEX_MOVABLE as u32, fg_more: [0; 5] };
pub const FG_COND_INIT: fg_cond_t = fg_cond_t { fg_state: [0; 6] };
pub const FG_RWLOCK_INIT: fg_rwlock_t =
    fg_rwlock_t { fg_state: [0; 6], fg_kind: FG_RWLOCK_DEFAULT as u32, fg_more: 0 };
pub const FG_WRITERS_FIRST_RWLOCK_INIT: fg_rwlock_t =
    fg_rwlock_t { fg_state: [0; 6], fg_kind: FG_RWLOCK_WRITERS_FIRST as u32, fg_more: 0 };
pub const FG_ONCE_INIT: fg_once_t = fg_once_t { fg_state: 0 };

/// `value` is 2^31 - 1 at most.
#[allow(non_snake_case)]
pub const fn FG_SEM_INIT(value: u32) -> fg_sem_t {
    fg_sem_t { fg_state: value as u64 }
}

pub const FG_SPIN_INIT: fg_spin_t =
    fg_spin_t { fg_state: cfg!(any(target_arch = "x86", target_arch = "x86_64")) as i32 };

extern "C" {
    pub fn fg_version() -> i32;

    pub fn fg_mutex_init(mutex: *mut fg_mutex_t, kind: i32) -> i32;
    pub fn fg_mutex_destroy(mutex: *mut fg_mutex_t) -> i32;
    pub fn fg_mutex_lock(mutex: *mut fg_mutex_t) -> i32;
    pub fn fg_mutex_trylock(mutex: *mut fg_mutex_t) -> i32;
    pub fn fg_mutex_timedlock(
        mutex: *mut fg_mutex_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> i32;
    pub fn fg_mutex_unlock(mutex: *mut fg_mutex_t) -> i32;

    pub fn fg_cond_init(cond: *mut fg_cond_t) -> i32;
    pub fn fg_cond_destroy(cond: *mut fg_cond_t) -> i32;
    pub fn fg_cond_wait(cond: *mut fg_cond_t, mutex: *mut fg_mutex_t) -> i32;
    pub fn fg_cond_timedwait(
        cond: *mut fg_cond_t,
        mutex: *mut fg_mutex_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> i32;
    pub fn fg_cond_signal(cond: *mut fg_cond_t) -> i32;
    pub fn fg_cond_broadcast(cond: *mut fg_cond_t) -> i32;

    pub fn fg_rwlock_init(rwlock: *mut fg_rwlock_t, kind: i32) -> i32;
    pub fn fg_rwlock_destroy(rwlock: *mut fg_rwlock_t) -> i32;
    pub fn fg_rwlock_rdlock(rwlock: *mut fg_rwlock_t) -> i32;
    pub fn fg_rwlock_tryrdlock(rwlock: *mut fg_rwlock_t) -> i32;
    pub fn fg_rwlock_timedrdlock(
        rwlock: *mut fg_rwlock_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> i32;
    pub fn fg_rwlock_wrlock(rwlock: *mut fg_rwlock_t) -> i32;
    pub fn fg_rwlock_trywrlock(rwlock: *mut fg_rwlock_t) -> i32;
    pub fn fg_rwlock_timedwrlock(
        rwlock: *mut fg_rwlock_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> i32;
    pub fn fg_rwlock_unlock(rwlock: *mut fg_rwlock_t) -> i32;

    pub fn fg_barrier_init(barrier: *mut fg_barrier_t, count: u32) -> i32;
    pub fn fg_barrier_destroy(barrier: *mut fg_barrier_t) -> i32;
    pub fn fg_barrier_wait(barrier: *mut fg_barrier_t) -> i32;

    pub fn fg_once(once: *mut fg_once_t, routine: Option<unsafe extern "C" fn()>) -> i32;

    pub fn fg_sem_init(sem: *mut fg_sem_t, value: u32) -> i32;
    pub fn fg_sem_destroy(sem: *mut fg_sem_t) -> i32;
    pub fn fg_sem_wait(sem: *mut fg_sem_t) -> i32;
    pub fn fg_sem_trywait(sem: *mut fg_sem_t) -> i32;
    pub fn fg_sem_timedwait(sem: *mut fg_sem_t, clock: clockid_t, deadline: *const timespec)
        -> i32;
    pub fn fg_sem_post(sem: *mut fg_sem_t) -> i32;

    pub fn fg_spin_init(spin: *mut fg_spin_t) -> i32;
    pub fn fg_spin_destroy(spin: *mut fg_spin_t) -> i32;
    pub fn fg_spin_lock(spin: *mut fg_spin_t) -> i32;
    pub fn fg_spin_trylock(spin: *mut fg_spin_t) -> i32;
    pub fn fg_spin_unlock(spin: *mut fg_spin_t) -> i32;
}
