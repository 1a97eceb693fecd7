//! Clocks, in nanoseconds.

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC`, ns.
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME`, ns since the epoch.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time of this process, user and system, ns.
pub fn own_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of this thread, user and system, ns.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Waits for an instant of the monotonic clock without sleeping; the first reading at or after it, ns.
pub fn spin_until(instant_ns: u64) -> u64 {
    loop {
        let now = monotonic_ns();
        if now >= instant_ns {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// Resolution of the monotonic clock, ns.
pub fn resolution_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut time) };
    nanoseconds(time)
}

/// Nanoseconds as seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND as f64
}

/// A duration in seconds as ns; huge ones saturate, negative ones and NaN are 0.
pub fn from_seconds(seconds: f64) -> u64 {
    (seconds * SECOND as f64) as u64
}

/// A clock that always exists, ns.
#[inline]
pub fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { libc::clock_gettime(clock, &mut time) };
    nanoseconds(time)
}

/// Nanoseconds as the kernel takes them; the longest are as long as a wait may be on every machine.
pub fn timespec(ns: u64) -> libc::timespec {
    let seconds = (ns / SECOND).min(i32::MAX as u64);
    libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: (ns % SECOND) as libc::c_long }
}

/// A time of `getrusage`, ns.
pub fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * SECOND + time.tv_usec as u64 * 1000
}

/// Sleeps until an instant of the monotonic clock, or until a signal.
pub fn sleep_until(instant_ns: u64) {
    let time = timespec(instant_ns);
    // SAFETY: `time` lives through the call.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut());
    }
}

/// Lets this thread's sleeps end on time: the kernel lets each last up to 50 µs longer unless it is told not to (prctl(2)).
pub fn without_slack() {
    // SAFETY: takes integers only; it is about this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

#[inline]
fn nanoseconds(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_seconds_and_back() {
        assert_eq!((seconds(1_500_000_000), seconds(1), seconds(0)), (1.5, 1e-9, 0.0));
        assert_eq!(from_seconds(seconds(123_456_789_012)), 123_456_789_012);
    }

    #[test]
    fn no_instant_is_reached_early() {
        let instant = monotonic_ns() + 3_000_000;
        let reached = spin_until(instant);
        assert!((instant..=monotonic_ns()).contains(&reached));
        assert!(spin_until(0) >= reached, "an instant that is past is no reason to wait");
    }
}
