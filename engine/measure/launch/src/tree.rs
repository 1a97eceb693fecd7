//! The tree of processes below the launcher.
//!
//! The launcher is a subreaper: whatever loses its parent becomes its child. A process that forks while the tree is
//! read can be missed; so what must end is looked for again until there is no child left.

use std::fs;
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use crate::clock;
use crate::kept_processes::Kept;
use crate::outcome::Orphans;
use crate::sys::{self, Wait};

/// Time between SIGTERM and SIGKILL for processes that were kept, ns.
const KEPT_GRACE_NS: u64 = 2 * clock::SECOND;

/// How long killed processes may take to go before we say that they do not.
const PATIENCE: Duration = Duration::from_secs(10);

/// All living and unreaped processes below the launcher, but not those kept from earlier launches.
pub(crate) fn descendants(kept: &Kept) -> Vec<pid_t> {
    below(
        children_of(std::process::id() as pid_t).into_iter().filter(|&pid| !kept.contains(pid)).collect(),
        kept,
    )
}

/// `roots` and all below them, but not what is kept.
pub(crate) fn below(roots: Vec<pid_t>, kept: &Kept) -> Vec<pid_t> {
    let mut found = roots;
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        for child in children_of(pid) {
            if !kept.contains(child) && !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Sends `signal` to the groups led by `leaders` and to every other process of the tree, once to each.
pub(crate) fn signal(signal: c_int, leaders: &[pid_t], kept: &Kept) {
    let others: Vec<pid_t> =
        descendants(kept).into_iter().filter(|&pid| !leaders.contains(&sys::group_of(pid))).collect();
    for &leader in leaders {
        sys::kill(-leader, signal);
    }
    for pid in others {
        sys::kill(pid, signal);
    }
}

/// Reaps what has ended. Whether anything that is not kept lives on.
pub(crate) fn reap(kept: &mut Kept, orphans: &mut Orphans) -> bool {
    loop {
        match sys::reap(-1) {
            Wait::Reaped(reaped) if kept.forget(reaped.pid) => {}
            Wait::Reaped(reaped) => orphans.add(&reaped),
            Wait::Childless => return false,
            Wait::Running if kept.is_empty() => return true,
            Wait::Running => return !descendants(kept).is_empty(),
        }
    }
}

/// Kills and reaps all that is not kept. False: something does not go.
pub(crate) fn end(kept: &mut Kept, orphans: &mut Orphans) -> bool {
    let start = Instant::now();
    let mut pause = Duration::from_micros(50);
    while reap(kept, orphans) {
        if start.elapsed() > PATIENCE {
            return false;
        }
        for pid in descendants(kept) {
            sys::kill(pid, libc::SIGKILL);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
    true
}

/// Waits until nothing but what is kept lives, at most until `deadline_ns` on the monotonic clock.
pub(crate) fn await_end(kept: &mut Kept, orphans: &mut Orphans, deadline_ns: u64) {
    while reap(kept, orphans) && clock::monotonic_ns() < deadline_ns {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Keeps all that lives now below the launcher.
pub(crate) fn keep_descendants(kept: &mut Kept) {
    let found = descendants(kept);
    kept.add(found);
}

/// Ends all that is kept: SIGTERM, then SIGKILL. How many processes that were.
pub(crate) fn end_kept(kept: &mut Kept) -> usize {
    let mut ignored = Orphans::default();
    reap(kept, &mut ignored);
    kept.forget_all();
    let found = descendants(kept);
    if !found.is_empty() {
        for &pid in &found {
            sys::kill(pid, libc::SIGTERM);
        }
        await_end(kept, &mut ignored, clock::monotonic_ns() + KEPT_GRACE_NS);
    }
    end(kept, &mut ignored);
    kept.captures.clear();
    found.len()
}

/// The children of a process, of all its threads.
pub(crate) fn children_of(pid: pid_t) -> Vec<pid_t> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
