// SPDX-License-Identifier: MIT
//! Rust's std: Mutex, mpsc::channel.  With `--cfg condvar`, places are Mutex and Condvar.
#[cfg(condvar)]
use std::sync::Condvar;
use std::sync::{Mutex, MutexGuard};

#[cfg(condvar)]
mod places;

static LOCK: Mutex<()> = new(());

const fn new<T>(value: T) -> Mutex<T> {
    Mutex::new(value)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

#[cfg(condvar)]
fn wait<'a, T>(changed: &Condvar, held: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(held).unwrap()
}

#[no_mangle]
pub extern "C" fn bench_section(inside: extern "C" fn()) {
    let _held = lock(&LOCK);
    inside();
}

#[cfg(not(condvar))]
mod places {
    use crate::{lock, Mutex};
    use std::sync::mpsc::{channel, Receiver, Sender};

    // Nothing says that a receiver has one thread: each is in a lock of its own.
    type Place = (Mutex<Sender<()>>, Mutex<Receiver<()>>);
    static mut PLACES: Vec<Place> = Vec::new();

    fn places() -> &'static Vec<Place> {
        unsafe { &*std::ptr::addr_of!(PLACES) }
    }

    thread_local!(static SENDERS: Vec<Sender<()>> =
        places().iter().map(|p| lock(&p.0).clone()).collect());

    #[no_mangle]
    pub extern "C" fn bench_begin(n: u32) {
        let make = |_| {
            let (s, r) = channel();
            (Mutex::new(s), Mutex::new(r))
        };
        unsafe { PLACES = (0..n).map(make).collect() }
    }

    #[no_mangle]
    pub extern "C" fn bench_put(place: u32) {
        SENDERS.with(|s| s[place as usize].send(()).unwrap());
    }

    #[no_mangle]
    pub extern "C" fn bench_take(place: u32) {
        lock(&places()[place as usize].1).recv().unwrap();
    }
}
