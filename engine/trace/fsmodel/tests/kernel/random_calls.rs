//! Calls with random arguments, and how they are made.

use std::cell::RefCell;
use std::ffi::{CString, c_long};
use std::io::Error;
use std::path::Path;

use etude_calls::{Call, Kind, Processor};
use etude_fsmodel::{Model, NodeKind, is_link_target, key, moved};

/// A generator of numbers (xorshift64*).
pub struct Random(u64);

/// A call: arguments as the kernel takes them, but for pointers.
pub struct Drawn {
    pub name: &'static str,
    pub arguments: [u64; 6],
    /// Paths, with their arguments.
    paths: Vec<(u8, CString)>,
    /// Offsets in memory, with their arguments.
    offsets: Vec<(u8, i64)>,
    /// Descriptors of a pair that the call made.
    pair: RefCell<Option<[i32; 2]>>,
}

const HERE: u64 = libc::AT_FDCWD as i64 as u64;
/// Bytes that a call moves at most.
const ROOM: usize = 8192;

/// Approximate share of each, percent.
const CALLS: &[(&str, u64)] = &[
    ("open", 10),
    ("openat", 14),
    ("creat", 2),
    ("close", 7),
    ("close_range", 1),
    ("dup", 3),
    ("dup2", 4),
    ("dup3", 3),
    ("fcntl", 7),
    ("ioctl", 1),
    ("chdir", 4),
    ("fchdir", 3),
    ("mkdir", 5),
    ("mkdirat", 3),
    ("rmdir", 2),
    ("unlink", 3),
    ("unlinkat", 3),
    ("rename", 5),
    ("renameat", 3),
    ("renameat2", 4),
    ("link", 3),
    ("linkat", 4),
    ("symlink", 4),
    ("symlinkat", 2),
    ("mknod", 1),
    ("mknodat", 1),
    ("lseek", 4),
    ("read", 4),
    ("write", 6),
    ("pread64", 2),
    ("pwrite64", 3),
    ("preadv2", 1),
    ("pwritev2", 3),
    ("truncate", 2),
    ("ftruncate", 3),
    ("fallocate", 4),
    ("copy_file_range", 3),
    ("sendfile", 2),
    ("splice", 2),
    ("pipe", 1),
    ("pipe2", 2),
    ("socketpair", 1),
    ("eventfd2", 1),
    ("memfd_create", 1),
    ("socket", 1),
];

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Bits of which each is set once in so many times.
    fn bits(&mut self, bits: &[i32], once_in: u64) -> u64 {
        let set = bits.iter().filter(|_| self.below(once_in) == 0).fold(0, |all, bit| all | *bit);
        set as u64
    }

    pub fn call(&mut self, model: &Model, place: &Path) -> Drawn {
        loop {
            let all: u64 = CALLS.iter().map(|(_, weight)| weight).sum();
            let mut at = self.below(all);
            let drawn = CALLS.iter().find(|(_, weight)| {
                let here = at < *weight;
                at = at.saturating_sub(*weight);
                here
            });
            let name = drawn.expect("it is below the sum").0;
            let call = Call::named(name).expect("it is in the table");
            if Processor::own().is_some_and(|own| call.number(own).is_some())
                && let Some(drawn) = self.arguments(name, call, model, place)
            {
                return drawn;
            }
        }
    }

    /// An open descriptor, or now and then another number.
    fn descriptor(&mut self, model: &Model) -> u64 {
        let open: Vec<i32> = model.processes[&0].table.numbers().filter(|number| *number > 2).collect();
        if open.is_empty() || self.below(12) == 0 { 3 + self.below(9) } else { self.one(&open) as u64 }
    }

    /// One that is open for a file, of which something is known.
    fn of_file(&mut self, model: &Model) -> Option<u64> {
        let is_file = |descriptor: &i32| {
            let node = model.node_behind(0, *descriptor);
            node.is_some_and(|node| matches!(model.names.node(node).kind, NodeKind::File { .. }))
        };
        let open: Vec<i32> = model.processes[&0].table.numbers().filter(is_file).collect();
        (!open.is_empty()).then(|| self.one(&open) as u64)
    }

    fn of_directory(&mut self, model: &Model) -> u64 {
        let is_directory = |descriptor: &i32| {
            let node = model.node_behind(0, *descriptor);
            node.is_some_and(|node| model.names.node(node).kind == NodeKind::Directory)
        };
        let open: Vec<i32> = model.processes[&0].table.numbers().filter(is_directory).collect();
        match self.below(8) {
            0 => self.descriptor(model),
            1..=5 if !open.is_empty() => self.one(&open) as u64,
            _ => HERE,
        }
    }

    /// A path that begins at a directory, and leads out of that of the sequence in no way.
    fn path(&mut self, model: &Model, place: &Path, directory: u64) -> CString {
        let top = key(place.parent().expect("it is in another").as_os_str().as_encoded_bytes());
        let node = if directory == HERE { None } else { model.node_behind(0, directory as i32) };
        let begin =
            if directory == HERE { model.place(0) } else { node.and_then(|node| model.names.name(node)) };
        // In a directory that was removed no path begins with a dot: the model does not know where that leads.
        let path = match self.below(2) {
            0 => self.existing(model, &top, begin),
            _ => self.components(place, begin.is_some()),
        };
        let leads_to = |path: &[u8], follow| model.names.resolve(begin.unwrap_or_default(), path, follow);
        let within = |path: &[u8]| moved(path, &top, b"").is_some();
        let inside = [false, true].iter().all(|follow| within(&leads_to(&path, *follow)));
        let removed = begin.is_none() && !path.starts_with(b"/");
        let path = if inside || removed { path } else { b"a".to_vec() };
        CString::new(path).expect("it has no zero byte")
    }

    fn components(&mut self, place: &Path, dots: bool) -> Vec<u8> {
        let mut path = Vec::new();
        if self.below(8) == 0 {
            path.extend_from_slice(place.as_os_str().as_encoded_bytes());
            path.push(b'/');
        }
        for number in 0..1 + self.below(3) {
            if number > 0 {
                path.push(b'/');
            }
            let component = match self.below(12) {
                0 if dots || number > 0 => "..",
                1 if dots || number > 0 => ".",
                _ => self.one(&["a", "b", "c"]),
            };
            path.extend_from_slice(component.as_bytes());
        }
        if self.below(12) == 0 {
            path.push(b'/');
        }
        path
    }

    /// The text of a link: no path that leads up, wherever the link is.
    fn target(&mut self, place: &Path) -> CString {
        let path = self.components(place, false);
        let up = path.windows(2).any(|pair| pair == b"..");
        CString::new(if up { b"a".to_vec() } else { path }).expect("it has no zero byte")
    }

    /// A path of something that is there, or now and then behind that.
    fn existing(&mut self, model: &Model, top: &[u8], begin: Option<&[u8]>) -> Vec<u8> {
        let names: Vec<&[u8]> = model.names.below(top).map(|(name, _)| name).collect();
        if names.is_empty() {
            return b"a".to_vec();
        }
        let name = self.one(&names);
        let within = begin.and_then(|begin| moved(name, begin, b"")).filter(|rest| !rest.is_empty());
        let mut path = within.map_or_else(|| [b"/", name].concat(), |rest| rest[1..].to_vec());
        if self.below(3) == 0 {
            path.extend([b'/', self.one(b"abc")]);
        }
        path
    }

    fn open_flags(&mut self) -> u64 {
        let mode = self.one(&[libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR, libc::O_RDWR]) as u64;
        match self.below(12) {
            0 => mode | (libc::O_TMPFILE as u64) | self.bits(&[libc::O_CLOEXEC, libc::O_EXCL], 3),
            // Without O_DIRECTORY no kernel takes it.
            1 => mode | (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64 | self.bits(&[libc::O_CREAT], 2),
            2 | 3 => (libc::O_DIRECTORY as u64) | self.bits(&[libc::O_CLOEXEC, libc::O_PATH], 3),
            4 => (libc::O_PATH as u64) | self.bits(&[libc::O_NOFOLLOW, libc::O_CREAT, libc::O_TRUNC], 2),
            _ => {
                let often = [libc::O_CREAT];
                let rarely = [libc::O_EXCL, libc::O_TRUNC, libc::O_APPEND, libc::O_CLOEXEC, libc::O_NOFOLLOW];
                mode | self.bits(&often, 2) | self.bits(&rarely, 5)
            }
        }
    }

    fn size(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(8),
            1 => 4096 * self.below(3),
            _ => self.below(4096),
        }
    }

    fn offset(&mut self) -> i64 {
        if self.below(8) == 0 { 4096 * self.below(4) as i64 } else { self.below(6000) as i64 }
    }

    /// None where the state has nothing for such a call.
    fn arguments(&mut self, name: &'static str, call: Call, model: &Model, place: &Path) -> Option<Drawn> {
        let (mut arguments, mut paths, mut offsets) = ([0; 6], Vec::new(), Vec::new());
        let mut directory = HERE;
        for (index, kind) in call.row().arguments.iter().enumerate() {
            match kind {
                Kind::Fd => arguments[index] = self.descriptor(model),
                Kind::DirFd => {
                    directory = self.of_directory(model);
                    arguments[index] = directory;
                }
                Kind::Path if is_link_target(call, index) => paths.push((0, self.target(place))),
                Kind::Path => paths.push((index as u8, self.path(model, place, directory))),
                Kind::Name => paths.push((index as u8, c"name".into())),
                Kind::Size => arguments[index] = self.size(),
                Kind::Offset => arguments[index] = self.offset() as u64,
                Kind::Mode => arguments[index] = 0o755,
                _ => {}
            }
        }
        let words = &mut arguments;
        match name {
            "open" => words[1] = self.open_flags(),
            "openat" => words[2] = self.open_flags(),
            "close_range" => {
                words[0] = 3 + self.below(8);
                words[1] = if self.below(2) == 0 { u64::from(u32::MAX) } else { 3 + self.below(8) };
                words[2] = self.one(&[0, 4]);
            }
            "dup2" => words[1] = 3 + self.below(9),
            "dup3" => (words[1], words[2]) = (3 + self.below(9), self.bits(&[libc::O_CLOEXEC], 2)),
            "fcntl" => {
                let command = self.one(&[libc::F_DUPFD, libc::F_DUPFD_CLOEXEC, libc::F_SETFD, libc::F_SETFL]);
                words[1] = command as u64;
                words[2] = match command {
                    libc::F_SETFD => self.below(2),
                    libc::F_SETFL => self.bits(&[libc::O_APPEND, libc::O_NONBLOCK], 2),
                    _ => 3 + self.below(9),
                };
            }
            "ioctl" => words[1] = self.one(&[0x5450, 0x5451]),
            "unlinkat" => words[2] = self.bits(&[libc::AT_REMOVEDIR], 2),
            "renameat2" => words[4] = self.one(&[0, 1, 2, 2]),
            "linkat" => {
                words[4] = self.one(&[0, 0x400, 0x1000, 0x1000]);
                if words[4] == 0x1000 {
                    words[0] = self.of_file(model)?;
                    paths[0].1 = CString::default();
                }
            }
            "mknod" | "mknodat" => words[if name == "mknod" { 1 } else { 2 }] = 0o100644,
            "lseek" => words[2] = self.below(3),
            "truncate" | "ftruncate" => words[1] = self.size(),
            "fallocate" => {
                words[0] = self.of_file(model)?;
                words[1] = self.one(&[0, 0, 1, 3, 8, 0x10, 0x11, 0x20]);
                if words[1] & 0x28 != 0 {
                    (words[2], words[3]) = (4096 * self.below(2), 4096);
                } else {
                    (words[2], words[3]) = (self.offset() as u64, 1 + self.size());
                }
            }
            "read" | "write" | "pread64" | "pwrite64" => words[0] = self.of_file(model)?,
            "preadv2" | "pwritev2" => {
                (words[0], words[2]) = (self.of_file(model)?, 1);
                words[3] = if self.below(2) == 0 { u64::MAX } else { self.offset() as u64 };
                words[5] = if name == "pwritev2" { self.one(&[0, 0x10]) } else { 0 };
            }
            "copy_file_range" => {
                (words[0], words[2], words[5]) = (self.of_file(model)?, self.of_file(model)?, 0);
                offsets.extend((0..2).filter(|_| self.below(2) == 0).map(|at| (at * 2 + 1, 0)));
            }
            "sendfile" => {
                (words[0], words[1]) = (self.of_file(model)?, self.of_file(model)?);
                offsets.extend((self.below(2) == 0).then_some((2, 0)));
            }
            // One side is a pipe: none waits.
            "splice" => {
                words[5] = 2;
                let side = self.below(2) as usize * 2;
                words[side] = self.of_file(model)?;
                offsets.extend((self.below(2) == 0).then_some((side as u8 + 1, 0)));
            }
            "pipe2" => words[1] = self.bits(&[libc::O_CLOEXEC, libc::O_NONBLOCK], 2),
            "socketpair" | "socket" => {
                words[0] = libc::AF_UNIX as u64;
                words[1] = libc::SOCK_STREAM as u64 | self.bits(&[libc::SOCK_CLOEXEC], 2);
            }
            "eventfd2" => words[1] = self.bits(&[libc::EFD_CLOEXEC], 2),
            "memfd_create" => words[1] = self.below(2),
            _ => {}
        }
        for (_, at) in &mut offsets {
            *at = self.offset();
        }
        Some(Drawn { name, arguments, paths, offsets, pair: RefCell::new(None) })
    }
}

