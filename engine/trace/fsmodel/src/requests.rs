//! Requests that are under way.

use std::collections::HashMap;

use etude_calls::{Interface, Role};

use crate::done::Done;
use crate::model::Effect;

/// A queue: process, interface, number.
type Queue = (u32, Interface, u64);

#[derive(Default)]
pub struct Requests {
    next: u32,
    /// By the number under which a completion is taken.
    open: HashMap<(Queue, u64), u32>,
    /// Made since the last call that handed some over.
    told: HashMap<Queue, Vec<u32>>,
}

impl Requests {
    /// The number of the request that is made next.
    pub fn next(&self) -> u32 {
        self.next
    }

    pub(crate) fn step(&mut self, process: u32, done: &Done, effect: &mut Effect) {
        let words = done.arguments;
        match done.call.role() {
            Some(Role::Request { interface, tag }) => {
                let queue = (process, interface, words[1]);
                self.open.insert((queue, words[tag]), self.next);
                self.told.entry(queue).or_default().push(self.next);
                effect.requests.push(self.next);
                self.next += 1;
            }
            Some(Role::Handover { interface }) => {
                effect.requests.extend(self.told.remove(&(process, interface, words[0])).unwrap_or_default());
            }
            Some(Role::Completion { interface }) => {
                effect.requests.extend(self.open.remove(&((process, interface, words[0]), words[1])));
            }
            None => {}
        }
    }
}
