//! Requests that are under way.

use std::collections::HashMap;

use crate::rows::Done;
use etude_calls::{Interface, Role};
use smallvec::SmallVec;

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

    /// Follows a call; `requests` gets the numbers of those that it makes, hands over, or finds done.
    pub(crate) fn step(&mut self, process: u32, done: &Done, requests: &mut SmallVec<[u32; 1]>) {
        let words = done.arguments;
        match done.call.role() {
            Some(Role::Request { interface, tag }) => {
                let queue = (process, interface, words[1]);
                self.open.insert((queue, words[tag]), self.next);
                self.told.entry(queue).or_default().push(self.next);
                requests.push(self.next);
                self.next += 1;
            }
            Some(Role::Handover { interface }) => {
                requests.extend(self.told.remove(&(process, interface, words[0])).unwrap_or_default());
            }
            Some(Role::Completion { interface }) => {
                requests.extend(self.open.remove(&((process, interface, words[0]), words[1])));
            }
            None => {}
        }
    }
}
