//! Takes memory until the kernel has evicted its caches, and gives it back.

use std::fs;
use std::io;

use serde::Serialize;

use crate::Wrong;
use crate::confined;
use crate::course::{Bounds, Course, Step, Stopped};
use crate::machine::{Machine, Real, events, memory};
use crate::readings::Memory;

/// Less is never left to others, B. MemAvailable is counted above the reserves by which the kernel itself lives, and these
/// grow with the machine: it need not.
pub const LEAST_LEAVE: u64 = 32 << 20;

/// What was asked for.
pub struct Wish {
    pub most: Option<u64>,
    pub leave: u64,
    pub time_ns: u64,
}

#[derive(Debug, Serialize)]
pub struct Answer {
    pub allocated_bytes: u64,
    pub seconds: f64,
    pub stopped: Stopped,
    /// Share of the time in which all waited for memory; null where the kernel does not tell.
    pub pressure_share: Option<f64>,
    pub before: Caches,
    pub after: Caches,
    /// Processes that the OOM killer ended meanwhile; null where the kernel does not count them.
    pub oom_kills: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Caches {
    pub file_bytes: u64,
    pub slab_bytes: u64,
    pub available_bytes: u64,
}

impl From<Memory> for Caches {
    fn from(memory: Memory) -> Caches {
        Caches { file_bytes: memory.file, slab_bytes: memory.slab, available_bytes: memory.available }
    }
}

/// Chills this machine.
///
/// # Errors
/// The machine does not allow it: a limit on memory or nodes, no `/proc`.
pub fn chill(wish: &Wish) -> Result<Answer, Wrong> {
    let refused = |why: String| (why, 5);
    let before = memory().map_err(refused)?;
    confined::check(before.total).map_err(refused)?;
    volunteer().map_err(|error| refused(format!("/proc/self/oom_score_adj: {error}")))?;
    let killed = events().map_err(refused)?.oom_kills;
    let bounds = Bounds { most: wish.most.unwrap_or(before.total), leave: wish.leave, time_ns: wish.time_ns };
    let mut machine = Real::new();
    let done = run(&bounds, &mut machine).map_err(refused)?;
    drop(machine);
    let killed_after = events().map_err(refused)?.oom_kills;
    Ok(Answer {
        allocated_bytes: done.allocated,
        seconds: done.elapsed_ns as f64 / 1e9,
        stopped: done.stopped,
        pressure_share: done.share,
        before: before.into(),
        after: memory().map_err(refused)?.into(),
        oom_kills: killed_after.zip(killed).map(|(after, before)| after.saturating_sub(before)),
    })
}

/// If memory runs out after all it is this process that ends, and it takes from all nodes whatever its parent was bound to.
fn volunteer() -> io::Result<()> {
    fs::write("/proc/self/oom_score_adj", "1000")?;
    // SAFETY: the default policy (0) has no nodes. A kernel without policies refuses, and has none to change.
    unsafe { libc::syscall(libc::SYS_set_mempolicy, 0, 0, 0) };
    Ok(())
}

struct Done {
    allocated: u64,
    elapsed_ns: u64,
    stopped: Stopped,
    share: Option<f64>,
}

fn run(bounds: &Bounds, machine: &mut dyn Machine) -> Result<Done, String> {
    let mut now = machine.read()?;
    let mut course = Course::new(*bounds, now);
    let stopped = loop {
        match course.next(machine.held(), &now) {
            Step::Stop(why) => break why,
            Step::Pause(ns) => machine.pause(ns),
            Step::Grow(bytes) => {
                if !machine.grow(bytes) {
                    break Stopped::Refused;
                }
            }
        }
        now = machine.read()?;
    };
    Ok(Done { allocated: machine.held(), elapsed_ns: now.elapsed_ns, stopped, share: course.share(&now) })
}
