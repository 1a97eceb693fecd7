//! The machine that is chilled: what is read of it, and memory taken from it.

use std::fs;
use std::thread;
use std::time::Duration;

use etude_clock::monotonic_ns;

use crate::control_loop::Reading;
use crate::held::Held;
use crate::readings::{Events, Memory, stalled_ns};

/// What chilling sees and does; tests have one of numbers.
pub trait Machine {
    /// # Errors
    /// What the kernel does not tell.
    fn read(&mut self) -> Result<Reading, String>;
    fn held(&self) -> u64;
    /// False where the kernel does not give so much.
    fn grow(&mut self, bytes: u64) -> bool;
    fn pause(&mut self, ns: u64);
}

/// The one that this program runs on.
pub struct Real {
    began_ns: u64,
    free: u64,
    held: Held,
}

impl Real {
    pub fn new() -> Real {
        Real { began_ns: monotonic_ns(), free: 0, held: Held::default() }
    }
}

/// Sizes now.
///
/// # Errors
/// What the kernel does not tell.
pub fn memory() -> Result<Memory, String> {
    Memory::read(&text("/proc/meminfo")?)
}

/// Sums so far.
///
/// # Errors
/// There is no `/proc`.
pub fn events() -> Result<Events, String> {
    Ok(Events::read(&text("/proc/vmstat")?))
}

fn text(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

impl Machine for Real {
    fn read(&mut self) -> Result<Reading, String> {
        let (memory, events) = (memory()?, events()?);
        self.free = memory.free;
        Ok(Reading {
            elapsed_ns: monotonic_ns() - self.began_ns,
            // The kernel's estimate counts half of the caches as in use, and so is 0 long before they are gone.
            available: memory.available.max(memory.idle),
            file: memory.file,
            stalled_ns: text("/proc/pressure/memory").ok().as_deref().and_then(stalled_ns),
            swapped_out: events.swapped_out,
            scanned: events.scanned,
        })
    }

    fn held(&self) -> u64 {
        self.held.bytes()
    }

    fn grow(&mut self, bytes: u64) -> bool {
        self.held.grow(bytes, bytes < self.free / 4).is_ok()
    }

    fn pause(&mut self, ns: u64) {
        thread::sleep(Duration::from_nanos(ns));
    }
}
