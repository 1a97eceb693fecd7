//! A part of the calls, with what it needs.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

use etude_calls::{Call, Kind, Moves, Role};

use super::builder::Rhythm;
use super::glob::Glob;
use super::pipes::without_broken_pipes;
use super::positions::Positions;
use super::prune::prune;
use super::{Made, Refused};
use crate::model::{Action, Script};
use crate::names::is_standard;
use crate::world::{Effect, World, key};

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Class {
    /// Moves, places and keeps the bytes of files.
    Data,
    /// Names, attributes, directories.
    Metadata,
    /// Makes, copies, changes and closes descriptors.
    Descriptors,
    /// Mappings.
    Memory,
    /// Sockets, pipes, asynchronous I/O and what else there is.
    Other,
}

impl Class {
    pub fn of(call: Call) -> Class {
        let row = call.row();
        match row.name {
            "sendto" | "recvfrom" | "sendmsg" | "recvmsg" | "sendmmsg" | "recvmmsg" => Class::Other,
            "lseek" | "fsync" | "fdatasync" | "sync_file_range" | "sync" | "syncfs" | "ftruncate"
            | "truncate" | "fallocate" | "fadvise64" | "readahead" | "sqe_fsync" | "sqe_fdatasync"
            | "iocb_fsync" | "iocb_fdatasync" => Class::Data,
            "open" | "openat" | "openat2" | "creat" | "open_by_handle_at" | "close" | "close_range"
            | "dup" | "dup2" | "dup3" | "fcntl" | "ioctl" | "flock" => Class::Descriptors,
            "mmap" | "munmap" | "msync" | "mremap" | "mprotect" | "madvise" | "brk" => Class::Memory,
            "chdir" | "fchdir" | "getcwd" | "fstat" | "fchmod" | "fchown" | "getdents" | "getdents64"
            | "fstatfs" | "fsetxattr" | "fgetxattr" | "flistxattr" | "fremovexattr" => Class::Metadata,
            _ if row.moves != Moves::Nothing => Class::Data,
            _ if row.arguments.contains(&Kind::Path) => Class::Metadata,
            _ => Class::Other,
        }
    }
}

/// Keeps these calls, and those that make and close what they use. What the others took becomes time.
pub fn filter(script: &Script, calls: &[Call], classes: &[Class]) -> Made {
    if calls.is_empty() && classes.is_empty() {
        return Err(Refused("nothing is to be kept: expected names of calls, or classes".into()));
    }
    let (effects, _) = effects(script, &|_| false);
    let wanted = script.steps.iter().map(|step| match &step.action {
        Action::Call(called) => calls.contains(&called.call) || classes.contains(&Class::of(called.call)),
        _ => true,
    });
    Ok(select(script, &effects, wanted.collect()))
}

/// Keeps calls on files that have, at any time, a name that fits one of the patterns, and what these need. What the
/// others took becomes time.
pub fn only_files(script: &Script, patterns: &[Glob]) -> Made {
    if patterns.is_empty() {
        return Err(Refused("nothing is to be kept: expected a pattern".into()));
    }
    Ok(only(script, &|path| patterns.iter().any(|glob| glob.fits(path))))
}

/// The same of files that have, at any time, a name below one of these directories, or that name itself. `.` is all but
/// the directories that all machines have.
pub fn only_below(script: &Script, directories: &[Vec<u8>]) -> Made {
    let directories: Vec<Vec<u8>> = directories.iter().map(|directory| key(directory)).collect();
    let met: Vec<Cell<bool>> = directories.iter().map(|_| Cell::new(false)).collect();
    let part = only(script, &|path| {
        let fitting = directories.iter().zip(&met).filter(|(directory, _)| is_below(path, directory));
        fitting.fold(false, |_, (_, met)| {
            met.set(true);
            true
        })
    });
    match met.iter().position(|met| !met.get()) {
        None => Ok(part),
        Some(missed) => {
            let name = match &directories[missed][..] {
                b"" => ".".to_owned(),
                name => name.escape_ascii().to_string(),
            };
            Err(Refused(format!("{name}: no call is about a file below it: expected {}", tops(script))))
        }
    }
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or(path);
    match path.strip_prefix(directory) {
        Some(_) if directory.is_empty() => !first.is_empty() && !is_standard(first),
        Some(rest) => rest.is_empty() || rest.starts_with(b"/"),
        None => false,
    }
}

/// Directories that can be chosen, as words.
fn tops(script: &Script) -> String {
    const MOST: usize = 12;
    const LONGEST: usize = 64;
    let paths = script.needed.iter().map(|needed| key(&needed.path));
    let top = |path: Vec<u8>| {
        let end = path.iter().position(|byte| *byte == b'/').filter(|end| *end <= LONGEST)?;
        Some(path[..end].escape_ascii().to_string())
    };
    let tops: BTreeSet<String> = paths.filter_map(top).collect();
    let some: Vec<String> = [".".to_owned()].into_iter().chain(tops).take(MOST).collect();
    format!("{}, or what is below one", some.join(", "))
}

