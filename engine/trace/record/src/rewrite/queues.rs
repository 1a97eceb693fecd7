//! The io_uring rings and aio contexts of recorded programs: what their calls hand over and find done, though the calls
//! themselves say only how many (`requests.rs`).

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::requests::{Done, Found, Layout, Reads, SQPOLL, context, iocbs, reaped};
use crate::rewrite::maps::{Mapping, mappings};
use crate::rewrite::ptrace_stops::Begun;
use crate::rewrite::remote::{Memory, Pid};
use crate::rewrite::ring::Raw;

/// The second is io_pgetevents, which the C library has no name for.
const GETEVENTS: [i64; 2] = [libc::SYS_io_getevents, if cfg!(target_arch = "x86_64") { 333 } else { 292 }];
/// In flags of io_uring_enter: the descriptor is a number that the thread has registered.
const REGISTERED_RING: u64 = 0x10;
/// The most registered files of a ring that are followed.
const MOST_FILES: usize = 1 << 16;

impl Reads for Memory {
    fn bytes(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        self.read(at, length).ok()
    }

    fn pieces(&self, places: &[(u64, usize)]) -> Option<Vec<Vec<u8>>> {
        self.read_pieces(places)
    }
}

/// Whether a call says how many requests or completions there are, and not which.
pub fn is_about_requests(number: u32) -> bool {
    let number = i64::from(number);
    GETEVENTS.contains(&number)
        || [libc::SYS_io_submit, libc::SYS_io_destroy, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter]
            .contains(&number)
        || number == libc::SYS_io_uring_register
}

struct Ring {
    group: Pid,
    descriptor: u64,
    layout: Layout,
    /// Where its queues and entries are mapped; None as long as that is not known.
    at: Option<[u64; 3]>,
    done: Done,
    /// Registered files: descriptors, and what they stood for then.
    files: Vec<Option<(i32, (u64, u64))>>,
}

/// Those of all processes.
#[derive(Default)]
pub struct Queues {
    /// By their inodes, which no two have since Linux 5.12.
    rings: HashMap<u64, Ring>,
    contexts: HashMap<(Pid, u64), Done>,
    /// By thread and number: descriptors of rings that it has registered.
    registered: HashMap<(Pid, u32), u64>,
}

impl Queues {
    /// A thread is about to make a call of aio: its requests are noted; what has completed until now is told.
    pub fn begins(&mut self, group: Pid, begun: &mut Begun) -> Vec<Raw> {
        if !is_about_requests(begun.number) {
            return Vec::new();
        }
        let memory = Memory::unopened(group);
        let [first, second, third, ..] = begun.arguments;
        let (mut told, at) = (Vec::new(), begun.at);
        match i64::from(begun.number) {
            libc::SYS_io_submit => {
                told = self.look(group, first, &memory);
                begun.requests = iocbs(&memory, first, second, third);
            }
            number if GETEVENTS.contains(&number) || number == libc::SYS_io_destroy => {
                told = self.look(group, first, &memory);
            }
            _ => {}
        }
        told.iter().map(|one| one.raw(at)).collect()
    }

    /// It has made the call: the requests that were taken, the call, and what has completed meanwhile.
    pub fn ended(&mut self, group: Pid, tid: Pid, mut call: Raw, requests: &[Found]) -> Vec<Raw> {
        let (mut before, mut told) = (Vec::new(), Vec::new());
        let (begun, ended, result, memory) = (call.begun, call.ended, call.result, Memory::unopened(group));
        let [first, second, ..] = call.arguments;
        match i64::from(call.number) {
            libc::SYS_io_uring_setup if result >= 0 => {
                // What stands where the parameters were says which ring it is; their place says nothing.
                call.arguments[1] = self.made(group, result as u64, &memory, second).unwrap_or(0);
            }
            libc::SYS_io_uring_enter => before = self.entered(group, tid, &memory, &mut call),
            libc::SYS_io_uring_register if result >= 0 => self.registers(group, tid, &memory, &call),
            libc::SYS_io_submit => before = requests[..requests.len().min(result.max(0) as usize)].to_vec(),
            libc::SYS_io_destroy => {
                let gone = self.contexts.remove(&(group, first));
                told = gone.map_or(Vec::new(), |mut done| done.rest("io_event", first));
            }
            number if GETEVENTS.contains(&number) => told = self.look(group, first, &memory),
            _ => {}
        }
        let before = before.iter().map(|one| one.raw(begun));
        before.chain([call]).chain(told.iter().map(|one| one.raw(ended))).collect()
    }

