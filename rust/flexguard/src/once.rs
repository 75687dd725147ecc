// SPDX-License-Identifier: MIT
use crate::mutex::RawMutex;
use core::sync::atomic::{AtomicU8, Ordering};
use lock_api::RawMutex as _;

/// How far a [`Once`] has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceState {
    /// Nobody has begun.
    New,
    /// Its call has ended in a panic; [`Once::call_once`] panics.
    Poisoned,
    /// A thread is at it.
    InProgress,
    /// Its call has returned.
    Done,
}

impl OnceState {
    /// Whether a call has ended in a panic.
    pub fn poisoned(self) -> bool {
        self == OnceState::Poisoned
    }

    /// Whether a call has returned.
    pub fn done(self) -> bool {
        self == OnceState::Done
    }
}

const NEW: u8 = 0;
const POISONED: u8 = 1;
const IN_PROGRESS: u8 = 2;
const DONE: u8 = 3;

/// Something that is done once.  `fg_once` of the C library takes no argument and knows nothing of
/// panics, so this is a mutex and a state.
///
/// ```
/// static START: flexguard::Once = flexguard::Once::new();
///
/// START.call_once(|| println!("once"));
/// START.call_once(|| unreachable!());
/// ```
pub struct Once {
    state: AtomicU8,
    mutex: RawMutex,
}

impl Once {
    /// With nothing done.
    pub const fn new() -> Once {
        Once { state: AtomicU8::new(NEW), mutex: RawMutex::INIT }
    }

    /// How far it is now.
    pub fn state(&self) -> OnceState {
        // With the Release of what has been done.
        match self.state.load(Ordering::Acquire) {
            NEW => OnceState::New,
            POISONED => OnceState::Poisoned,
            IN_PROGRESS => OnceState::InProgress,
            _ => OnceState::Done,
        }
    }

    /// Calls `f` unless that has been done; waits while another thread does it.  `f` must not use
    /// the same object.
    ///
    /// # Panics
    ///
    /// If an earlier call has panicked.
    #[inline]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if self.state() != OnceState::Done {
            let mut f = Some(f);
            self.call(false, &mut |_| f.take().expect("called once")());
        }
    }

    /// The same, also after a call that has panicked; `f` gets [`OnceState::Poisoned`] then, and
    /// [`OnceState::New`] otherwise.
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        if self.state() != OnceState::Done {
            let mut f = Some(f);
            self.call(true, &mut |state| f.take().expect("called once")(state));
        }
    }

    #[cold]
    fn call(&self, force: bool, f: &mut dyn FnMut(OnceState)) {
        self.mutex.lock();
        let mut turn = Turn { once: self, ends_in: self.state.load(Ordering::Relaxed) };
        match turn.ends_in {
            DONE => return,
            POISONED if !force => panic!("flexguard::Once: an earlier call has panicked"),
            _ => {}
        }
        let before = self.state();
        self.state.store(IN_PROGRESS, Ordering::Relaxed);
        turn.ends_in = POISONED;
        f(before);
        turn.ends_in = DONE;
    }
}

/// Of the thread that has the mutex; it ends by a return or by a panic.
struct Turn<'a> {
    once: &'a Once,
    ends_in: u8,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.once.state.store(self.ends_in, Ordering::Release);
        // SAFETY: who makes a Turn has locked it.
        unsafe { self.once.mutex.unlock() };
    }
}

impl Default for Once {
    fn default() -> Once {
        Once::new()
    }
}

impl core::fmt::Debug for Once {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}
