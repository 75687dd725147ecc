// SPDX-License-Identifier: MIT
//! Places of a Mutex and a Condvar: those of the crate, which says how it locks and waits.
use crate::{lock, new, wait, Condvar, Mutex};

#[allow(clippy::declare_interior_mutable_const)]
const NEW: (Mutex<u64>, Condvar) = (new(0), Condvar::new());
static PLACES: [(Mutex<u64>, Condvar); 256] = [NEW; 256];

#[no_mangle]
pub extern "C" fn bench_begin(_places: u32) {}

#[no_mangle]
pub extern "C" fn bench_put(place: u32) {
    let (have, changed) = &PLACES[place as usize];
    *lock(have) += 1;
    changed.notify_one();
}

#[no_mangle]
pub extern "C" fn bench_take(place: u32) {
    let (have, changed) = &PLACES[place as usize];
    let mut n = lock(have);
    while *n == 0 {
        n = wait(changed, n);
    }
    *n -= 1;
}