fn only(script: &Script, fits: &dyn Fn(&[u8]) -> bool) -> Script {
    let (effects, fitting) = effects(script, fits);
    let is_wanted = |effect: &Effect| {
        effect.nodes.iter().any(|node| fitting.get(*node as usize) == Some(&true))
            || effect.paths.iter().any(|path| fits(path))
    };
    let wanted = script.steps.iter().zip(&effects);
    let wanted = wanted.map(|(step, effect)| !matches!(step.action, Action::Call(_)) || is_wanted(effect));
    select(script, &effects, wanted.collect())
}

/// What each step met, with the directories above that steps made; and which nodes have a name that fits.
fn effects(script: &Script, fits: &dyn Fn(&[u8]) -> bool) -> (Vec<Effect>, Vec<bool>) {
    let mut world = World::new(script);
    let mut fitting = Vec::new();
    let mut mark = |world: &World, path: &[u8]| {
        if let Some(node) = world.names.find(path).filter(|_| fits(path)) {
            fitting.resize(fitting.len().max(node as usize + 1), false);
            fitting[node as usize] = true;
        }
    };
    script.needed.iter().for_each(|needed| mark(&world, &key(&needed.path)));
    let mut all = Vec::with_capacity(script.steps.len());
    for step in &script.steps {
        let mut effect = world.step(step);
        for path in &effect.paths {
            mark(&world, path);
            let slashes = (0..path.len()).filter(|at| path[*at] == b'/');
            let above = slashes.filter_map(|at| world.names.find(&path[..at]));
            effect.above.extend(above.filter(|node| world.names.node(*node).made));
        }
        all.push(effect);
    }
    (all, fitting)
}

/// Keeps the wanted steps, and all on which they stand: what opens and closes their descriptors, and what makes,
/// renames and removes the files that they meet. Where calls that are left out moved a position, there is a seek.
fn select(script: &Script, effects: &[Effect], mut keep: Vec<bool>) -> Script {
    let (mut of_description, mut of_node) = (Lists::default(), Lists::default());
    for (index, effect) in effects.iter().enumerate() {
        if effect.of_descriptors {
            effect.descriptions.iter().for_each(|number| of_description.add(*number, index));
        }
        if effect.of_names {
            effect.nodes.iter().for_each(|number| of_node.add(*number, index));
        }
        keep[index] |= effect.of_place;
    }
    let mut waiting: Vec<usize> = (0..keep.len()).filter(|index| keep[*index]).collect();
    while let Some(index) = waiting.pop() {
        let effect = &effects[index];
        // It closes what is open of a range, whatever that is.
        if matches!(&script.steps[index].action, Action::Call(called) if called.call.name() == "close_range")
        {
            continue;
        }
        let nodes = effect.nodes.iter().chain(&effect.above).flat_map(|node| of_node.take(*node));
        let descriptions = effect.descriptions.iter().flat_map(|number| of_description.take(*number));
        for other in nodes.chain(descriptions) {
            if !std::mem::replace(&mut keep[other], true) {
                waiting.push(other);
            }
        }
    }
    with_requests(script, effects, &mut keep);
    let (mut rhythm, mut positions) = (Rhythm::default(), Positions::new(script));
    for (step, keep) in script.steps.iter().zip(keep) {
        for seek in positions.step(step, keep) {
            rhythm.push(step.thread, seek);
        }
        match &step.action {
            Action::Call(called) if !keep => rhythm.skip(step.thread, called.duration_ns.unwrap_or(0)),
            action => rhythm.push(step.thread, action.clone()),
        }
    }
    let mut made = Script { needed: script.needed.clone(), steps: rhythm.finish(), ..script.without_steps() };
    made = without_broken_pipes(made);
    prune(&mut made);
    made
}

/// Calls that hand requests over or take them are kept with these, and not without.
fn with_requests(script: &Script, effects: &[Effect], keep: &mut [bool]) {
    let role = |index: usize| match &script.steps[index].action {
        Action::Call(called) => called.call.role(),
        _ => None,
    };
    let requests =
        (0..keep.len()).filter(|index| keep[*index] && matches!(role(*index), Some(Role::Request { .. })));
    let kept: HashSet<u32> = requests.flat_map(|index| effects[index].requests.iter().copied()).collect();
    for index in 0..keep.len() {
        let its = &effects[index].requests;
        let of_kept = its.iter().any(|request| kept.contains(request));
        match role(index) {
            Some(Role::Completion { .. }) => keep[index] = of_kept,
            // One that only waits.
            Some(Role::Handover { .. }) => keep[index] = of_kept || its.is_empty() && !kept.is_empty(),
            Some(Role::Request { .. }) | None => {}
        }
    }
}

/// Steps by what they met.
#[derive(Default)]
struct Lists(Vec<Vec<usize>>);

impl Lists {
    fn add(&mut self, number: u32, step: usize) {
        let number = number as usize;
        if self.0.len() <= number {
            self.0.resize_with(number + 1, Vec::new);
        }
        self.0[number].push(step);
    }

    /// The steps of a number, once.
    fn take(&mut self, number: u32) -> Vec<usize> {
        self.0.get_mut(number as usize).map(std::mem::take).unwrap_or_default()
    }
}