    /// Its entries are still there, since who hands them over waits for the call. What the program had taken of what was
    /// done, and then the requests.
    fn entered(&mut self, group: Pid, tid: Pid, memory: &Memory, call: &mut Raw) -> Vec<Found> {
        if call.arguments[3] & REGISTERED_RING != 0
            && let Some(descriptor) = self.registered.get(&(tid, call.arguments[0] as u32))
        {
            call.arguments[0] = *descriptor;
            call.arguments[3] &= !REGISTERED_RING;
        }
        let descriptor = u64::from(call.arguments[0] as u32);
        let Some(ring) = self.ring(group, descriptor) else { return Vec::new() };
        let Some(places) = ring.at else { return Vec::new() };
        let memory = &ring.layout.read(memory, places);
        let mut found = ring.layout.completed(memory, places, descriptor, &mut ring.done);
        let (files, taken) = (&ring.files, u32::try_from(call.result).unwrap_or(0));
        let file = |index: u32| registered_file(group, files, index);
        found.extend(ring.layout.submitted(memory, places, taken, descriptor, file));
        found
    }

    /// A thread ends, or its program does (`last`): what was done until then.
    pub fn exits(&mut self, group: Pid, tid: Pid, last: bool, now: u64) -> Vec<Raw> {
        self.registered.retain(|(thread, _), _| *thread != tid);
        if self.rings.is_empty() && self.contexts.is_empty() {
            return Vec::new();
        }
        let mut told = Vec::new();
        if let Ok(memory) = Memory::of(group) {
            for ring in self.rings.values_mut().filter(|ring| ring.group == group) {
                if let Some(places) = ring.at {
                    told.extend(ring.layout.completed(&memory, places, ring.descriptor, &mut ring.done));
                }
            }
            for ((_, at), done) in self.contexts.iter_mut().filter(|((of, _), _)| *of == group) {
                told.extend(reaped(&memory, *at, done));
            }
        }
        let mut told: Vec<Raw> = told.iter().map(|one| one.raw(now)).collect();
        if last {
            told.extend(self.forgets(group, now));
        }
        told
    }

    /// The memory of a process is gone: what had been seen done by then.
    pub fn forgets(&mut self, group: Pid, now: u64) -> Vec<Raw> {
        self.registered.retain(|(thread, _), _| *thread != group);
        let mut told = Vec::new();
        for ring in self.rings.values_mut().filter(|ring| ring.group == group) {
            told.extend(ring.done.rest("cqe", ring.descriptor));
        }
        for ((_, at), done) in self.contexts.iter_mut().filter(|((of, _), _)| *of == group) {
            told.extend(done.rest("io_event", *at));
        }
        self.rings.retain(|_, ring| ring.group != group);
        self.contexts.retain(|(of, _), _| *of != group);
        told.iter().map(|one| one.raw(now)).collect()
    }

    fn look(&mut self, group: Pid, at: u64, memory: &Memory) -> Vec<Found> {
        let known = self.contexts.entry((group, at));
        let done = match known {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(free) => match context(memory, at) {
                Some(done) => free.insert(done),
                None => return Vec::new(),
            },
        };
        reaped(memory, at, done)
    }

    /// The flags of a ring that was just made.
    fn made(&mut self, group: Pid, descriptor: u64, memory: &Memory, params: u64) -> Option<u64> {
        let layout = Layout::of(&memory.bytes(params, Layout::BYTES)?)?;
        let (flags, at) = (layout.flags, layout.own());
        if flags & SQPOLL == 0
            && let Some(inode) = inode(group, descriptor)
        {
            let ring = Ring { group, descriptor, layout, at, done: Done::default(), files: Vec::new() };
            self.rings.insert(inode, ring);
        }
        Some(flags.into())
    }

