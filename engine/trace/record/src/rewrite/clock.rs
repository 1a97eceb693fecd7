//! From the ticks of a clock to nanoseconds since the trace began.

use std::time::Duration;

use etude_clock::monotonic_ns;

/// Which clock stamps the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The processor's time stamp counter.
    Tsc,
    /// `clock_gettime` of the vdso.
    Vdso,
}

/// Before so much time has gone by, the counter's rate is not known well enough: to 15 in a million, if the clocks are
/// read to 30 ns.
const LEAST: Duration = Duration::from_millis(2);

/// Whether stamps of the time stamp counter can be trusted here, or why not.
pub fn counter_is_sound() -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("no time stamp counter on this processor".to_owned());
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if source.trim() == "tsc" {
        return Ok(()); // the kernel trusts it itself, and watches it
    }
    Err(format!(
        "the kernel's clock source is {}, not tsc",
        if source.is_empty() { "unknown" } else { source.trim() }
    ))
}

/// When a trace began, ns of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub struct Origin(u64);

impl Origin {
    /// Now, in nanoseconds since the beginning.
    pub fn now_ns(self) -> u64 {
        monotonic_ns() - self.0
    }
}

/// One clock, read beside `CLOCK_MONOTONIC`.
pub struct Calibration {
    clock: Clock,
    first: (u64, u64),
    last: (u64, u64),
    error_ns: Option<f64>,
}

impl Calibration {
    pub fn new(clock: Clock) -> Calibration {
        let first = pair(clock);
        Calibration { clock, first, last: first, error_ns: None }
    }

    pub fn origin(&self) -> Origin {
        Origin(self.first.1)
    }

    /// Reads both clocks anew: the longer ago the beginning, the better the rate is known.
    pub fn again(&mut self) {
        let now = pair(self.clock);
        if self.is_known() {
            let away = self.ns(now.0).abs_diff(now.1 - self.first.1) as f64;
            self.error_ns = Some(self.error_ns.map_or(away, |most| most.max(away)));
        }
        self.last = now;
    }

    /// The furthest that converted times were from `CLOCK_MONOTONIC` when both were read again.
    pub fn error_ns(&self) -> Option<f64> {
        self.error_ns
    }

    fn is_known(&self) -> bool {
        self.last.1 - self.first.1 >= LEAST.as_nanos() as u64
    }

    /// Waits until the rate is known well enough.
    pub fn settle(&mut self) {
        if !self.is_known() {
            std::thread::sleep(LEAST.saturating_sub(Duration::from_nanos(self.origin().now_ns())));
            self.again();
        }
    }

    /// Time of day at the beginning, UTC, RFC 3339.
    pub fn start(&self) -> String {
        let ago = self.origin().now_ns();
        day_and_time(etude_clock::realtime_ns() - ago)
    }

    /// Nanoseconds of a tick.
    pub fn rate(&self) -> f64 {
        match self.clock {
            Clock::Vdso => 1.0,
            Clock::Tsc => (self.last.1 - self.first.1) as f64 / (self.last.0 - self.first.0).max(1) as f64,
        }
    }

    /// Nanoseconds since the beginning; 0 for what was before.
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.first.0) as f64 * self.rate()) as u64
    }
}

/// Ticks and nanoseconds of the same instant: of some readings the one between whose ends least time went by.
fn pair(clock: Clock) -> (u64, u64) {
    let reading = || {
        let before = ticks(clock);
        let ns = monotonic_ns();
        let after = ticks(clock);
        (after - before, before + (after - before) / 2, ns)
    };
    let (_, at, ns) = (0..8).map(|_| reading()).min().expect("eight readings");
    (at, ns)
}

/// The clock, now.
pub fn ticks(clock: Clock) -> u64 {
    match clock {
        // SAFETY: every x86-64 processor has the instruction.
        #[cfg(target_arch = "x86_64")]
        Clock::Tsc => unsafe { std::arch::x86_64::_rdtsc() },
        #[cfg(not(target_arch = "x86_64"))]
        Clock::Tsc => unreachable!("no such clock is chosen here"),
        Clock::Vdso => monotonic_ns(),
    }
}

/// `2026-01-31T12:00:00.000000000Z` from nanoseconds since the epoch.
fn day_and_time(ns: u64) -> String {
    let seconds = (ns / 1_000_000_000) as libc::time_t;
    // SAFETY: a plain structure, filled by the C library.
    let day = unsafe {
        let mut day: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&seconds, &mut day);
        day
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z",
        day.tm_year + 1900,
        day.tm_mon + 1,
        day.tm_mday,
        day.tm_hour,
        day.tm_min,
        day.tm_sec,
        ns % 1_000_000_000
    )
}

/// Time of day, UTC, RFC 3339.
pub fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    day_and_time(since.as_nanos() as u64)
}
