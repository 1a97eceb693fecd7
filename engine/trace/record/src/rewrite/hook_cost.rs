//! What the hook itself costs: it is run in this process, on a call that does next to nothing, with and without.

use std::io;
use std::time::Instant;

use crate::rewrite::hook::{Clock, Entry};
use crate::rewrite::in_process::{Native, call};
use crate::rewrite::ring::Segment;

const CALLS: u32 = 200;
const ROUNDS: usize = 51;

/// Nanoseconds that recording adds to a call: without a path, and with one of 16 bytes. Medians of paired rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    pub plain_ns: f64,
    pub path_ns: f64,
}

/// Measures it; `ring` is one that nobody uses, and is emptied by the measurement.
///
/// # Errors
/// No executable memory can be had.
pub fn measure(clock: Clock, segment: &Segment, ring: usize) -> io::Result<Cost> {
    let native = Native::new(clock, |_| Entry::Plain, segment)?;
    segment.ring(ring).begin(true, false);
    native.enter(segment, ring);
    let path = c"/usr/include/abcd".as_ptr() as u64;
    let round = |entry: u64| {
        let started = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: getppid takes no argument.
            unsafe { call(entry, libc::SYS_getppid, [path, 0, 0, 0, 0, 0]) };
        }
        let elapsed = started.elapsed();
        segment.ring(ring).forget();
        elapsed.as_nanos() as f64 / f64::from(CALLS)
    };
    let entries = [Entry::Raw, Entry::Plain, Entry::Path1].map(|entry| native.entry(entry));
    let mut differences = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let [bare, plain, path] = entries.map(round);
        differences[0].push(plain - bare);
        differences[1].push(path - bare);
    }
    native.leave();
    let [plain_ns, path_ns] = differences.map(median);
    Ok(Cost { plain_ns, path_ns })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2].max(0.0)
}
