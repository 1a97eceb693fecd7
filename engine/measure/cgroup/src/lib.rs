//! A control group for the trials of one test: v1 and v2 behind one face.
//!
//! The engine moves *itself* into the group when the test changes: what it starts is born there at no cost per trial.
//! Its own CPU time is subtracted. The group lies below the group in which the engine was started (v2: or beside it), and
//! is removed when the engine ends.

mod place;
mod v1;
mod v2;

use std::path::Path;

use place::{Place, V2Place};
pub use place::{Wanted, own_directory};

/// Names of groups begin so: a group of anybody else is never entered, emptied or removed.
pub const PREFIX: &str = "etude-";

/// What a group used in one trial; null with the reason where it cannot be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// CPU time, user and system, without the engine's own, ns.
    pub cpu_ns: Result<u64, String>,
    /// Peak memory with the page cache charged to the group, B.
    pub peak_memory_bytes: Result<u64, String>,
    /// Bytes read from block devices.
    pub read_bytes: Result<u64, String>,
    /// Bytes written to block devices.
    pub written_bytes: Result<u64, String>,
}

impl Tree {
    /// Nothing is known, for one reason.
    pub fn unknown(reason: &str) -> Tree {
        let unknown = || Err(reason.to_owned());
        Tree {
            cpu_ns: unknown(),
            peak_memory_bytes: unknown(),
            read_bytes: unknown(),
            written_bytes: unknown(),
        }
    }
}

/// What both versions offer for one group that the engine is in.
trait Group {
    /// CPU time of all in the group so far, ns.
    fn cpu_ns(&self) -> Result<u64, String>;
    /// Forgets the peak of memory so far.
    fn reset_peak(&mut self);
    /// Peak memory since then, B.
    fn peak_memory_bytes(&self) -> Result<u64, String>;
    /// Bytes read from and written to block devices so far.
    fn moved_bytes(&self) -> (Result<u64, String>, Result<u64, String>);
    /// Moves the engine into the group again.
    fn join(&mut self) -> Result<(), String>;
    /// Moves the engine back, ends what is left in the group, and removes it.
    fn leave(&mut self);
}

/// The control groups of one engine.
pub struct Cgroups {
    place: Result<Place, String>,
    /// Those entered so far: a test comes back to its own.
    groups: Vec<(String, Box<dyn Group>)>,
    current: Option<usize>,
    before: Option<Reading>,
    swept: bool,
}

/// Everything that only counts up.
struct Reading {
    own_cpu_ns: u64,
    cpu_ns: Result<u64, String>,
    moved: (Result<u64, String>, Result<u64, String>),
}

impl Reading {
    /// The two CPU times directly after one another.
    fn of(group: &dyn Group) -> Reading {
        let moved = group.moved_bytes();
        Reading { own_cpu_ns: etude_clock::own_cpu_ns(), cpu_ns: group.cpu_ns(), moved }
    }
}

impl Cgroups {
    /// Looks where groups can be made. Makes none.
    pub fn detect(wanted: Wanted) -> Cgroups {
        Cgroups { place: Place::find(wanted), groups: Vec::new(), current: None, before: None, swept: false }
    }

    /// 1 or 2; None where no group can be made.
    pub fn version(&self) -> Option<u32> {
        match self.place {
            Ok(Place::V1(_)) => Some(1),
            Ok(Place::V2(_)) => Some(2),
            Err(_) => None,
        }
    }

