//! Positions in files that calls which are left out would have moved.

use super::builder::call;
use crate::model::{Action, Called, Script, Step};
use crate::world::{NodeKind, World, from_positions};

/// The original, and what is kept of it, side by side.
pub struct Positions {
    original: World,
    kept: World,
}

impl Positions {
    pub fn new(script: &Script) -> Positions {
        Positions { original: World::new(script), kept: World::new(script) }
    }

    /// Takes a step. Before one that is kept come these, so that it goes on where it did.
    pub fn step(&mut self, step: &Step, keep: bool) -> Vec<Action> {
        let mut seeks = Vec::new();
        if let Action::Call(called) = &step.action
            && keep
            && !called.failed()
        {
            seeks.extend(
                from_positions(&called.done())
                    .filter_map(|descriptor| self.seek(step.thread, called, descriptor)),
            );
        }
        self.original.step(step);
        if keep {
            for action in &seeks {
                self.kept.step(&Step { thread: step.thread, action: action.clone() });
            }
            self.kept.step(step);
        }
        seeks
    }

    fn seek(&self, thread: u32, called: &Called, descriptor: i32) -> Option<Action> {
        let position = self.original.position(thread, descriptor)?;
        if self.kept.position(thread, descriptor)? == position {
            return None;
        }
        let mut seek = call("lseek", &[i64::from(descriptor) as u64, position, 0], &[], position as i64);
        if let Action::Call(seek) = &mut seek {
            seek.duration_ns = called.duration_ns.map(|_| 0);
        }
        Some(seek)
    }
}

impl World {
    /// Where in its file a descriptor of a thread stands; None where it is of no file.
    fn position(&self, thread: u32, descriptor: i32) -> Option<u64> {
        let process = self.threads.get(&thread).copied().unwrap_or(0);
        let opened = &self.opened[self.description(process, descriptor)? as usize];
        let is_file = matches!(self.names.node(opened.node?).kind, NodeKind::File { .. });
        is_file.then_some(opened.position)
    }
}
