//! A script between two times of the original.

use std::collections::{BTreeMap, HashSet};

use etude_calls::Role;
use etude_fsmodel::flags::{O_CLOEXEC, O_CREAT, O_EXCL, O_TMPFILE, O_TRUNC, is_nameless};

use super::builder::{HERE, Rhythm, call, close, close_in_place, remove, rooted};
use super::pipes::{Fate, fate, without_broken_pipes};
use super::prune::prune;
use super::{Made, Refused};
use crate::model::{Action, Called, Needed, Script, Step, What};
use crate::times::{Span, times, turns};
use crate::world::{Description, NodeId, NodeKind, Process, World, needed_of};

/// They have been done.
const DONE: u64 = O_CREAT | O_EXCL | O_TRUNC;

/// Keeps what began from `from_ns` on and before `to_ns`. Descriptors that were open then are opened anew at the
/// beginning, at their positions.
pub fn cut(script: &Script, from_ns: u64, to_ns: u64) -> Made {
    if from_ns >= to_ns {
        return Err(Refused("nothing lies between these times: expected a beginning before the end".into()));
    }
    let spans = times(script);
    // A script's order is that of its lines: what stands above a step that is left out is left out as well.
    let turns = turns(&spans);
    let (first, end) = (turns.partition_point(|at| *at < from_ns), turns.partition_point(|at| *at < to_ns));
    let (before, inside) = (&script.steps[..first], &script.steps[first..end]);
    let mut world = World::new(script);
    before.iter().for_each(|step| drop(world.step(step)));
    let (running, after) = (spans[..first].iter(), spans[first..end].iter());
    let reaches = |(_, span): &(&Step, &Span)| span.end_ns > from_ns;
    let busy = before.iter().zip(running.clone()).filter(reaches).map(|(step, _)| step);
    let mut cutting = Cutting::new(before, busy.chain(inside), world, (from_ns, to_ns));
    cutting.begin();
    before.iter().zip(running).for_each(|(step, span)| cutting.rest(step, *span));
    inside.iter().zip(after).for_each(|(step, span)| cutting.step(step, *span));
    let mut made =
        Script { needed: cutting.needed, steps: cutting.rhythm.finish(), ..script.without_steps() };
    made = without_broken_pipes(made);
    prune(&mut made);
    Ok(made)
}

struct Cutting {
    from_ns: u64,
    to_ns: u64,
    world: World,
    needed: Vec<Needed>,
    /// Threads that had been started and have something to do, with those that have to start them; by processes.
    /// Of each process also which one forked it.
    present: BTreeMap<u32, (Option<u32>, Vec<u32>)>,
    /// All threads that are there, or will be.
    known: HashSet<u32>,
    /// What cannot be opened anew: pipes, sockets.
    lost: HashSet<Description>,
    /// Names that were given to files that have none any more, and the thread that opened each last.
    lent: BTreeMap<NodeId, (Vec<u8>, u32)>,
    /// The first request inside.
    first_request: u32,
    rhythm: Rhythm,
}

