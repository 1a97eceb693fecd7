//! A script in a directory of its own.

use std::collections::HashMap;

use etude_calls::Kind;

use crate::model::{Action, Called, Needed, Step, What};
use crate::world::{is_link_target, key};

/// Puts what steps name into a directory.
pub struct Moved<'a> {
    directory: &'a [u8],
    /// The process of each thread, and whether each process has left the place in which the script begins: then it
    /// stands in the directory already.
    processes: HashMap<u32, u32>,
    away: HashMap<u32, bool>,
}

impl<'a> Moved<'a> {
    pub fn new(directory: &'a [u8]) -> Moved<'a> {
        Moved { directory, processes: HashMap::new(), away: HashMap::new() }
    }

    /// What a step becomes there.
    pub fn action(&mut self, step: &Step) -> Action {
        let process = self.processes.get(&step.thread).copied().unwrap_or(0);
        let away = self.away.get(&process).copied().unwrap_or(false);
        match &step.action {
            Action::Start(thread) => drop(self.processes.insert(*thread, process)),
            Action::Fork(thread) => {
                self.processes.insert(*thread, *thread);
                self.away.insert(*thread, away);
            }
            Action::Call(called) => {
                if matches!(called.call.name(), "chdir" | "fchdir") && !called.failed() {
                    self.away.insert(process, true);
                }
                return Action::Call(self.called(called, away));
            }
            _ => {}
        }
        step.action.clone()
    }

    fn called(&self, called: &Called, away: bool) -> Called {
        let mut moved = called.clone();
        for text in &mut moved.texts {
            let index = usize::from(text.argument);
            if called.call.kind(&called.arguments, index) != Kind::Path {
                continue;
            }
            let beside = index > 0 && called.call.kind(&called.arguments, index - 1) == Kind::DirFd;
            let from_place = !(beside && called.arguments[index - 1] as i32 != -100);
            if text.bytes.starts_with(b"/") {
                text.bytes = [b"/", &self.path(&text.bytes)[..]].concat().into();
            } else if from_place && !away && !is_link_target(called.call, index) && !text.bytes.is_empty() {
                text.bytes = self.path(&text.bytes).into();
            }
        }
        moved
    }

    /// A path that begins at the root. None leads out of the directory.
    fn path(&self, path: &[u8]) -> Vec<u8> {
        let mut within = path.strip_prefix(b"/").unwrap_or(path).to_vec();
        if path.split(|byte| *byte == b'/').any(|part| part == b"..") {
            within = key(path);
        }
        [self.directory, b"/", &within].concat()
    }

    pub fn needed(&self, needed: &[Needed]) -> Vec<Needed> {
        let own = Needed { path: self.directory.into(), what: What::Directory };
        let moved = needed.iter().map(|needed| Needed {
            path: self.path(&needed.path).into(),
            what: match &needed.what {
                What::HardLink(of) => What::HardLink(self.path(of).into()),
                What::Link(to) if to.starts_with(b"/") => {
                    What::Link([b"/", &self.path(to)[..]].concat().into())
                }
                other => other.clone(),
            },
        });
        std::iter::once(own).chain(moved).collect()
    }
}