    /// Controllers that are used.
    pub fn controllers(&self) -> Vec<&str> {
        match &self.place {
            Ok(Place::V1(places)) => places.iter().map(|(controller, _)| *controller).collect(),
            Ok(Place::V2(V2Place { controllers, .. })) => controllers.iter().map(String::as_str).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Why no group can be made.
    pub fn reason(&self) -> Option<&str> {
        self.place.as_ref().err().map(String::as_str)
    }

    /// Enters the group of that name, which is made if there is none.
    ///
    /// The error is one line on why it could not be entered; trials can run nevertheless.
    pub fn enter(&mut self, name: &str) -> Result<(), String> {
        check(name)?;
        let known = self.groups.iter().position(|(known, _)| known == name);
        if known.is_some() && known == self.current {
            return Ok(());
        }
        self.before = None;
        self.current = None;
        if let Some(known) = known {
            self.groups[known].1.join()?;
            self.current = Some(known);
            return Ok(());
        }
        if !std::mem::replace(&mut self.swept, true) {
            self.sweep();
        }
        let group: Box<dyn Group> = match self.place.as_ref().map_err(Clone::clone)? {
            Place::V1(places) => Box::new(v1::V1::enter(places, name)?),
            Place::V2(place) => Box::new(v2::V2::enter(place, name)?),
        };
        self.groups.push((name.to_owned(), group));
        self.current = Some(self.groups.len() - 1);
        Ok(())
    }

    fn sweep(&self) {
        match &self.place {
            Ok(Place::V1(places)) => places.iter().for_each(|(_, own)| sweep(own)),
            Ok(Place::V2(place)) => {
                sweep(&place.own);
                place.own.parent().filter(|_| place.beside).into_iter().for_each(sweep);
            }
            Err(_) => {}
        }
    }

    /// Leaves and removes all groups.
    pub fn leave(&mut self) {
        self.before = None;
        self.current = None;
        for (_, mut group) in self.groups.drain(..) {
            group.leave();
        }
    }

    /// Reads everything before a trial. `follows`: another has just ended, and only the engine has worked since; then
    /// its last reading serves, because the engine's own work is subtracted.
    pub fn start(&mut self, follows: bool) {
        if let Some(index) = self.current {
            let group = &mut self.groups[index].1;
            group.reset_peak();
            if !follows || self.before.is_none() {
                self.before = Some(Reading::of(group.as_ref()));
            }
        }
    }

    /// Reads everything after a trial.
    pub fn stop(&mut self) -> Tree {
        let (Some(index), Some(before)) = (self.current, self.before.take()) else {
            return Tree::unknown("in no control group");
        };
        let group = &self.groups[index].1;
        let after = Reading::of(group.as_ref());
        let own = after.own_cpu_ns - before.own_cpu_ns;
        let tree = Tree {
            cpu_ns: difference(&before.cpu_ns, &after.cpu_ns).map(|all| all.saturating_sub(own)),
            peak_memory_bytes: group.peak_memory_bytes(),
            read_bytes: difference(&before.moved.0, &after.moved.0),
            written_bytes: difference(&before.moved.1, &after.moved.1),
        };
        self.before = Some(after);
        tree
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        self.leave();
    }
}

fn difference(before: &Result<u64, String>, after: &Result<u64, String>) -> Result<u64, String> {
    Ok(after.clone()?.saturating_sub(before.clone()?))
}

/// Moves this process into a group.
fn move_into(directory: &Path) -> Result<(), String> {
    std::fs::write(directory.join("cgroup.procs"), "0")
        .map_err(|error| format!("cgroup: {} cannot be entered: {error}", directory.display()))
}

/// Refuses a name that could be somebody else's group or lead elsewhere; the error is one line.
pub fn check(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.starts_with(PREFIX) && name.len() <= 128 && name.chars().all(plain) {
        return Ok(());
    }
    Err(format!("cgroup: {name:?}: expected {PREFIX} and then up to 120 letters, digits, '-', '_' or '.'"))
}

/// Makes a group's directory; one that an earlier engine of that name left behind is used again.
fn make(directory: &Path) -> Result<(), String> {
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(format!("cgroup: {} cannot be made: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Processes in a group.
fn members(directory: &Path) -> Vec<libc::pid_t> {
    let list = std::fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|pid| pid.parse().ok()).collect()
}

/// Kills all in a group but this process, and waits (at most 2 s) until they have left it.
fn empty(directory: &Path, kill_all: impl Fn(&[libc::pid_t])) {
    let own = std::process::id() as libc::pid_t;
    for _ in 0..1000 {
        let others: Vec<_> = members(directory).into_iter().filter(|&pid| pid != own).collect();
        if others.is_empty() {
            return;
        }
        kill_all(&others);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Removes an empty group; the last process that left it may need a moment to be gone.
fn remove(directory: &Path) {
    for _ in 0..100 {
        match std::fs::remove_dir(directory) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            _ => return,
        }
    }
}

/// Removes empty groups that engines have left behind which were killed: those named for a process that has gone.
fn sweep(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // One that is not empty is in use, or will be emptied by the next engine that is given its name.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

fn kill_each(pids: &[libc::pid_t]) {
    for &pid in pids {
        // SAFETY: takes integers only.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn only_our_own_groups_are_touched() {
        assert!(check("etude-4242-1").is_ok());
        for name in ["", "system.slice", "etude-../x", "etude-a/b", "..", "etude-\n"] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
