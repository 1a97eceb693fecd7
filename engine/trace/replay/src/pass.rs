//! A roll as a load: played once, on the schedule of its original at some multiple of its speed, while others may be under way.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use etude_calls::Call;

use etude_script::MOST_MOVED;

use crate::clock::now_ns;
use crate::perform::Wishes;
use crate::place::owned;
use crate::player::{Broken, KILLED, KNOT, LEFT, Manner, OVER, Play, Timing, why};
use crate::replay::{Refused, child, pipe};
use crate::roll::Roll;
use crate::shared::{ERRORS, Owed, Shared, Sums};
use crate::watch::Watch;

/// When a pass is played; instants of `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy)]
pub struct Offered {
    /// 2: twice as fast as the original.
    pub speed: f64,
    pub begin_ns: u64,
    /// Calls that are due before count nowhere.
    pub from_ns: u64,
    /// Calls that are due then or later are not made.
    pub until_ns: u64,
}

/// One pass, in processes of its own.
pub struct Pass {
    play: Arc<Play>,
    pid: libc::pid_t,
    said: File,
    health: Watch,
    left: bool,
}

/// How a pass goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    NotYet,
    Whole,
}

impl Pass {
    /// Starts the process that plays it, which waits for the beginning. Best done some time before that.
    ///
    /// # Errors
    /// The roll cannot be played (3), or not here (5).
    pub fn start(roll: &Arc<Roll>, directory: &Path, offered: Offered) -> Result<Pass, Refused> {
        owned(directory)?;
        if roll.head.largest > MOST_MOVED {
            let largest = roll.head.largest;
            return Err(Refused(
                format!("moves {largest} bytes in one call; at most {MOST_MOVED} are played"),
                3,
            ));
        }
        let machine = |error: std::io::Error| Refused(error.to_string(), 5);
        let shared = Shared::of_load(roll.head.threads.len()).map_err(machine)?;
        shared.all().until_ns.store(signed(offered.until_ns), Ordering::Relaxed);
        // With real-time priority it would keep the kernel's own threads, which the calls may need, from running.
        let manner = Manner { timing: Timing::Absolute, speed: offered.speed, realtime: false, class: None };
        let play = Play::new(roll.clone(), shared, manner).map_err(|what| Refused(what, 3))?;
        let play = Arc::new(play.counting_from(signed(offered.from_ns)));
        let (from, to) = pipe().map_err(machine)?;
        let parent = std::process::id() as libc::pid_t;
        // SAFETY: the child goes on in `child` alone, which ends by _exit.
        match unsafe { libc::fork() } {
            -1 => Err(machine(std::io::Error::last_os_error())),
            0 => {
                drop(from);
                child(&play, directory, Wishes::default(), to, parent, Some(signed(offered.begin_ns)))
            }
            pid => Ok(Pass { play, pid, said: from, health: Watch::default(), left: false }),
        }
    }

    /// The process that plays its first thread.
    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// What is due then or later is not made any more.
    pub fn stop(&self, at_ns: u64) {
        self.play.shared.all().until_ns.fetch_min(signed(at_ns), Ordering::Relaxed);
    }

    /// Ends it where it is: calls under way are not counted.
    pub fn leave(&mut self) {
        self.left = true;
        self.give_up(LEFT);
    }

    fn give_up(&self, why: Broken) {
        self.play.shared.all().broken.store(why, Ordering::Relaxed);
        for pid in self.processes() {
            // SAFETY: a plain call; those that have ended are still this process's children, or their children's.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }

    /// Whether it has ended; not to be asked any more then.
    ///
    /// # Errors
    /// It could not be played.
    pub fn ended(&mut self) -> Result<Ended, Refused> {
        let mut status = 0;
        // SAFETY: a child of this process.
        let waited = unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) };
        let all = self.play.shared.all();
        if waited == 0 {
            if let Some(why) = self.health.found(&self.play.shared) {
                // Whom it waits for may make no more calls, since the load is over.
                let over = now_ns() >= all.until_ns.load(Ordering::Relaxed);
                self.left = over;
                self.give_up(if over { LEFT } else { why });
            }
            return Ok(Ended::NotYet);
        }
        let mut said = String::new();
        let _ = self.said.read_to_string(&mut said);
        if let Some((code, line)) = said.split_once(' ').filter(|_| !self.left) {
            return Err(Refused(line.to_owned(), code.parse().unwrap_or(5)));
        }
        let well = waited == self.pid && status == 0 || self.left;
        match all.broken.load(Ordering::Relaxed) {
            0 | LEFT | OVER if well => Ok(Ended::Whole),
            0 | LEFT | OVER => Err(Refused(why(KILLED).to_owned(), 5)),
            broken => Err(Refused(why(broken).to_owned(), if broken == KNOT { 3 } else { 5 })),
        }
    }

