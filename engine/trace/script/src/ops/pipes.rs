//! What is left of a script where some of what it opens is left out; and which pipes and pairs of sockets have to be, since
//! who reads one would wait for ever.

use std::collections::{HashMap, HashSet};

use etude_calls::{Kind, Moves};

use super::builder::{Rhythm, close_in_place};
use crate::model::{Action, Called, PIPE_ROOM, Script, Step};
use crate::world::{Description, End, World};

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Kept,
    Out,
    /// Only that it closes this descriptor is left of it.
    Closes(i32),
}

/// What becomes of a call that is the next in `world`, where `lost` was left out.
pub fn fate(world: &World, thread: u32, called: &Called, lost: &HashSet<Description>) -> Fate {
    let process = world.threads.get(&thread).copied().unwrap_or(0);
    let (name, arguments) = (called.call.name(), &called.arguments);
    let is_lost = |descriptor: i32| world.description(process, descriptor).map(|of| lost.contains(&of));
    if name == "close_range" {
        let [first, last] = [0, 1].map(|index| i32::try_from(arguments[index]).unwrap_or(i32::MAX));
        let open = world.processes.get(&process).map(|process| process.table.range(first, last));
        let mut open =
            open.into_iter().flatten().filter_map(|(descriptor, _)| is_lost(descriptor)).peekable();
        return if open.peek().is_some() && open.all(|lost| lost) { Fate::Out } else { Fate::Kept };
    }
    let copies = matches!(name, "dup2" | "dup3") && arguments[0] != arguments[1];
    let mut used = (0..called.call.used(arguments)).filter(|index| {
        matches!(called.call.kind(arguments, *index), Kind::Fd | Kind::DirFd) && !(copies && *index == 1)
    });
    if !used.any(|index| is_lost(arguments[index] as i32) == Some(true)) {
        return Fate::Kept;
    }
    let target = arguments[1] as i32;
    match is_lost(target).filter(|_| copies && !called.failed()) {
        Some(false) => Fate::Closes(target),
        _ => Fate::Out,
    }
}

/// Leaves out the pipes from which more is read than is written to them, and those that cannot hold what nobody reads.
pub fn without_broken_pipes(script: Script) -> Script {
    let lost = broken(&script);
    if lost.is_empty() {
        return script;
    }
    let (mut world, mut rhythm) = (World::new(&script), Rhythm::default());
    for Step { thread, action } in &script.steps {
        let fate = match action {
            Action::Call(called) => fate(&world, *thread, called, &lost),
            _ => Fate::Kept,
        };
        let made = world.opened.len() as Description;
        world.step(&Step { thread: *thread, action: action.clone() });
        let makes_lost = (made..world.opened.len() as Description).any(|new| lost.contains(&new));
        match (fate, action) {
            (Fate::Closes(descriptor), Action::Call(called)) => {
                rhythm.push(*thread, close_in_place(descriptor, called.duration_ns));
            }
            (fate, Action::Call(called)) if fate == Fate::Out || makes_lost => {
                rhythm.skip(*thread, called.duration_ns.unwrap_or(0));
            }
            _ => rhythm.push(*thread, action.clone()),
        }
    }
    Script { steps: rhythm.finish(), ..script }
}

/// All ends of such pipes, and sockets whose other end is not there.
fn broken(script: &Script) -> HashSet<Description> {
    let mut world = World::new(script);
    let mut bytes: HashMap<u32, (u64, u64)> = HashMap::new();
    for step in &script.steps {
        if let Action::Call(called) = &step.action
            && let Some(moves) = called.call.streams()
            && let Some(end) = world.pipe(step.thread, called.arguments[0] as i32)
        {
            let moved = u64::try_from(called.result).unwrap_or(0);
            let sum = match moves {
                Moves::Reads => &mut bytes.entry(end.reads).or_default().0,
                _ => &mut bytes.entry(end.writes).or_default().1,
            };
            *sum = sum.saturating_add(moved);
        }
        world.step(step);
    }
    let stands = |stream: u32| {
        let (read, written) = bytes.get(&stream).copied().unwrap_or_default();
        written.checked_sub(read).is_some_and(|left| left <= PIPE_ROOM)
    };
    let ends = (0..).zip(&world.opened).filter_map(|(number, opened)| Some((number, opened.pipe?)));
    let broken = ends.filter(|(_, end)| !stands(end.reads) || !stands(end.writes)).map(|(number, _)| number);
    broken.chain(world.half_made.values().map(|(_, own)| *own)).collect()
}

impl World {
    /// The end of a pipe that a descriptor of a thread is.
    pub(super) fn pipe(&self, thread: u32, descriptor: i32) -> Option<End> {
        let process = self.threads.get(&thread).copied().unwrap_or(0);
        self.opened[self.description(process, descriptor)? as usize].pipe
    }

    pub(super) fn is_of_pipe(&self, thread: u32, called: &Called) -> bool {
        let mut words = called.call.row().arguments.iter().zip(&called.arguments);
        words.any(|(kind, word)| *kind == Kind::Fd && self.pipe(thread, *word as i32).is_some())
    }
}