impl Cutting {
    /// `busy` are the steps that are kept, or a part of them.
    fn new<'a>(
        before: &[Step],
        busy: impl Iterator<Item = &'a Step>,
        mut world: World,
        (from_ns, to_ns): (u64, u64),
    ) -> Cutting {
        world.processes.values_mut().for_each(|process| process.mappings.clear());
        let mut started: BTreeMap<u32, (u32, Option<u32>)> = BTreeMap::from([(0, (0, None))]);
        for step in before {
            let process = started.get(&step.thread).map_or(0, |(process, _)| *process);
            match step.action {
                Action::Start(thread) => drop(started.insert(thread, (process, None))),
                Action::Fork(thread) => drop(started.insert(thread, (thread, Some(process)))),
                _ => {}
            }
        }
        let mut busy: HashSet<u32> = busy.map(|step| step.thread).collect();
        busy.insert(0);
        let mut present = BTreeMap::<u32, (Option<u32>, Vec<u32>)>::new();
        for thread in busy.iter().filter(|thread| started.contains_key(thread)) {
            let mut process = started[thread].0;
            if *thread != process {
                present.entry(process).or_default().1.push(*thread);
            }
            loop {
                let parent = started[&process].1;
                present.entry(process).or_default().0 = parent;
                match parent {
                    Some(parent) => process = parent,
                    None => break,
                }
            }
        }
        let known =
            present.iter().flat_map(|(process, (_, threads))| threads.iter().chain([process])).copied();
        Cutting {
            from_ns,
            to_ns,
            known: known.collect(),
            needed: Vec::new(),
            present,
            lost: HashSet::new(),
            lent: BTreeMap::new(),
            first_request: world.requests.next(),
            rhythm: Rhythm::default(),
            world,
        }
    }

    /// Makes the state of the beginning.
    fn begin(&mut self) {
        self.needed = needed_of(&self.world.names);
        let open = |process: &Process| -> Vec<Description> {
            process.table.iter().map(|(_, slot)| slot.behind).collect()
        };
        for process in self.world.processes.values() {
            let nameless = |number: &Description| self.world.opened[*number as usize].node.is_none();
            self.lost.extend(open(process).into_iter().filter(nameless));
        }
        // What the processes that are made so far have: each begins with what the one that forks it has.
        self.process(0, &Process::default());
        for (node, (name, thread)) in std::mem::take(&mut self.lent) {
            let directory = self.world.names.node(node).kind == NodeKind::Directory;
            self.rhythm.push(thread, remove(&rooted(&name), directory));
        }
    }

    /// A process' descriptors, its threads, and the processes that it forked.
    fn process(&mut self, number: u32, inherited: &Process) {
        let wanted = self.world.processes.get(&number).cloned().unwrap_or_default();
        let mut have = inherited.clone();
        if have.place != wanted.place
            && let Some(path) = self.world.names.name(wanted.place)
        {
            self.rhythm.push(number, call("chdir", &[], &[&rooted(path)], 0));
        }
        have.place = wanted.place;
        for descriptor in have.table.numbers().collect::<Vec<_>>() {
            if wanted.slot(descriptor) != have.slot(descriptor) {
                have.table.close(descriptor);
                self.rhythm.push(number, close(descriptor));
            }
        }
        for descriptor in wanted.table.numbers() {
            let slot = wanted.slot(descriptor).expect("it is open");
            if have.slot(descriptor).is_none() && !self.lost.contains(&slot.behind) {
                let copied = have.table.iter().find(|(_, had)| had.behind == slot.behind);
                let cloexec = if slot.closes_at_exec { O_CLOEXEC } else { 0 };
                match copied.map(|(descriptor, _)| descriptor as u64) {
                    Some(from) => {
                        let values = [from, descriptor as u64, cloexec];
                        self.rhythm.push(number, call("dup3", &values, &[], i64::from(descriptor)));
                    }
                    None => self.open(number, descriptor, slot.behind, cloexec),
                }
                have.table.open(descriptor, slot.behind, slot.closes_at_exec);
            }
        }
        let threads = self.present.get(&number).map(|(_, threads)| threads.clone()).unwrap_or_default();
        for thread in threads {
            self.rhythm.push(number, Action::Start(thread));
        }
        let children: Vec<u32> = self
            .present
            .iter()
            .filter(|(_, (parent, _))| *parent == Some(number))
            .map(|(child, _)| *child)
            .collect();
        for child in children {
            self.rhythm.push(number, Action::Fork(child));
            self.process(child, &have);
        }
    }

    /// Opens a file anew, at its position.
    fn open(&mut self, thread: u32, descriptor: i32, description: Description, cloexec: u64) {
        let opened = self.world.opened[description as usize].clone();
        let Some(node) = opened.node else { return };
        let path = match self.world.names.name(node) {
            Some(name) => rooted(name),
            None => rooted(&self.lend(node, thread)),
        };
        // A file without a name is opened by the one that it is lent.
        let done = if is_nameless(opened.flags) { DONE | O_TMPFILE } else { DONE };
        let flags = opened.flags & !done & !O_CLOEXEC | cloexec;
        self.rhythm.push(thread, call("openat", &[HERE, 0, flags], &[&path], i64::from(descriptor)));
        if opened.position > 0 && self.world.names.node(node).kind != NodeKind::Directory {
            let values = [descriptor as u64, opened.position, 0];
            self.rhythm.push(thread, call("lseek", &values, &[], opened.position as i64));
        }
    }

    /// A name for a file that has none any more. It is taken away when all is open.
    fn lend(&mut self, node: NodeId, thread: u32) -> Vec<u8> {
        if let Some((name, last)) = self.lent.get_mut(&node) {
            *last = thread;
            return name.clone();
        }
        let taken = |name: &Vec<u8>| {
            self.world.names.find(name).is_some() || self.lent.values().any(|(lent, _)| lent == name)
        };
        let mut names = (1_u32..).map(|number| format!("etude_cut{number}").into_bytes());
        let name = names.find(|name| !taken(name)).expect("numbers do not end");
        let what = match self.world.names.node(node).kind {
            NodeKind::File { bytes, allocated, seen } => {
                What::File { bytes, allocated: (allocated < bytes).then_some(allocated), seen }
            }
            _ => What::Directory,
        };
        self.needed.push(Needed { path: name.clone().into(), what });
        self.lent.insert(node, (name.clone(), thread));
        name
    }

    /// What is left of a step that began before.
    fn rest(&mut self, step: &Step, span: Span) {
        if !self.known.contains(&step.thread) {
            return;
        }
        match &step.action {
            Action::Wait(child) if span.end_ns > self.from_ns && self.known.contains(child) => {
                self.rhythm.push(step.thread, step.action.clone());
            }
            Action::Compute(_) | Action::Call(_) => self.rhythm.skip(step.thread, self.inside(span)),
            _ => {}
        }
    }

    fn inside(&self, span: Span) -> u64 {
        span.end_ns.min(self.to_ns).saturating_sub(span.begin_ns.max(self.from_ns))
    }

    fn step(&mut self, step: &Step, span: Span) {
        match &step.action {
            Action::Compute(_) => return self.rhythm.skip(step.thread, self.inside(span)),
            // Who ended before is not there.
            Action::Wait(child) if !self.known.contains(child) => return,
            Action::Call(called) => {
                let unmapped = self.unmapped(step.thread, called);
                let fate = fate(&self.world, step.thread, called, &self.lost);
                let effect = self.world.step(step);
                let unrequested = matches!(called.call.role(), Some(Role::Completion { .. }))
                    && effect.requests.iter().all(|request| *request < self.first_request);
                if unmapped || unrequested || fate == Fate::Out {
                    return self.rhythm.skip(step.thread, self.inside(span));
                }
                if let Fate::Closes(descriptor) = fate {
                    return self.rhythm.push(step.thread, close_in_place(descriptor, called.duration_ns));
                }
            }
            other => {
                if let Action::Start(thread) | Action::Fork(thread) = other {
                    self.known.insert(*thread);
                }
                self.world.step(step);
            }
        }
        self.rhythm.push(step.thread, step.action.clone());
    }

    /// Whether a call is about memory that was mapped before.
    fn unmapped(&self, thread: u32, called: &Called) -> bool {
        matches!(called.call.name(), "munmap" | "msync" | "mremap" | "mprotect" | "madvise")
            && self
                .world
                .threads
                .get(&thread)
                .and_then(|process| self.world.processes.get(process))
                .is_none_or(|process| process.mapping(called.arguments[0]).is_none())
    }
}
