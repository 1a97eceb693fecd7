//! Perf events of a stretch of this thread's own work, and of all that it started.

use std::fs::File;

use crate::event::{CACHE, EVENTS, Event, Opened, counted, open_on_us, switch};
use crate::{Count, Counts, Raw};

/// The sets that [`Around::open`] knows, and what each counts beside cycles and instructions.
pub const SETS: [(&str, &str); 5] = [
    ("l1d", "loads from the first-level data cache, and those that missed it"),
    ("l1i", "fetches from the first-level instruction cache, and those that missed it"),
    ("l2", "requests to the second-level cache, and those that missed it"),
    ("mem", "loads from this node's memory, and stores to it"),
    ("tlb", "address translations of data and of instructions that missed the TLBs"),
];

/// Open events of one set. They form a group: all of them count at the same times, so that one can be divided by another.
///
/// Threads and processes that are started after [`open`](Self::open) are counted, too, but only between
/// [`start`](Self::start) and [`pause`](Self::pause).
pub struct Around {
    events: Vec<Event>,
    opened: Vec<Result<Running, String>>,
    user_only: bool,
}

struct Running {
    file: File,
    before: Raw,
}

impl Around {
    /// Opens the events of a set on this thread. None: there is no such set. An event that cannot be opened is
    /// reported with the reason.
    pub fn open(set: &str) -> Option<Around> {
        let own = events_of(set)?;
        // Cycles and instructions: the first two that a trial counts.
        let always = EVENTS.into_iter().take(2);
        Some(Around::of(always.map(Ok).chain(own).collect()))
    }

    fn of(wanted: Vec<Wanted>) -> Around {
        let mut around = Around { events: Vec::new(), opened: Vec::new(), user_only: false };
        for event in wanted {
            let (event, opened) = match event {
                Ok(event) => {
                    let opened = open_on_us(&event, around.leader());
                    (event, opened)
                }
                Err((name, why)) => (counted(name, CACHE, 0), Err(why.to_owned())),
            };
            around.user_only |= opened.as_ref().is_ok_and(|opened| opened.user_only);
            around.events.push(event);
            around.opened.push(opened.map(|Opened { file, .. }| Running { file, before: Raw::default() }));
        }
        around
    }

    fn leader(&self) -> Option<&File> {
        self.opened.iter().flatten().map(|running| &running.file).next()
    }

    /// Begins to count. Any thread or process that has this open may do so.
    pub fn start(&self) {
        self.switch(true);
    }

    /// Ceases to count, wherever it is done. What has been counted until then is kept for [`stop`](Self::stop).
    pub fn pause(&self) {
        self.switch(false);
    }

    fn switch(&self, on: bool) {
        if let Some(leader) = self.leader() {
            // It cannot fail on an event that is open; if it did, the counts would be 0 over a time of 0, which is said.
            let _ = switch(leader, on);
        }
    }

    /// Ceases to count, and reads what was counted since the last time. Children should have been waited for.
    pub fn stop(&mut self) -> Counts {
        self.pause();
        let mut result = Counts::default();
        let mut scaled = false;
        for (event, running) in self.events.iter().zip(&mut self.opened) {
            let counted = running.as_mut().map_err(|why| why.clone()).and_then(|running| {
                let after = Raw::read(&running.file)?;
                let counted = after.since(&std::mem::replace(&mut running.before, after));
                if counted.enabled == 0 { Err("event was never started".to_owned()) } else { Ok(counted) }
            });
            scaled |= counted.as_ref().is_ok_and(|raw| raw.running < raw.enabled);
            let value = counted.and_then(Raw::scaled).map(|count| count * event.scale);
            result.counts.push(Count { name: event.name, unit: event.unit, value });
        }
        result.notes = crate::notes(scaled, self.user_only);
        result
    }
}

/// The first level of data, of instructions, the memory of this node, TLBs: the kernel's `perf_hw_cache_id`.
const L1D: u64 = 0;
const L1I: u64 = 1;
const DTLB: u64 = 3;
const ITLB: u64 = 4;
const NODE: u64 = 6;

/// What is counted of one: its `perf_hw_cache_op_id` and `perf_hw_cache_op_result_id`.
const LOADS: u64 = 0;
const STORES: u64 = 1 << 8;
const LOAD_MISSES: u64 = 1 << 16;

type Wanted = Result<Event, (&'static str, &'static str)>;

/// Names are those of perf-list(1), with underscores for dashes.
fn events_of(set: &str) -> Option<Vec<Wanted>> {
    let cache = |name, config| Ok(counted(name, CACHE, config));
    Some(match set {
        "l1d" => {
            vec![cache("L1_dcache_loads", L1D | LOADS), cache("L1_dcache_load_misses", L1D | LOAD_MISSES)]
        }
        "l1i" => {
            vec![cache("L1_icache_loads", L1I | LOADS), cache("L1_icache_load_misses", L1I | LOAD_MISSES)]
        }
        "l2" => second_level(),
        "mem" => vec![cache("node_loads", NODE | LOADS), cache("node_stores", NODE | STORES)],
        "tlb" => {
            vec![cache("dTLB_load_misses", DTLB | LOAD_MISSES), cache("iTLB_load_misses", ITLB | LOAD_MISSES)]
        }
        _ => return None,
    })
}

/// The kernel has generic events for the first and for the last level, not for the second. The architecture of ARM gives
/// it numbers (L2D_CACHE and L2D_CACHE_REFILL, Arm ARM, table of common events).
#[cfg(target_arch = "aarch64")]
fn second_level() -> Vec<Wanted> {
    vec![
        Ok(counted("l2d_cache", crate::event::RAW, 0x16)),
        Ok(counted("l2d_cache_refill", crate::event::RAW, 0x17)),
    ]
}

/// The kernel has generic events for the first and for the last level, not for the second. On AMD's Zen those that are
/// named for the last level of other processors count the second (`amd_zen1_perfmon_event_map`, Linux 5.1 and later).
#[cfg(target_arch = "x86_64")]
fn second_level() -> Vec<Wanted> {
    if is_zen() {
        return vec![Ok(counted("cache_references", 0, 2)), Ok(counted("cache_misses", 0, 3))];
    }
    nothing_generic()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn second_level() -> Vec<Wanted> {
    nothing_generic()
}

#[cfg_attr(target_arch = "aarch64", allow(dead_code))]
fn nothing_generic() -> Vec<Wanted> {
    let why = "the kernel has no event for the second-level cache that means the same on each processor";
    vec![Err(("l2_references", why)), Err(("l2_misses", why))]
}

#[cfg(target_arch = "x86_64")]
fn is_zen() -> bool {
    use std::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    let signature = __cpuid(1).eax;
    let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
    let is = |name: &[u8; 12]| {
        [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == name.as_slice()
    };
    (is(b"AuthenticAMD") || is(b"HygonGenuine")) && family >= 0x17
}

#[cfg(test)]
#[path = "around_tests.rs"]
mod tests;