    /// A ring by its descriptor, and where it is.
    fn ring(&mut self, group: Pid, descriptor: u64) -> Option<&mut Ring> {
        let inode = inode(group, descriptor)?;
        let ring = self.rings.get_mut(&inode)?;
        if ring.at.is_none() {
            ring.at = mapped(group, inode);
        }
        Some(ring)
    }

    fn registers(&mut self, group: Pid, tid: Pid, memory: &Memory, call: &Raw) {
        let [descriptor, opcode, at, many, ..] = call.arguments;
        let many = (many as u32 as usize).min(MOST_FILES);
        let numbers = |at: u64, many: usize| {
            let bytes = memory.bytes(at, many.min(MOST_FILES) * 4)?;
            Some(
                bytes
                    .chunks_exact(4)
                    .map(|four| i32::from_le_bytes(four.try_into().expect("four bytes")))
                    .collect(),
            )
        };
        let word =
            |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        const RING_FDS: u64 = 20;
        if opcode as u32 as u64 == RING_FDS {
            // Each: the number given, and the descriptor.
            for pair in memory.bytes(at, many * 16).unwrap_or_default().chunks_exact(16) {
                let number = u32::from_le_bytes(pair[..4].try_into().expect("four bytes"));
                self.registered.insert((tid, number), word(pair, 8));
            }
            return;
        }
        let Some(ring) = self.ring(group, u64::from(descriptor as u32)) else { return };
        let (from, files): (usize, Option<Vec<i32>>) = match opcode as u32 {
            2 => (0, numbers(at, many)),
            3 => (0, Some(Vec::new())),
            6 => match memory.bytes(at, 16) {
                Some(update) => (word(&update, 0) as u32 as usize, numbers(word(&update, 8), many)),
                None => return,
            },
            13 => match memory.bytes(at, 32) {
                Some(files) => (0, numbers(word(&files, 16), word(&files, 0) as u32 as usize)),
                None => return,
            },
            14 => match memory.bytes(at, 32) {
                Some(update) => (
                    word(&update, 0) as u32 as usize,
                    numbers(word(&update, 8), word(&update, 24) as u32 as usize),
                ),
                None => return,
            },
            _ => return,
        };
        if matches!(opcode as u32, 2 | 3 | 13) {
            ring.files.clear();
        }
        const SKIP: i32 = -2;
        for (place, descriptor) in (from..MOST_FILES).zip(files.unwrap_or_default()) {
            if descriptor == SKIP {
                continue;
            }
            ring.files.resize(ring.files.len().max(place + 1), None);
            ring.files[place] = u64::try_from(descriptor)
                .ok()
                .and_then(|number| Some((descriptor, identity(group, number)?)));
        }
    }
}

/// The descriptor of a registered file, where it still stands for that.
fn registered_file(group: Pid, files: &[Option<(i32, (u64, u64))>], index: u32) -> Option<i32> {
    let (descriptor, was) = (*files.get(index as usize)?)?;
    (identity(group, descriptor as u64)? == was).then_some(descriptor)
}

fn identity(group: Pid, descriptor: u64) -> Option<(u64, u64)> {
    fs::metadata(format!("/proc/{group}/fd/{descriptor}")).ok().map(|about| (about.dev(), about.ino()))
}

fn inode(group: Pid, descriptor: u64) -> Option<u64> {
    identity(group, descriptor).map(|(_, inode)| inode)
}

/// Where a ring's queues of submissions and of completions, and its entries, are mapped. The kernel may have both queues
/// in one mapping.
fn mapped(group: Pid, inode: u64) -> Option<[u64; 3]> {
    let all = mappings(group).ok()?;
    let at = |offset: u64| {
        let is_it = |each: &&Mapping| {
            (each.file.2, each.offset) == (inode, offset) && each.name == "anon_inode:[io_uring]"
        };
        all.iter().find(is_it).map(|each| each.low)
    };
    let queue = at(0)?;
    Some([queue, at(0x800_0000).unwrap_or(queue), at(0x1000_0000)?])
}
