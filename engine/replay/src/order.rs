//! Which thread has to wait for which: the order of calls that use the same thing is that of the original (ARTC's rules:
//! Weiss and others, FAST 2013), all others may overlap as they like.
//!
//! - A name (a path) is created before it is used, and not removed or renamed before its last use.
//! - A descriptor is opened before it is used, and closed after its last use; a number that is used anew is closed before.
//! - Calls that use and move the position of one open file come one after the other.
//! - Data: what overlaps in a file, and is written by one of both, comes in the original's order.

mod data;
mod descriptors;
mod names;

use std::collections::HashMap;

use etude_script::{Action, Called, Script};

use crate::extents::Extents;

/// What a step waits for: a step of another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub thread: u32,
    /// Its place in the script.
    pub step: usize,
}

type Point = Wait;
pub type Waits = HashMap<usize, Vec<Wait>>;

/// Something that is made, used and ended: its users wait for its maker, and whoever makes it anew waits for all.
#[derive(Debug, Default, Clone)]
struct Thing {
    maker: Option<Point>,
    /// The last use by each thread since.
    users: Vec<Point>,
}

/// An open file.
#[derive(Debug, Clone)]
struct Opened {
    /// What it is, as far as it is known: data are the same where this is.
    file: usize,
    /// Whose position is moved in order.
    position: usize,
    append: bool,
}

#[derive(Debug, Clone)]
struct Slot {
    description: usize,
    thing: usize,
}

/// Finds all waits of a script.
pub struct Order {
    waits: Waits,
    /// By pairs of threads, up to which step the first knows the second.
    known: HashMap<(u32, u32), usize>,
    things: Vec<Thing>,
    opened: Vec<Opened>,
    places: Vec<u64>,
    names: HashMap<Vec<u8>, usize>,
    /// By name: the file that stands there.
    files: HashMap<Vec<u8>, usize>,
    data: Vec<Extents>,
    /// By process and number.
    slots: HashMap<(u32, i64), Slot>,
    directories: HashMap<usize, Vec<u8>>,
    process: HashMap<u32, u32>,
    cwd: HashMap<u32, Vec<u8>>,
}

impl Order {
    /// By the place of a step, what it waits for; of a script of one thread nothing.
    pub fn of(script: &Script) -> Waits {
        if script.steps.iter().all(|step| step.thread == 0) {
            return Waits::new();
        }
        let mut order = Order {
            waits: Waits::new(),
            known: HashMap::new(),
            things: Vec::new(),
            opened: Vec::new(),
            places: Vec::new(),
            names: HashMap::new(),
            files: HashMap::new(),
            data: Vec::new(),
            slots: HashMap::new(),
            directories: HashMap::new(),
            process: HashMap::from([(0, 0)]),
            cwd: HashMap::new(),
        };
        for (at, step) in script.steps.iter().enumerate() {
            let here = Point { thread: step.thread, step: at };
            match &step.action {
                Action::Start(other) => {
                    let process = order.process_of(step.thread);
                    order.process.insert(*other, process);
                    order.known.insert((*other, step.thread), at);
                }
                Action::Fork(other) => order.fork(here, *other),
                Action::Call(called) => order.call(here, called),
                Action::Compute(_) | Action::Wait(_) | Action::Exec => {}
            }
        }
        order.waits
    }

    fn process_of(&self, thread: u32) -> u32 {
        self.process.get(&thread).copied().unwrap_or(thread)
    }

    /// The new process has what its parent has: descriptors with positions in common, and a directory of its own.
    fn fork(&mut self, here: Point, other: u32) {
        let parent = self.process_of(here.thread);
        self.process.insert(other, other);
        self.known.insert((other, here.thread), here.step);
        let copies: Vec<_> = self
            .slots
            .iter()
            .filter(|((of, _), _)| *of == parent)
            .map(|((_, fd), slot)| (*fd, slot.clone()))
            .collect();
        for (fd, slot) in copies {
            self.uses(here, slot.thing);
            let thing = self.thing(Some(here));
            self.slots.insert((other, fd), Slot { thing, ..slot });
        }
        if let Some(cwd) = self.cwd.get(&parent).cloned() {
            self.cwd.insert(other, cwd);
        }
    }

    fn thing(&mut self, maker: Option<Point>) -> usize {
        self.things.push(Thing { maker, users: Vec::new() });
        self.things.len() - 1
    }

    fn wait(&mut self, here: Point, other: Point) {
        if other.thread == here.thread {
            return;
        }
        let known = self.known.entry((here.thread, other.thread)).or_insert(0);
        if *known >= other.step && *known > 0 {
            return;
        }
        *known = other.step;
        self.waits.entry(here.step).or_default().push(other);
    }

    fn uses(&mut self, here: Point, thing: usize) {
        if let Some(maker) = self.things[thing].maker {
            self.wait(here, maker);
        }
        let users = &mut self.things[thing].users;
        match users.iter_mut().find(|user| user.thread == here.thread) {
            Some(user) => *user = here,
            None => users.push(here),
        }
    }

    fn makes(&mut self, here: Point, thing: usize) {
        let users = std::mem::take(&mut self.things[thing].users);
        users.into_iter().for_each(|user| self.wait(here, user));
        if let Some(maker) = self.things[thing].maker.replace(here) {
            self.wait(here, maker);
        }
    }

    fn call(&mut self, here: Point, called: &Called) {
        let process = self.process_of(here.thread);
        self.name_space(here, process, called);
        self.descriptors(here, process, called);
        if called.result >= 0 {
            self.data(here, process, called);
            self.results(here, process, called);
        }
    }
}