impl Drawn {
    /// Makes the call: its result, or -errno.
    pub fn make(&self) -> i64 {
        let call = Call::named(self.name).expect("it is in the table");
        let number = call.number(Processor::own().expect("it was looked at")).expect("it was looked at");
        let mut words = self.arguments;
        let (mut data, mut pair) = ([b'x'; ROOM], [-1_i32; 2]);
        let mut vector = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: 100 };
        let mut offsets: Vec<(u8, i64)> = self.offsets.clone();
        for (index, kind) in call.row().arguments.iter().enumerate() {
            words[index] = match kind {
                Kind::Path | Kind::Name => {
                    let path = self.paths.iter().find(|(at, _)| usize::from(*at) == index);
                    path.map_or(0, |(_, path)| path.as_ptr() as u64)
                }
                Kind::Buffer => data.as_mut_ptr() as u64,
                Kind::Iovec => &raw mut vector as u64,
                Kind::Pair => pair.as_mut_ptr() as u64,
                Kind::OffsetAt => {
                    let offset = offsets.iter_mut().find(|(at, _)| usize::from(*at) == index);
                    offset.map_or(0, |(_, offset)| &raw mut *offset as u64)
                }
                _ => words[index],
            };
        }
        let [a, b, c, d, e, f] = words;
        // SAFETY: pointers are those of texts and buffers above, which are as long as their sizes say; descriptors are
        // above 2, where this process has none of its own.
        let result = unsafe { libc::syscall(c_long::from(number), a, b, c, d, e, f) };
        if result < 0 {
            return -i64::from(Error::last_os_error().raw_os_error().expect("there was an error"));
        }
        if pair[0] >= 0 {
            self.pair.replace(Some(pair));
        }
        result
    }

    /// Texts as a trace has them: offsets as they were before.
    pub fn texts_after(&self) -> Vec<(u8, Vec<u8>)> {
        let call = Call::named(self.name).expect("it is in the table");
        let paths = self.paths.iter().map(|(at, path)| (*at, path.to_bytes().to_vec()));
        let offsets = self.offsets.iter().map(|(at, offset)| (*at, offset.to_le_bytes().to_vec()));
        let pair_at = call.row().arguments.iter().position(|kind| *kind == Kind::Pair).unwrap_or(0) as u8;
        let pair = self.pair.borrow().map(|pair| (pair_at, pair.map(i32::to_le_bytes).concat()));
        paths.chain(offsets).chain(pair).collect()
    }

    pub fn shown(&self) -> String {
        let paths: Vec<_> = self.paths.iter().map(|(_, path)| path.to_string_lossy()).collect();
        format!("{} {:?}", paths.join(" "), self.offsets)
    }
}
