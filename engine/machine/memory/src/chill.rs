//! Takes memory until the kernel has evicted its caches, and gives it back.

use std::fs;
use std::io;

use etude_clock::seconds;
use serde::Serialize;

use crate::Failed;
use crate::confinement;
use crate::control_loop::{Bounds, Course, Step, Stopped};
use crate::machine::{Machine, Real, events, memory};
use crate::readings::Memory;

/// Less is never left to others, B. It comes on top of the reserves by which the kernel itself lives, and these grow with the
/// machine: it need not.
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
pub fn chill(wish: &Wish) -> Result<Answer, Failed> {
    let refused = |why: String| (why, 5);
    let before = memory().map_err(refused)?;
    confinement::check(before.total).map_err(refused)?;
    volunteer().map_err(|error| refused(format!("/proc/self/oom_score_adj: {error}")))?;
    let killed = events().map_err(refused)?.oom_kills;
    let bounds = Bounds { most: wish.most.unwrap_or(before.total), leave: wish.leave, time_ns: wish.time_ns };
    let mut machine = Real::new();
    let done = run(&bounds, &mut machine).map_err(refused)?;
    drop(machine);
    let killed_after = events().map_err(refused)?.oom_kills;
    Ok(Answer {
        allocated_bytes: done.allocated,
        seconds: seconds(done.elapsed_ns),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_loop::Reading;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    /// A machine of numbers: free memory, caches that it evicts when little is free, and others who take and give.
    struct Model {
        now_ns: u64,
        free: u64,
        file: u64,
        /// Caches that are in use all the time.
        fixed: u64,
        scanned: u64,
        held: u64,
        /// What others take at each step, or give back.
        others: Vec<i64>,
        /// The kernel gives no more than this.
        gives: u64,
        /// The least that was available after a step.
        least: u64,
        grown: Vec<u64>,
    }

    /// Below this much of free memory the model evicts.
    const LOW: u64 = 64 * MIB;

    impl Model {
        fn available(&self) -> u64 {
            (self.free + self.file).saturating_sub(LOW)
        }

        fn evict(&mut self) {
            let wanted = LOW.saturating_sub(self.free);
            let evicted = wanted.min(self.file.saturating_sub(self.fixed));
            self.scanned += wanted;
            self.file -= evicted;
            self.free += evicted;
        }
    }

    impl Machine for Model {
        fn read(&mut self) -> Result<Reading, String> {
            self.now_ns += 1_000_000;
            Ok(Reading {
                elapsed_ns: self.now_ns,
                available: self.available(),
                file: self.file,
                stalled_ns: Some(0),
                swapped_out: 0,
                scanned: self.scanned,
            })
        }

        fn held(&self) -> u64 {
            self.held
        }

        fn grow(&mut self, bytes: u64) -> bool {
            if self.held + bytes > self.gives {
                return false;
            }
            self.grown.push(bytes);
            self.held += bytes;
            self.free = self.free.saturating_sub(bytes);
            self.evict();
            self.least = self.least.min(self.available());
            let change = self.others.pop().unwrap_or(0);
            self.free = self.free.saturating_add_signed(-change);
            self.evict();
            true
        }

        fn pause(&mut self, ns: u64) {
            self.now_ns += ns;
        }
    }

    fn model(free: u64, file: u64) -> Model {
        Model {
            now_ns: 0,
            free,
            file,
            fixed: 0,
            scanned: 0,
            held: 0,
            others: Vec::new(),
            gives: u64::MAX,
            least: u64::MAX,
            grown: Vec::new(),
        }
    }

    fn bounds(most: u64, leave: u64) -> Bounds {
        Bounds { most, leave, time_ns: 120_000_000_000 }
    }

    #[test]
    fn what_is_in_use_all_the_time_ends_it_before_the_bound_does() {
        let mut machine = model(4096 * MIB, 2048 * MIB);
        machine.fixed = 20 * MIB;
        machine.file += machine.fixed;
        let done = run(&bounds(u64::MAX, 4 * MIB), &mut machine).unwrap();
        assert!(machine.file < 32 * MIB, "{}", machine.file);
        assert!(done.allocated > 5000 * MIB);
    }

    #[test]
    fn a_kernel_that_gives_no_more_ends_it() {
        let mut machine = model(4096 * MIB, 0);
        machine.gives = 1000 * MIB;
        let done = run(&bounds(u64::MAX, 32 * MIB), &mut machine).unwrap();
        assert_eq!((done.stopped, done.allocated), (Stopped::Refused, 768 * MIB));
    }

    proptest! {
        #[test]
        fn it_ends_within_its_bounds_and_has_evicted_all_that_it_may(
            free in 0..32_768u64,
            file in 0..32_768u64,
            most in 1..65_536u64,
            leave in 32..4096u64,
        ) {
            let mut machine = model(free * MIB, file * MIB);
            let before = machine.available();
            let done = run(&bounds(most * MIB, leave * MIB), &mut machine).unwrap();
            prop_assert!(done.allocated <= most * MIB);
            prop_assert!(machine.least >= leave * MIB);
            match done.stopped {
                Stopped::Most => prop_assert_eq!(done.allocated, most * MIB),
                Stopped::Leave => prop_assert!(machine.available() < leave * MIB + 8 * MIB || before < leave * MIB + 8 * MIB),
                Stopped::Evicted => prop_assert!(machine.file <= 32 * MIB),
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn what_others_take_is_not_taken_again(
            others in proptest::collection::vec(-200..200i64, 0..60),
            leave in 32..512u64,
        ) {
            let mut machine = model(4096 * MIB, 2048 * MIB);
            machine.others = others.into_iter().map(|mib| mib * MIB as i64).collect();
            let done = run(&bounds(u64::MAX, leave * MIB), &mut machine).unwrap();
            prop_assert!(machine.least >= leave * MIB, "its own step is never the one too many");
            prop_assert_eq!(done.allocated, machine.grown.iter().sum::<u64>());
        }
    }
}
