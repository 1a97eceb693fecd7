//! Which thread has to wait for which: the order of calls that use the same thing is that of the original (ARTC's rules:
//! Weiss and others, FAST 2013), all others may overlap as they like.
//!
//! - A name (a path) is created before it is used, and not removed or renamed before its last use.
//! - A descriptor is opened before it is used, and closed after its last use; a number that is used anew is closed before.
//! - Calls that use and move the position of one open file come one after the other.
//! - Data: what overlaps in a file, and is written by one of both, comes in the original's order.
//! - A request is handed over before its completion is taken, and its data count until then.
//! - Who waited for a thread goes on when that has woken it, or ended.
//! - How long a file is: whoever asks, or finds its end, comes after what made it longer or shorter, and before what does
//!   so next.

mod blocked;
mod data;
mod descriptors;
mod locks;
mod names;
mod pipes;
mod requests;
mod sizes;
#[cfg(test)]
mod tests;
mod waits;

use std::collections::{BTreeMap, HashMap};

use etude_calls::Interface;
use etude_fsmodel::{Reuse, Table};
use etude_script::{Action, Called, Script};

use self::blocked::{Blocked, Clocks};
use self::data::Extents;
use self::locks::Locks;
use self::pipes::{End, Pipe};
use self::requests::Asked;
use self::sizes::Size;
use self::waits::Point;
pub use self::waits::{Edge, Edges, Wait, Waits, end_of};

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
    reads: bool,
    /// By how many descriptors it is open.
    copies: usize,
}

/// A file.
#[derive(Debug, Default)]
struct Content {
    extents: Extents,
    locks: Locks,
    size: Size,
    pipe: Option<End>,
}

/// The description of a descriptor.
#[derive(Debug, Clone, Copy)]
struct Slot {
    description: usize,
    thing: usize,
}

/// Finds all waits of a script.
pub struct Order {
    waits: Waits,
    wanted: Edges,
    /// By pairs of threads, up to which step the first knows the second.
    known: HashMap<(u32, u32), usize>,
    things: Vec<Thing>,
    opened: Vec<Opened>,
    places: Vec<u64>,
    names: HashMap<Vec<u8>, usize>,
    /// By name: the file that stands there.
    files: BTreeMap<Vec<u8>, usize>,
    contents: Vec<Content>,
    pipes: Vec<Pipe>,
    /// By name of a connection of which one half is made: the end of the other.
    half_made: HashMap<Vec<u8>, End>,
    /// By process, interface, queue and number: requests whose completions were not taken.
    asked: HashMap<(u32, Interface, u64, u64), Asked>,
    /// By process, where only that uses it, and number of a word: who woke somebody last.
    woken: HashMap<(Option<u32>, u64), Point>,
    /// By process.
    tables: HashMap<u32, Table<Slot>>,
    /// By process and number of a descriptor that was closed: whoever gets the number next waits for that.
    closed: HashMap<(u32, i32), usize>,
    directories: HashMap<usize, Vec<u8>>,
    process: HashMap<u32, u32>,
    cwd: HashMap<u32, Vec<u8>>,
    /// By process: where it stands, as a thing that names are used from.
    places_of: HashMap<u32, usize>,
    /// A process ends: its last step waits for nobody because of that.
    ending: bool,
}

impl Order {
    /// By the place of a step, what it waits for; of a script of one thread nothing.
    pub fn of(script: &Script, wanted: Edges) -> Waits {
        if script.steps.iter().all(|step| step.thread == 0) {
            return Waits::new();
        }
        let mut order = Order::new(wanted);
        order.lengths(&script.needed);
        let last = Order::last_steps(script);
        let (mut clocks, mut blocked) = (Clocks::default(), Vec::new());
        for (at, step) in script.steps.iter().enumerate() {
            let here = Point { thread: step.thread, step: at };
            let (end_ns, process) = (clocks.end(step), order.process_of(step.thread));
            order.settle(&mut blocked, Some(step.thread), clocks.turn_ns);
            match &step.action {
                Action::Start(other) => {
                    order.process.insert(*other, process);
                    order.known.insert((*other, step.thread), at);
                }
                Action::Fork(other) => order.fork(here, *other),
                Action::Call(called) if order.may_wait(process, called) => {
                    let gives_back = false;
                    blocked.push(Blocked { here, process, called: Some(called), end_ns, gives_back });
                }
                Action::Call(called) => {
                    order.settle_lock(&mut blocked, process, called);
                    order.call(here, called);
                }
                Action::Exec => order.exec(here, process),
                Action::Wait(other) => order.settle_end(&mut blocked, *other),
                Action::Compute(_) => {}
            }
            if let Some((_, computes_ns)) = last.get(&process).filter(|(last, _)| *last == at) {
                let end_ns = end_ns.saturating_add(*computes_ns);
                let busy = blocked.iter().any(|each| each.process == process);
                let gives_back = busy || order.has_locks(process);
                blocked.push(Blocked { here, process, called: None, end_ns, gives_back });
            }
        }
        order.settle_all(blocked);
        order.waits
    }