    /// What it has done so far.
    pub fn played(&self) -> Played {
        let mut played = Played::default();
        self.play.shared.all_owed().for_each(|owed| played.add_owed(owed));
        played
    }

    /// CPU time of its processes that have not ended, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.processes().into_iter().filter_map(cpu_ns).sum()
    }

    /// Those that play a thread of it.
    fn processes(&self) -> Vec<libc::pid_t> {
        let mut pids = self.play.shared.processes();
        if !pids.contains(&self.pid) {
            pids.push(self.pid);
        }
        pids
    }
}

/// Counts of a load; times in ns.
#[derive(Debug, Clone, Default)]
pub struct Played {
    /// Requests whose calls have begun, but for those that could not be made.
    pub begun: u64,
    /// Calls that could not be made: no requests after all.
    pub unplayed: u64,
    /// How much later calls began than they could have.
    pub lateness: Sums,
    pub late_ns: u64,
    /// Within calls.
    pub spent_ns: u64,
    /// Calls with another result than the original's, by the number of their error; 0: none.
    pub errors: BTreeMap<u16, u64>,
    pub by: BTreeMap<&'static str, Answers>,
}

/// Calls of one name.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// With another result.
    pub failed: u64,
    /// Of `responses`, exactly.
    pub ns: u64,
    pub responses: Sums,
}

impl Played {
    fn add_owed(&mut self, owed: &Owed) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        // What has ended is read before what has begun: else more might have ended.
        for call in Call::all() {
            let calls = owed.of(call);
            let mut responses = Sums::default();
            owed.add_responses(call, &mut responses);
            let (failed, ns) = (read(&calls.failed), read(&calls.ns));
            if failed > 0 || ns > 0 || responses.count() > 0 {
                let of = self.by.entry(call.name()).or_default();
                of.failed += failed;
                of.ns += ns;
                of.responses.add(&responses);
            }
        }
        for number in 0..ERRORS {
            let count = read(&owed.errors[number]);
            if count > 0 {
                *self.errors.entry(number as u16).or_default() += count;
            }
        }
        owed.lateness.add_to(&mut self.lateness);
        self.late_ns += read(&owed.late_ns);
        self.spent_ns += read(&owed.spent_ns);
        let unplayed = read(&owed.unplayed);
        self.unplayed += unplayed;
        self.begun += read(&owed.begun).saturating_sub(unplayed);
    }

    /// Those of another pass on top.
    pub fn add(&mut self, other: &Played) {
        self.begun += other.begun;
        self.unplayed += other.unplayed;
        self.lateness.add(&other.lateness);
        self.late_ns += other.late_ns;
        self.spent_ns += other.spent_ns;
        other.errors.iter().for_each(|(number, count)| *self.errors.entry(*number).or_default() += count);
        for (name, of) in &other.by {
            let mine = self.by.entry(name).or_default();
            mine.failed += of.failed;
            mine.ns += of.ns;
            mine.responses.add(&of.responses);
        }
    }

    /// Requests that have ended.
    pub fn ended(&self) -> u64 {
        self.by.values().map(|of| of.failed + of.responses.count()).sum()
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// CPU time of a process, ns; None where there is none.
fn cpu_ns(pid: libc::pid_t) -> Option<u64> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: valid places for the answers.
    let known = unsafe {
        libc::clock_getcpuclockid(pid, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0
    };
    known.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
