use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

use super::*;
use crate::blocks::Blocks;
use crate::timed::timed;

const BLOCKS: Blocks = Blocks { size: 3000, whole: 7, tail: 1234 };

/// A file without a name, each of whose blocks has bytes of its own.
fn file() -> (File, Vec<u8>) {
    // SAFETY: the name is a string; the new descriptor is owned by nobody else.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"blocks".as_ptr(), libc::MFD_CLOEXEC)) };
    let contents: Vec<_> = (0..BLOCKS.total()).map(|at| (at / 1000 * 7 + at) as u8).collect();
    file.write_all_at(&contents, 0).expect("it is written");
    (file, contents)
}

/// Runs a transfer one step at a time, and says what the buffer held after each.
struct Watched<T> {
    inner: T,
    buffer: *mut u8,
    seen: Vec<(u64, Vec<u8>)>,
}

impl<T: Transfer> Transfer for Watched<T> {
    fn transfer(&mut self, offset: u64, bytes: usize) -> isize {
        let moved = self.inner.transfer(offset, bytes);
        // SAFETY: the buffer has so many bytes.
        self.seen.push((offset, unsafe { std::slice::from_raw_parts(self.buffer, bytes) }.to_vec()));
        moved
    }

    fn sync(&mut self) -> i32 {
        self.inner.sync()
    }
}

fn reads_all(name: &str, make: Make, random: bool) {
    let (file, contents) = file();
    let order = random.then(|| BLOCKS.shuffled(3).expect("it is small"));
    // Lent once, by its raw parts: the transfer and the watcher both go through them.
    let mut space = vec![0u8; BLOCKS.size as usize];
    let buffer = space.as_mut_ptr();
    rewind(&file);
    let Some(inner) = make(&file, buffer) else { return };
    let mut watched = Watched { inner, buffer, seen: Vec::new() };
    timed(&mut watched, BLOCKS, order.as_deref(), true).unwrap_or_else(|why| panic!("{name}: {why:?}"));
    watched.seen.sort();
    let read: Vec<u8> = watched.seen.into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert_eq!(read, contents, "{name}");
}

fn rewind(file: &File) {
    use std::io::{Seek, SeekFrom};
    let mut file = file;
    file.seek(SeekFrom::Start(0)).expect("it can be rewound");
}

impl Transfer for Box<dyn Transfer> {
    fn transfer(&mut self, offset: u64, bytes: usize) -> isize {
        (**self).transfer(offset, bytes)
    }

    fn sync(&mut self) -> i32 {
        (**self).sync()
    }
}

type Made = Option<Box<dyn Transfer>>;
type Make = fn(&File, *mut u8) -> Made;

fn mapped<const WRITE: bool>(file: &File, buffer: *mut u8) -> Made {
    let made = Mapped::<WRITE>::new(file, Path::new("memory"), BLOCKS.total(), buffer);
    Some(Box::new(made.expect("memory can be mapped")))
}

/// None where the machine has no io_uring.
fn ring<const WRITE: bool>(file: &File, buffer: *mut u8) -> Made {
    Some(Box::new(Ring::<WRITE>::new(file, buffer).ok()?))
}

#[test]
fn every_method_reads_every_byte_in_either_order() {
    reads_all("read", |file, buffer| Some(Box::new(Calls::<false, false>::new(file, buffer))), false);
    for random in [false, true] {
        reads_all("pread", |file, buffer| Some(Box::new(Calls::<false, true>::new(file, buffer))), random);
        reads_all("mmap", mapped::<false>, random);
        reads_all("io_uring", ring::<false>, random);
    }
}

#[test]
fn every_method_writes_every_byte_in_either_order() {
    let methods: [(&str, Make, bool); 4] = [
        ("write", |file, buffer| Some(Box::new(Calls::<true, false>::new(file, buffer))), false),
        ("pwrite", |file, buffer| Some(Box::new(Calls::<true, true>::new(file, buffer))), true),
        ("mmap", mapped::<true>, true),
        ("io_uring", ring::<true>, true),
    ];
    for (name, make, may_be_random) in methods {
        for random in [false, may_be_random] {
            let (file, _) = file();
            rewind(&file);
            let mut buffer: Vec<u8> = (0..BLOCKS.size).map(|at| (at * 3) as u8).collect();
            let Some(mut transfer) = make(&file, buffer.as_mut_ptr()) else { continue };
            let order = random.then(|| BLOCKS.shuffled(3).expect("it is small"));
            timed(&mut transfer, BLOCKS, order.as_deref(), true)
                .unwrap_or_else(|why| panic!("{name}: {why:?}"));
            let mut written = vec![0; BLOCKS.total() as usize];
            file.read_exact_at(&mut written, 0).expect("it is read");
            for block in written.chunks(BLOCKS.size as usize) {
                assert_eq!(block, &buffer[..block.len()], "{name}, random: {random}");
            }
            assert_eq!(file.metadata().map(|metadata| metadata.len()).ok(), Some(BLOCKS.total()), "{name}");
        }
    }
}

#[test]
fn a_failing_request_of_a_ring_has_its_error() {
    let (file, _) = file();
    let mut buffer = [0u8; 16];
    let Ok(mut ring) = Ring::<false>::new(&file, buffer.as_mut_ptr()) else { return };
    ring.file = -1;
    assert_eq!(ring.transfer(0, 16), -1);
    assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
}
