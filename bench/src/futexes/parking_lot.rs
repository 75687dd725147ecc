// SPDX-License-Identifier: MIT
//! parking_lot: Mutex; places are Mutex and Condvar.
use parking_lot::{Condvar, Mutex};

static LOCK: Mutex<()> = parking_lot::const_mutex(());

#[no_mangle]
pub extern "C" fn bench_section(inside: extern "C" fn()) {
    let _held = LOCK.lock();
    inside();
}

#[allow(clippy::declare_interior_mutable_const)]
const NEW: (Mutex<u64>, Condvar) = (parking_lot::const_mutex(0), Condvar::new());
static PLACES: [(Mutex<u64>, Condvar); 256] = [NEW; 256];

#[no_mangle]
pub extern "C" fn bench_begin(_places: u32) {}

#[no_mangle]
pub extern "C" fn bench_put(place: u32) {
    let (have, changed) = &PLACES[place as usize];
    *have.lock() += 1;
    changed.notify_one();
}

#[no_mangle]
pub extern "C" fn bench_take(place: u32) {
    let (have, changed) = &PLACES[place as usize];
    let mut n = have.lock();
    while *n == 0 {
        changed.wait(&mut n);
    }
    *n -= 1;
}
