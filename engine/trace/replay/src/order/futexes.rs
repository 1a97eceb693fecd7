//! Threads that wait for each other: who was woken goes on behind whoever did that.

use etude_calls::Futex;
use etude_script::Called;

use super::Order;
use super::edges::Edge;
use super::waits::Point;

impl Order {
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