    /// By process, the last step of its threads at which it does something, and for how long it computes then, ns.
    fn last_steps(script: &Script) -> HashMap<u32, (usize, u64)> {
        let (mut last, mut process) = (HashMap::new(), HashMap::from([(0, 0)]));
        for (at, step) in script.steps.iter().enumerate() {
            let of = process.get(&step.thread).copied().unwrap_or(step.thread);
            match step.action {
                Action::Start(other) => drop(process.insert(other, of)),
                Action::Fork(other) => drop(process.insert(other, other)),
                _ => {}
            }
            let (last, computes_ns) = last.entry(of).or_insert((at, 0_u64));
            match step.action {
                Action::Compute(ns) => *computes_ns = computes_ns.saturating_add(ns),
                _ => (*last, *computes_ns) = (at, 0),
            }
        }
        last
    }

    fn new(wanted: Edges) -> Order {
        Order {
            waits: Waits::new(),
            wanted,
            known: HashMap::new(),
            things: Vec::new(),
            opened: Vec::new(),
            places: Vec::new(),
            names: HashMap::new(),
            files: BTreeMap::new(),
            contents: Vec::new(),
            pipes: Vec::new(),
            half_made: HashMap::new(),
            asked: HashMap::new(),
            woken: HashMap::new(),
            tables: HashMap::new(),
            closed: HashMap::new(),
            directories: HashMap::new(),
            process: HashMap::from([(0, 0)]),
            cwd: HashMap::new(),
            places_of: HashMap::new(),
            ending: false,
        }
    }

    fn process_of(&self, thread: u32) -> u32 {
        self.process.get(&thread).copied().unwrap_or(thread)
    }

    /// The new process has what its parent has: descriptors with positions in common, and a directory of its own.
    fn fork(&mut self, here: Point, other: u32) {
        let parent = self.process_of(here.thread);
        self.process.insert(other, other);
        self.known.insert((other, here.thread), here.step);
        let mut copies = self.tables.get(&parent).cloned().unwrap_or_else(|| Table::new(Reuse::Replaces));
        for (_, slot) in copies.iter_mut() {
            self.uses(here, slot.behind.thing, Edge::Descriptors);
            slot.behind.thing = self.thing(Some(here));
            self.opened[slot.behind.description].copies += 1;
        }
        self.tables.insert(other, copies);
        let place = self.place(parent);
        self.uses(here, place, Edge::Names);
        if let Some(cwd) = self.cwd.get(&parent).cloned() {
            self.cwd.insert(other, cwd);
        }
    }

    fn thing(&mut self, maker: Option<Point>) -> usize {
        self.things.push(Thing { maker, users: Vec::new() });
        self.things.len() - 1
    }

    fn wait(&mut self, here: Point, other: Point, edge: Edge) {
        if other.thread == here.thread || self.ending || !self.wanted.have(edge) {
            return;
        }
        let known = self.known.entry((here.thread, other.thread)).or_insert(0);
        if *known >= other.step && *known > 0 {
            return;
        }
        *known = other.step;
        self.waits.entry(here.step).or_default().push(Wait { other, edge, end: None });
    }

    /// The end of the process of this step waits.
    fn waits_at_end(&mut self, here: Point, others: impl Iterator<Item = Point>) {
        let end = Point { thread: here.thread, step: end_of(self.process_of(here.thread)) };
        self.ending = false;
        others.for_each(|other| self.wait(end, other, Edge::Locks));
        self.ending = true;
    }

    /// The same for the end of a process, whose last step that is.
    fn wait_for_end(&mut self, here: Point, other: Point, edge: Edge) {
        let end = self.process_of(other.thread);
        if end == self.process_of(here.thread) || self.ending || !self.wanted.have(edge) {
            return;
        }
        self.waits.entry(here.step).or_default().push(Wait { other, edge, end: Some(end) });
    }

    fn uses(&mut self, here: Point, thing: usize, edge: Edge) {
        if let Some(maker) = self.things[thing].maker {
            self.wait(here, maker, edge);
        }
        let users = &mut self.things[thing].users;
        match users.iter_mut().find(|user| user.thread == here.thread) {
            Some(user) => *user = here,
            None => users.push(here),
        }
    }

    fn makes(&mut self, here: Point, thing: usize, edge: Edge) {
        let users = std::mem::take(&mut self.things[thing].users);
        users.into_iter().for_each(|user| self.wait(here, user, edge));
        if let Some(maker) = self.things[thing].maker.replace(here) {
            self.wait(here, maker, edge);
        }
    }

    fn call(&mut self, here: Point, called: &Called) {
        let process = self.process_of(here.thread);
        self.name_space(here, process, called);
        self.descriptors(here, process, called);
        self.locks(here, process, called);
        self.data(here, process, called);
        self.requests(here, process, called);
        self.futexes(here, process, called);
        self.sizes(here, process, called);
        self.results(here, process, called);
    }
}
