//! What a call does.

use etude_calls::{Kind, Outcome};

use super::names::{Kept, unknown_file};
use super::{Description, Effect, End, World};
use crate::model::Called;

const O_CREAT: u64 = 0o100;
const O_TRUNC: u64 = 0o1000;
const O_APPEND: u64 = 0o2000;
const O_DIRECTORY: u64 = 0o200000;
const O_TMPFILE: u64 = 0o20200000;
const O_CLOEXEC: u64 = 0o2000000;
/// Bits of a socket's type that are no flags.
const SOCKET_TYPE: u64 = 0xf;

/// Whether what a call returned is an error.
pub fn failed(called: &Called) -> bool {
    (-4095..0).contains(&called.result)
}

impl World {
    pub fn call(&mut self, process: u32, called: &Called) -> Effect {
        let mut effect = Effect::default();
        self.meet(process, called, &mut effect);
        self.requests.step(process, called, &mut effect);
        let paths = self.paths(process, called);
        for (_, path) in &paths {
            if let Some(node) = self.names.find(path) {
                effect.nodes.push(node);
            }
        }
        effect.of_descriptors = called.call.row().outcome == Outcome::Descriptor
            || matches!(
                called.call.name(),
                "close" | "close_range" | "pipe" | "pipe2" | "socketpair" | "connect" | "shutdown" | "fcntl"
            );
        effect.of_place = matches!(called.call.name(), "chdir" | "fchdir");
        if !failed(called) {
            let path = |at: usize| paths.get(at).map(|(_, path)| &path[..]);
            self.names_change(process, called, (path(0), path(1)), &mut effect);
            self.descriptors_change(process, called, path(0), &mut effect);
            self.data_change(process, called, path(0), &mut effect);
            self.memory_changes(process, called, &mut effect);
        }
        effect.nodes.sort_unstable();
        effect.nodes.dedup();
        effect.descriptions.sort_unstable();
        effect.descriptions.dedup();
        for node in &effect.nodes {
            let node = self.names.node_mut(*node);
            node.used = true;
            node.listed |= matches!(called.call.name(), "getdents" | "getdents64");
        }
        effect.paths = paths.into_iter().map(|(_, path)| path).collect();
        effect
    }

    /// What its descriptors stand for.
    fn meet(&mut self, process: u32, called: &Called, effect: &mut Effect) {
        for index in 0..called.call.used(&called.arguments) {
            let descriptor = called.arguments[index] as i32;
            match called.call.kind(&called.arguments, index) {
                Kind::Fd | Kind::DirFd if descriptor >= 0 => {}
                _ => continue,
            }
            match self.description(process, descriptor) {
                Some(description) => {
                    effect.descriptions.push(description);
                    effect.nodes.extend(self.opened[description as usize].node);
                }
                // What dup3 makes is not open before.
                None if index == 1 && matches!(called.call.name(), "dup2" | "dup3") => {}
                None => effect.closed = Some(descriptor),
            }
        }
    }

