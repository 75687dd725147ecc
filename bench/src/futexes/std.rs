// SPDX-License-Identifier: MIT
//! Rust's std: Mutex, mpsc::channel.  With `--cfg condvar`, places are Mutex and Condvar.
use std::sync::Mutex;

static LOCK: Mutex<()> = Mutex::new(());

#[no_mangle]
pub extern "C" fn bench_section(inside: extern "C" fn()) {
    let _held = LOCK.lock().unwrap();
    inside();
}

#[cfg(not(condvar))]
mod places {
    use std::sync::mpsc::{channel, Receiver, Sender};
    use std::sync::Mutex;

    // Nothing says that a receiver has one thread: each is in a lock of its own.
    type Place = (Mutex<Sender<()>>, Mutex<Receiver<()>>);
    static mut PLACES: Vec<Place> = Vec::new();

    fn places() -> &'static Vec<Place> {
        unsafe { &*std::ptr::addr_of!(PLACES) }
    }

    thread_local!(static SENDERS: Vec<Sender<()>> =
        places().iter().map(|p| p.0.lock().unwrap().clone()).collect());

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
        places()[place as usize].1.lock().unwrap().recv().unwrap();
    }
}

#[cfg(condvar)]
mod places {
    use std::sync::{Condvar, Mutex};

    #[allow(clippy::declare_interior_mutable_const)]
    const NEW: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());
    static PLACES: [(Mutex<u64>, Condvar); 256] = [NEW; 256];

    #[no_mangle]
    pub extern "C" fn bench_begin(_places: u32) {}

    #[no_mangle]
    pub extern "C" fn bench_put(place: u32) {
        let (have, changed) = &PLACES[place as usize];
        *have.lock().unwrap() += 1;
        changed.notify_one();
    }

    #[no_mangle]
    pub extern "C" fn bench_take(place: u32) {
        let (have, changed) = &PLACES[place as usize];
        let mut n = have.lock().unwrap();
        while *n == 0 {
            n = changed.wait(n).unwrap();
        }
        *n -= 1;
    }
}
