//! Several scripts side by side, as processes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use super::apart::apart;
use super::moved::Moved;
use super::{Made, Refused};
use crate::model::{Action, Dropped, Needed, Script, Step, What};
use crate::times::{times, turns};

/// The most processes that are made of one script.
const MOST: u32 = 65_536;

/// Runs several scripts at the same time, each in its own directory `a`, `b` …; or all in one.
pub fn merge(scripts: &[Script], shared: bool) -> Made {
    if scripts.len() < 2 || scripts.len() > 26 {
        return Err(Refused(format!("{} scripts cannot be merged: expected 2 to 26", scripts.len())));
    }
    let directories: Vec<Vec<u8>> = (b'a'..=b'z').map(|letter| vec![letter]).collect();
    let parts: Vec<_> = scripts
        .iter()
        .zip(&directories)
        .map(|(script, directory)| Part {
            script,
            order: order(script),
            directory: (!shared).then_some(&directory[..]),
        })
        .collect();
    let notes = scripts.iter().flat_map(|script| script.notes.clone()).collect();
    side(&parts, notes)
}

/// Runs a script so many times at once, each in its own directory: `1`, `2` ….
pub fn clone(script: &Script, times: u32) -> Made {
    if times == 0 || times > MOST {
        return Err(Refused(format!("a script cannot be cloned {times} times: expected 1 to {MOST}")));
    }
    let directories: Vec<Vec<u8>> = (1..=times).map(|number| number.to_string().into_bytes()).collect();
    let order = order(script);
    let parts: Vec<_> = directories
        .iter()
        .map(|directory| Part { script, order: order.clone(), directory: Some(directory) })
        .collect();
    side(&parts, script.notes.clone())
}

struct Part<'a> {
    script: &'a Script,
    /// When each step has its turn, ns: never before the step above it.
    order: Rc<[u64]>,
    directory: Option<&'a [u8]>,
}

fn order(script: &Script) -> Rc<[u64]> {
    turns(&times(script)).into()
}

fn side(parts: &[Part], notes: Vec<String>) -> Made {
    // Of several classes there is none for all.
    let class = |part: &Part| part.script.scheduling;
    let scheduling = class(&parts[0]).filter(|first| parts.iter().all(|part| class(part) == Some(*first)));
    let mut made = Script { notes, scheduling, dropped: together(parts), ..Script::default() };
    let (mut first, mut bases) = (1_u32, Vec::new());
    for part in parts {
        bases.push(first);
        first = highest(part.script)
            .checked_add(1)
            .and_then(|count| first.checked_add(count))
            .ok_or_else(|| Refused("these are too many threads: their numbers go up to 4294967295".into()))?;
        let forks = Action::Fork(*bases.last().expect("it was pushed"));
        made.steps.push(Step { thread: 0, action: forks });
    }
    let mut moved: Vec<_> = parts.iter().map(|part| part.directory.map(Moved::new)).collect();
    let scripts: Vec<_> = parts.iter().map(|part| part.script).collect();
    let apart = apart(&scripts, parts.iter().any(|part| part.directory.is_none()));
    let mut needed = BTreeMap::new();
    for ((part, moved), apart) in parts.iter().zip(&moved).zip(&apart) {
        let own = match moved {
            Some(moved) => moved.needed(&part.script.needed),
            None => apart.needed(&part.script.needed),
        };
        own.into_iter().try_for_each(|each| add(&mut needed, each))?;
    }
    made.needed = needed.into_values().collect();
    // A hard link comes behind what it is another name of.
    made.needed.sort_by_key(|needed| matches!(needed.what, What::HardLink(_)));
    let mut turns: BinaryHeap<_> = (0..parts.len()).filter_map(|part| turn(parts, part, 0)).collect();
    while let Some(Reverse((_, part, index))) = turns.pop() {
        let step = &parts[part].script.steps[index];
        let action = match &mut moved[part] {
            Some(moved) => moved.action(step),
            None => step.action.clone(),
        };
        made.steps.push(shifted(step.thread, apart[part].action(action), bases[part]));
        turns.extend(turn(parts, part, index + 1));
    }
    made.steps.extend(bases.iter().map(|base| Step { thread: 0, action: Action::Wait(*base) }));
    Ok(made)
}

/// Calls that were left out of all of them.
fn together(parts: &[Part]) -> Vec<Dropped> {
    let mut found = BTreeMap::<(&str, &str), Dropped>::new();
    for dropped in parts.iter().flat_map(|part| &part.script.dropped) {
        let none = || dropped.times(0);
        found.entry((&dropped.call, &dropped.why)).or_insert_with(none).add(dropped);
    }
    found.into_values().collect()
}

type Turn = Reverse<(u64, usize, usize)>;

fn turn(parts: &[Part], part: usize, index: usize) -> Option<Turn> {
    Some(Reverse((*parts[part].order.get(index)?, part, index)))
}

/// The highest number of a thread.
pub fn highest(script: &Script) -> u32 {
    let of = |step: &Step| match step.action {
        Action::Start(thread) | Action::Fork(thread) => step.thread.max(thread),
        _ => step.thread,
    };
    script.steps.iter().map(of).max().unwrap_or(0)
}

/// A step of threads whose numbers begin at `base`.
pub fn shifted(thread: u32, mut action: Action, base: u32) -> Step {
    if let Action::Start(number) | Action::Fork(number) | Action::Wait(number) = &mut action {
        *number += base;
    }
    Step { thread: thread + base, action }
}

/// Adds something that is needed; of two files with one name the larger one.
fn add(needed: &mut BTreeMap<Vec<u8>, Needed>, new: Needed) -> Result<(), Refused> {
    let path = crate::world::key(&new.path);
    let Some(old) = needed.get_mut(&path) else {
        needed.insert(path, new);
        return Ok(());
    };
    match (&mut old.what, new.what) {
        (
            What::File { bytes, allocated, seen },
            What::File { bytes: also, allocated: also_allocated, seen: also_seen },
        ) => {
            *allocated = match (*allocated, also_allocated) {
                (Some(one), Some(other)) => Some(one.max(other)),
                _ => None,
            };
            (*bytes, *seen) = ((*bytes).max(also), *seen && also_seen);
            Ok(())
        }
        (one, other) if *one == other => Ok(()),
        _ => {
            let path = String::from_utf8_lossy(&path).into_owned();
            Err(Refused(format!("\"{path}\" is something else in each script: give each its own directory")))
        }
    }
}
