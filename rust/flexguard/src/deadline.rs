// SPDX-License-Identifier: MIT
//! Time limits as the C library takes them: absolute, on CLOCK_MONOTONIC.
use libc::{clock_gettime, timespec, CLOCK_MONOTONIC};
use std::time::{Duration, Instant};

/// None: further than the clock will ever count, which is never.
pub(crate) fn after(limit: Duration) -> Option<timespec> {
    let mut at = timespec { tv_sec: 0, tv_nsec: 0 };
    // Cannot fail: the clock exists and the address is good.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut at) };
    let mut ns = at.tv_nsec + libc::c_long::from(limit.subsec_nanos() as i32);
    let mut seconds = at.tv_sec.checked_add(libc::time_t::try_from(limit.as_secs()).ok()?)?;
    if ns >= 1_000_000_000 {
        ns -= 1_000_000_000;
        seconds = seconds.checked_add(1)?;
    }
    at.tv_sec = seconds;
    at.tv_nsec = ns;
    Some(at)
}

/// `Instant` does not tell its number; what is left until then does.
pub(crate) fn at(limit: Instant) -> Option<timespec> {
    after(limit.saturating_duration_since(Instant::now()))
}
