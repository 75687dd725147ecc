// SPDX-License-Identifier: MIT
//! parking_lot: Mutex; places are Mutex and Condvar.
use parking_lot::{const_mutex as new, Condvar, Mutex, MutexGuard};

mod places;

static LOCK: Mutex<()> = new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

fn wait<'a, T>(changed: &Condvar, mut held: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(&mut held);
    held
}

#[no_mangle]
pub extern "C" fn bench_section(inside: extern "C" fn()) {
    let _held = lock(&LOCK);
    inside();
}