    fn names_change(
        &mut self,
        process: u32,
        called: &Called,
        (first, second): (Option<&[u8]>, Option<&[u8]>),
        effect: &mut Effect,
    ) {
        let Some(path) = first else { return };
        let before = self.names.find(path);
        match called.call.name() {
            "mkdir" | "mkdirat" => effect.nodes.push(self.names.add(path.to_vec(), Kept::Directory, true)),
            "mknod" | "mknodat" => {
                let empty = Kept::File { bytes: 0, allocated: 0, seen: true };
                effect.nodes.push(self.names.add(path.to_vec(), empty, true));
            }
            "symlink" | "symlinkat" => {
                let to = called.text(0).unwrap_or_default().into();
                effect.nodes.push(self.names.add(path.to_vec(), Kept::Link(to), true));
            }
            "unlink" | "unlinkat" | "rmdir" => {
                self.names.remove(path);
            }
            // Of what a descriptor stands for (AT_EMPTY_PATH).
            "linkat" if second.is_none() => {
                let description = self.description(process, called.arguments[0] as i32);
                let behind = description.and_then(|number| self.opened[number as usize].node);
                let Some(node) = behind else { return };
                effect.nodes.push(node);
                self.names.name_too(node, path.to_vec());
            }
            "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
                let Some(to) = second else { return };
                let node = before.unwrap_or_else(|| self.names.add(path.to_vec(), unknown_file(), false));
                effect.nodes.push(node);
                if called.call.name().starts_with("link") {
                    self.names.name_too(node, to.to_vec());
                } else if called.call.name() == "renameat2" && called.arguments[4] & 2 != 0 {
                    self.names.exchange(path, to);
                // Two names of one file: nothing happens.
                } else if Some(node) != self.names.find(to) {
                    self.names.rename(path, to);
                }
            }
            "chdir" => {
                let node = before.unwrap_or_else(|| self.names.add(path.to_vec(), Kept::Directory, false));
                effect.nodes.push(node);
                self.process(process).place = node;
                return;
            }
            _ => return,
        }
        effect.of_names = true;
    }

    fn descriptors_change(
        &mut self,
        process: u32,
        called: &Called,
        path: Option<&[u8]>,
        effect: &mut Effect,
    ) {
        let (arguments, result) = (&called.arguments, called.result as i32);
        let descriptor = arguments[0] as i32;
        match called.call.name() {
            "open" => self.opens(process, called, path, arguments[1], effect),
            "openat" => self.opens(process, called, path, arguments[2], effect),
            // Its flags stand in memory: it may read and write.
            "openat2" => self.opens(process, called, path, 2, effect),
            "creat" => self.opens(process, called, path, 1 | O_CREAT | O_TRUNC, effect),
            "close" => {
                // The oldest: meet() named the youngest.
                if let Some(slot) = self.process(process).close(descriptor) {
                    effect.descriptions = smallvec::smallvec![slot.description];
                }
            }
            "close_range" => self.close_range(process, called, effect),
            "dup" => self.copy(process, descriptor, result, false),
            "dup2" | "dup3" if descriptor != arguments[1] as i32 => {
                while self.process(process).close(result).is_some() {}
                self.copy(process, descriptor, result, arguments[2] & O_CLOEXEC != 0);
            }
            "fcntl" => self.fcntl(process, called, effect),
            // FIONCLEX, FIOCLEX
            "ioctl" if arguments[1] & !1 == 0x5450 => {
                self.closes_at_exec(process, descriptor, arguments[1] & 1 == 1)
            }
            "pipe" | "pipe2" | "socketpair" => {
                let pair = called.texts.iter().find(|text| text.bytes.len() == 8);
                let Some(pair) = pair.map(|text| text.bytes.clone()) else { return };
                let sockets = called.call.name() == "socketpair";
                let flags = match called.call.name() {
                    "pipe" => 0,
                    _ => arguments[1] & !SOCKET_TYPE,
                };
                let ends = End::both(self.streams, sockets);
                for (four, end) in pair.chunks_exact(4).zip(ends) {
                    let number = i32::from_le_bytes(four.try_into().expect("four bytes"));
                    let description = self.open(process, number, None, flags);
                    self.opened[description as usize].pipe = Some(end);
                    effect.descriptions.push(description);
                }
                self.streams += 1 + u32::from(sockets);
            }
            "socket" => {
                effect.descriptions.push(self.open(process, result, None, arguments[1] & !SOCKET_TYPE));
            }
            "accept" | "accept4" => {
                let description = self.open(process, result, None, arguments[3]);
                effect.descriptions.push(description);
                self.joins(called, description, effect);
            }
            "connect" => {
                if let Some(description) = self.description(process, descriptor) {
                    self.joins(called, description, effect);
                }
            }
            "fchdir" => {
                let description = self.description(process, descriptor);
                if let Some(node) = description.and_then(|number| self.opened[number as usize].node) {
                    self.process(process).place = node;
                }
            }
            _ if called.call.row().outcome == Outcome::Descriptor => {
                effect.descriptions.push(self.open(process, result, None, 2));
            }
            _ => {}
        }
    }

    /// One half of a connection between two sockets, which both name.
    fn joins(&mut self, called: &Called, own: Description, effect: &mut Effect) {
        let Some(name) = called.text(1) else { return };
        let end = match self.half_made.remove(name) {
            Some((end, other)) => {
                effect.descriptions.push(other);
                end
            }
            None => {
                let [end, other] = End::both(self.streams, true);
                self.streams += 2;
                self.half_made.insert(name.to_vec(), (other, own));
                end
            }
        };
        self.opened[own as usize].pipe = Some(end);
    }

    fn opens(&mut self, process: u32, called: &Called, path: Option<&[u8]>, flags: u64, effect: &mut Effect) {
        let node = match path {
            // An unnamed file in that directory.
            Some(_) if flags & O_TMPFILE == O_TMPFILE => Some(self.names.add_nameless()),
            Some(path) => Some(self.names.find(path).unwrap_or_else(|| {
                let made = flags & O_CREAT != 0;
                effect.of_names |= made;
                let kept = match made {
                    _ if flags & O_DIRECTORY != 0 => Kept::Directory,
                    true => Kept::File { bytes: 0, allocated: 0, seen: true },
                    false => unknown_file(),
                };
                self.names.add(path.to_vec(), kept, made)
            })),
            None => None,
        };
        if flags & O_TRUNC != 0
            && let Some(node) = node
        {
            self.truncate(node, 0);
        }
        effect.nodes.extend(node);
        effect.descriptions.push(self.open(process, called.result as i32, node, flags));
    }

    fn close_range(&mut self, process: u32, called: &Called, effect: &mut Effect) {
        let [first, last, flags, ..] = called.arguments;
        let number = |bound: u64| i32::try_from(bound).unwrap_or(i32::MAX);
        let open = &self.process(process).descriptors;
        if first > last {
            return;
        }
        let those: Vec<i32> = open.range(number(first)..=number(last)).map(|(number, _)| *number).collect();
        for descriptor in those {
            // CLOSE_RANGE_CLOEXEC
            if flags & 4 != 0 {
                self.closes_at_exec(process, descriptor, true);
                effect.descriptions.extend(self.description(process, descriptor));
            }
            while flags & 4 == 0
                && let Some(slot) = self.process(process).close(descriptor)
            {
                effect.descriptions.push(slot.description);
            }
        }
    }

    fn fcntl(&mut self, process: u32, called: &Called, effect: &mut Effect) {
        let [descriptor, command, value, ..] = called.arguments;
        let descriptor = descriptor as i32;
        effect.of_descriptors = matches!(command, 0 | 2 | 4 | 1030);
        match command {
            // F_DUPFD, F_DUPFD_CLOEXEC
            0 | 1030 => self.copy(process, descriptor, called.result as i32, command == 1030),
            // F_SETFD
            2 => self.closes_at_exec(process, descriptor, value & 1 != 0),
            // F_SETFL: these can be changed.
            4 => {
                const CHANGED: u64 = O_APPEND | 0o4000 | 0o40000 | 0o1000000;
                if let Some(description) = self.description(process, descriptor) {
                    let flags = &mut self.opened[description as usize].flags;
                    *flags = *flags & !CHANGED | value & CHANGED;
                }
            }
            _ => {}
        }
    }

    fn closes_at_exec(&mut self, process: u32, descriptor: i32, closes: bool) {
        if let Some(slots) = self.process(process).descriptors.get_mut(&descriptor) {
            slots.iter_mut().for_each(|slot| slot.closes_at_exec = closes);
        }
    }

    fn copy(&mut self, process: u32, from: i32, to: i32, closes_at_exec: bool) {
        if let Some(description) = self.description(process, from) {
            self.process(process).open(to, description, closes_at_exec);
        }
    }

    fn memory_changes(&mut self, process: u32, called: &Called, effect: &mut Effect) {
        let [address, length, ..] = called.arguments;
        let name = called.call.name();
        if !matches!(name, "mmap" | "munmap" | "mremap" | "msync" | "mprotect" | "madvise") {
            return;
        }
        if name == "mmap" {
            let descriptor = called.arguments[4] as i32;
            let description = self.description(process, descriptor);
            self.process(process).mappings.insert(called.result as u64, (length, description));
            return;
        }
        let Some((begin, description)) = self.process(process).mapping(address) else { return };
        effect.descriptions.extend(description);
        effect.nodes.extend(description.and_then(|number| self.opened[number as usize].node));
        if begin != address {
            return;
        }
        let mappings = &mut self.process(process).mappings;
        match name {
            "munmap" => drop(mappings.remove(&begin)),
            "mremap" => {
                mappings.remove(&begin);
                mappings.insert(called.result as u64, (called.arguments[2], description));
            }
            _ => {}
        }
    }
}
