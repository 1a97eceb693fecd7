//! Requests that are done later, whose data are in use until the program takes their completions; and threads that wait until
//! others wake them.

use etude_calls::{Futex, Moves, Role};
use etude_script::Called;

use super::Order;
use super::waits::{Edge, Point};

/// A request that is under way.
#[derive(Debug)]
pub struct Asked {
    by: Point,
    file: Option<usize>,
    from: u64,
    bytes: u64,
    writes: bool,
}

impl Order {
    pub(super) fn requests(&mut self, here: Point, process: u32, called: &Called) {
        let words = &called.arguments;
        match called.call.role() {
            Some(Role::Request { interface, tag }) => {
                let moves = called.call.row().moves;
                // Where its place is not known, it may be anywhere.
                let (from, bytes) = match words[3] as i64 {
                    0.. => (words[3], words[2]),
                    _ => (0, u64::MAX),
                };
                let file = self.file_of(process, words[0] as i32).filter(|_| moves != Moves::Nothing);
                let asked = Asked { by: here, file, from, bytes, writes: moves == Moves::Writes };
                self.asked.insert((process, interface, words[1], words[tag]), asked);
            }
            Some(Role::Completion { interface }) => {
                let Some(asked) = self.asked.remove(&(process, interface, words[0], words[1])) else {
                    return;
                };
                self.wait(here, asked.by, Edge::Requests);
                if let Some(file) = asked.file {
                    self.touch_file(here, file, (asked.from, asked.bytes), asked.writes);
                }
            }
            Some(Role::Handover { .. }) | None => {}
        }
    }

    /// Who was woken goes on behind whoever did that.
    pub(super) fn futexes(&mut self, here: Point, process: u32, called: &Called) {
        let owner = Futex::is_private(&called.arguments).then_some(process);
        let word = (owner, called.arguments[0]);
        match Futex::of(called.call, &called.arguments) {
            Some(Futex::Wake) => drop(self.woken.insert(word, here)),
            Some(Futex::Wait) => {
                if let Some(by) = self.woken.get(&word).copied() {
                    self.wait(here, by, Edge::Threads);
                }
            }
            None => {}
        }
    }
}
