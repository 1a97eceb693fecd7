//! A script several times, one after the other.

use std::collections::BTreeSet;

use super::builder::{call, close, remove, rooted};
use super::moved::Moved;
use super::side::{highest, shifted};
use super::{Made, Refused};
use crate::model::{Action, Needed, Script, Step, What};
use crate::world::{NodeKind, ROOT, World, key, names_of};

/// What each round finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// The files of the round before: what that made is removed between them, what it made longer or shorter is cut or
    /// extended to its size.
    Same,
    /// Files of its own, in its own directory: `1`, `2` ….
    Own,
}

/// Repeats a script. A script of one thread stays one thread, whose descriptors are closed at the end of a round; of one
/// with more, each round is a process that is waited for.
pub fn repeat(script: &Script, times: u32, rounds: Rounds) -> Made {
    if times == 0 || times > 1_000_000 {
        return Err(Refused(format!("a script cannot be repeated {times} times: expected 1 to 1000000")));
    }
    let mut world = World::new(script);
    script.steps.iter().for_each(|step| drop(world.step(step)));
    let single = highest(script) == 0;
    let mut tidy = Vec::new();
    if single {
        leave(&world, &mut tidy);
    }
    if rounds == Rounds::Same && times > 1 {
        clean(script, &world, &mut tidy)?;
    }
    let mut made = script.without_steps();
    made.dropped = made.dropped.iter().map(|dropped| dropped.times(times.into())).collect();
    let mut base = 1_u32;
    for round in 1..=times {
        let directory = round.to_string().into_bytes();
        let mut moved = (rounds == Rounds::Own).then(|| Moved::new(&directory));
        match &moved {
            Some(moved) => made.needed.extend(moved.needed(&script.needed)),
            None if round == 1 => made.needed.clone_from(&script.needed),
            None => {}
        }
        let actions = script.steps.iter().map(|step| match &mut moved {
            Some(moved) => (step.thread, moved.action(step)),
            None => (step.thread, step.action.clone()),
        });
        if single {
            made.steps.extend(actions.map(|(thread, action)| Step { thread, action }));
        } else {
            made.steps.push(Step { thread: 0, action: Action::Fork(base) });
            made.steps.extend(actions.map(|(thread, action)| shifted(thread, action, base)));
            made.steps.extend(unwaited(script).map(|step| shifted(step.thread, step.action, base)));
            made.steps.push(Step { thread: 0, action: Action::Wait(base) });
            let next = highest(script).checked_add(1).and_then(|count| base.checked_add(count));
            base = next.ok_or_else(|| {
                Refused("these are too many threads: their numbers go up to 4294967295".into())
            })?;
        }
        if round < times {
            made.steps.extend(tidy.iter().map(|action| Step { thread: 0, action: action.clone() }));
        }
    }
    // A hard link comes behind what it is another name of.
    made.needed.sort_by_key(|needed| matches!(needed.what, What::HardLink(_)));
    Ok(made)
}

/// Steps that close what the first process has open, and go back to where it began.
fn leave(world: &World, tidy: &mut Vec<Action>) {
    let Some(process) = world.processes.get(&0) else { return };
    tidy.extend(process.table.iter().map(|(descriptor, _)| close(descriptor)));
    if process.place != ROOT {
        tidy.push(call("chdir", &[], &[b"/"], 0));
    }
}

/// Waits for processes that the script does not wait for: a round ends when all of it has.
fn unwaited(script: &Script) -> impl Iterator<Item = Step> {
    let mut threads = std::collections::HashMap::from([(0, 0)]);
    let (mut forks, mut waited) = (Vec::new(), BTreeSet::new());
    for step in &script.steps {
        let process = threads.get(&step.thread).copied().unwrap_or(0);
        match step.action {
            Action::Start(thread) => drop(threads.insert(thread, process)),
            Action::Fork(thread) => {
                threads.insert(thread, thread);
                forks.push((process, thread));
            }
            Action::Wait(thread) => drop(waited.insert(thread)),
            _ => {}
        }
    }
    let left = forks.into_iter().filter(move |(_, child)| !waited.contains(child));
    left.map(|(process, child)| Step { thread: process, action: Action::Wait(child) })
}

/// Steps that make the files what they were at the beginning, but for what they hold.
fn clean(script: &Script, after: &World, tidy: &mut Vec<Action>) -> Result<(), Refused> {
    let before = names_of(&script.needed);
    for Needed { path, .. } in &script.needed {
        let path = key(path);
        let there = after.names.find(&path).map(|node| &after.names.node(node).kind);
        let was = before.find(&path).map(|node| &before.node(node).kind);
        match (was, there) {
            (Some(NodeKind::File { bytes, .. }), Some(NodeKind::File { bytes: now, .. })) => {
                if now != bytes {
                    tidy.push(call("truncate", &[0, *bytes], &[&rooted(&path)], 0));
                }
            }
            (was, there) if was == there => {}
            _ => {
                let path = path.escape_ascii();
                return Err(Refused(format!(
                    "\"{path}\" is not there any more after a round, and the next one needs it: give each round files of its own"
                )));
            }
        }
    }
    // What is below a directory goes before it.
    let all: Vec<_> = after.names.all().collect();
    for (path, node) in all.into_iter().rev().filter(|(path, _)| before.find(path).is_none()) {
        let node = after.names.node(node);
        if node.made || node.used {
            tidy.push(remove(&rooted(path), node.kind == NodeKind::Directory));
        }
    }
    Ok(())
}
